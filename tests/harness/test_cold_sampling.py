"""Cold-compile sampling: fixed by the plan, and every case once in the period."""

from __future__ import annotations

from dataclasses import replace

from torchgauge.clock import DAY_S
from torchgauge.harness.cold_sampling import is_cold_sampled
from torchgauge.records import (
    Case,
    Configuration,
    DeviceTarget,
    Group,
    Plan,
    PlannedCase,
    Refusal,
    RunSettings,
    Tolerance,
    Workload,
    digest,
)

CONFIGURATIONS = (Configuration("eager", "eager"), Configuration("inductor", "inductor"))


def group(model: str, refusal: Refusal | None = None) -> Group:
    """A group of a model, eager beside compiled."""
    cases = [
        PlannedCase(
            Case(Workload("toy", model), each, DeviceTarget("any")),
            Tolerance(0.0, 0.0, 1.0, "none"),
            refusal=refusal,
        )
        for each in CONFIGURATIONS
    ]
    return Group(digest(model), tuple(cases))


GROUPS = tuple(group(f"model{number}") for number in range(40))


def plan(choice: str, day: int = 20_000, groups: tuple[Group, ...] = GROUPS) -> Plan:
    """A plan of that day."""
    settings = replace(RunSettings(), cold_compile=choice)
    return Plan("run", (day + 0.5) * DAY_S, ("torchgauge",), settings, groups)


def test_each_is_sampled_once_in_the_period() -> None:
    """Over seven days in a row every group compiles cold exactly once."""
    for each in GROUPS:
        assert sum(is_cold_sampled(each, plan("1/7", day)) for day in range(20_000, 20_007)) == 1


def test_a_resumed_run_chooses_as_before() -> None:
    """The choice is the plan's: a part of the groups, run later, has the same sample."""
    whole = plan("1/7")
    assert [is_cold_sampled(replace(each, cases=each.cases[:1]), whole) for each in GROUPS] == [
        is_cold_sampled(each, whole) for each in GROUPS
    ]

"""The plan in a set against the campaign: the cases of its shard, each once, and configurations as ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import msgspec

from torchgauge.counted import counted
from torchgauge.harness.backends.backend import named_by_backend
from torchgauge.records import (
    SCHEMA_VERSION,
    Case,
    Configuration,
    Deadlines,
    Expectation,
    Group,
    Plan,
    RunSettings,
    digest,
    digest_of_list,
)
from torchgauge.results.possible import LONGEST_S
from torchgauge.workflows.campaign import PoolPlan, ShardPlan, term_of
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError
from torchgauge.workflows.ingest.row_check import Window
from torchgauge.workflows.ingest.strict_records import check_depth, decode, decode_outline

RECIPES_BYTES = 1 << 20
"""Most bytes of what suites say of how to build all models of a shard; one recipe has some hundred."""

_KEPT_SETTINGS = ("confidence", "min_blocks", "max_blocks", "min_block_s", "eager_runs", "warmup_budget_s",
                  "log_limit_bytes", "order_seed")  # fmt: skip
"""Settings that no option changes."""
_BOUNDS: Mapping[str, tuple[float, float]] = {
    "threads": (1, 1 << 20),
    "precision_target": (1e-4, 1.0),
    "measure_budget_s": (0.01, LONGEST_S),
    "quiet_wait_s": (0.0, LONGEST_S),
    "memory_limit_bytes": (1, 1 << 53),
    "budget_s": (0.0, LONGEST_S),
    "prefetch": (1, 1 << 20),
}
"""What options take of the others, and no time longer than a campaign."""


@dataclass(frozen=True)
class CheckedPlan:
    """A plan that is the campaign's: its digest, and the strict twin of each planned case by its id."""

    run_id: str
    created_at: float
    digest: str
    cases: dict[str, Any]


def check_plan(
    raw: bytes, pool: PoolPlan, shard: ShardPlan, known: Mapping[str, Configuration], window: Window
) -> CheckedPlan:
    """The plan in ``raw``; raises :class:`RefusedSetError` where it is not that of ``shard``.

    ``known`` are the configurations that the campaign's names mean.
    """
    plan = decode_outline(raw, Plan, "groups", "the plan")
    if plan.schema_version != SCHEMA_VERSION:
        raise RefusedSetError(
            Reason.SCHEMA, f"the plan is of schema {plan.schema_version}, not {SCHEMA_VERSION}"
        )
    window.check(plan.created_at, "the plan")
    _check_settings(plan.settings)
    _check_schedule(plan.schedule)
    reading = _Reading(pool, frozenset(shard.cases), known, dict(shard.expected))
    found = digest_of_list(map(reading.group, plan.groups))
    missing = reading.wanted - reading.cases.keys()
    if missing:
        raise RefusedSetError(
            Reason.MISSING_CASE,
            f"{counted(len(missing), 'case is', 'cases are')} not planned: {min(missing)}, ...",
        )
    if digest([reading.terms[name] for name in sorted(reading.terms)]) != shard.terms:
        raise RefusedSetError(
            Reason.TOLERANCE, "its cases, their tolerances or models are others than the campaign's"
        )
    return CheckedPlan(plan.run_id, plan.created_at, found, reading.cases)


@dataclass
class _Reading:
    """One pass over the groups of a plan, with what was seen so far."""

    pool: PoolPlan
    wanted: frozenset[str]
    known: Mapping[str, Configuration]
    expected: Mapping[str, Expectation]
    cases: dict[str, Any] = field(default_factory=dict)
    terms: dict[str, list[object]] = field(default_factory=dict)
    recipes: int = 0

    def group(self, raw: msgspec.Raw) -> Any:
        """The group in ``raw`` as plain values, once its cases were checked."""
        group = decode(bytes(raw), Group, "a group of the plan")
        check_depth(group.recipe, "the recipe of a group")
        self.recipes += len(msgspec.json.encode(group.recipe))
        if self.recipes > RECIPES_BYTES:
            raise RefusedSetError(Reason.TOO_LARGE, f"its recipes have more than {RECIPES_BYTES} bytes")
        if not group.cases:
            raise RefusedSetError(Reason.SCHEMA, "a group of the plan without a case")
        for planned in group.cases:
            case = msgspec.convert(planned.case, Case, from_attributes=True)
            _check_case(case, self.pool, self.wanted, self.known)
            if case.id in self.cases:
                raise RefusedSetError(Reason.CASE_TWICE, f"{case.id} is in the plan twice")
            if planned.expected_duration_s is not None:
                raise RefusedSetError(Reason.SCHEMA, f"{case.id}: no plan says how long a case takes")
            ours = self.expected.get(case.id)  # the campaign's, in the place of the set's own
            self.cases[case.id] = msgspec.structs.replace(planned, expectation=ours)
            self.terms[case.id] = term_of(case, planned)
        return msgspec.to_builtins(group)


def _check_settings(settings: Any) -> None:
    """Raise for what no option of a run takes: it would loosen how its numbers are judged."""
    usual = RunSettings()
    kept = all(getattr(settings, name) == getattr(usual, name) for name in _KEPT_SETTINGS)
    values = [(getattr(settings, name), bounds) for name, bounds in _BOUNDS.items()]
    values += [(getattr(settings.deadlines, item.name), (0.1, LONGEST_S)) for item in fields(Deadlines)]
    if not kept or not all(value is None or low <= value <= high for value, (low, high) in values):
        raise RefusedSetError(Reason.TOLERANCE, "its settings are none that a run of a campaign can have")


def _check_schedule(schedule: Any) -> None:
    """Raise for an order of groups that are to take longer than a campaign, or less than nothing."""
    if schedule is None:
        return
    times = (schedule.startup_s, schedule.closing_s, *(seconds for _, seconds in schedule.expected_s))
    if not 0.0 <= min(times) <= max(times) <= LONGEST_S:
        raise RefusedSetError(Reason.NUMBER, "its schedule has times that no campaign has")


def _check_case(
    case: Case, pool: PoolPlan, wanted: frozenset[str], known: Mapping[str, Configuration]
) -> None:
    if case.id not in wanted:
        raise RefusedSetError(Reason.FOREIGN_CASE, "the plan has a case that is not in the shard")
    if case.device.name != pool.device:
        raise RefusedSetError(Reason.DEVICE, f"{case.id} is not on the device of the pool")
    name = case.configuration.name
    if (known.get(name) or named_by_backend(name)) != case.configuration:
        raise RefusedSetError(Reason.CONFIGURATION, f"{case.id}: its configuration is not what we call so")

"""In which order a run takes its groups: the longest first, or the most valuable first within a budget.

The longest first keeps idle cores busy: what is prefetched has the most time to be ready. Devices stay
one after another, as they are named. Nothing but the order changes; cases and groups keep their ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from torchgauge.harness.planning.forecast import CLOSING_S, Forecast
from torchgauge.harness.planning.plan_inputs import PlanInputs
from torchgauge.harness.planning.priority import Choice, Priority, choose
from torchgauge.records import Group, Schedule

LONGEST = "longest"
VALUE = "value"


def ordered(
    groups: Sequence[Group], known: PlanInputs, budget_s: float | None
) -> tuple[tuple[Group, ...], Schedule]:
    """``groups`` as a run takes them: the longest first, or by value where there is a budget (seconds)."""
    if budget_s is None:
        return longest_first(groups, known.order)
    return within_budget(groups, known.order, known.priority, budget_s)


def longest_first(groups: Sequence[Group], forecast: Forecast) -> tuple[tuple[Group, ...], Schedule]:
    """``groups``, device by device, the longest first; equally long ones stay in their order."""
    found: list[Group] = []
    for _, held in groupby(groups, key=lambda group: group.device):
        found += sorted(held, key=lambda group: -forecast.of_group(group))
    return tuple(found), _schedule(LONGEST, found, forecast)


def within_budget(
    groups: Sequence[Group], forecast: Forecast, priority: Priority, budget_s: float
) -> tuple[tuple[Group, ...], Schedule]:
    """``groups``, device by device, the most valuable first, and which of them will not fit.

    All stay in the plan: what there is no time for gets its row, and more is done where the forecast was too
    long. Devices share what is left of the budget evenly, one after another, as the run itself does.
    """
    devices = [list(held) for _, held in groupby(groups, key=lambda group: group.device)]
    found: list[Group] = []
    left: list[str] = []
    remaining = budget_s
    for number, held in enumerate(devices):
        beside = forecast.startup_s + CLOSING_S
        choice: Choice = choose(held, priority, forecast, remaining / (len(devices) - number) - beside)
        remaining -= choice.chosen_s + beside
        found += [*choice.chosen, *choice.left]
        left += [group.id for group in choice.left]
    return tuple(found), _schedule(VALUE, found, forecast, tuple(left))


def _schedule(
    order: str, groups: Sequence[Group], forecast: Forecast, left: tuple[str, ...] = ()
) -> Schedule:
    return Schedule(
        order=order,
        expected_s=tuple((group.id, round(forecast.of_group(group), 3)) for group in groups),
        known=sum(forecast.knows(group) for group in groups),
        source=forecast.source,
        startup_s=round(forecast.startup_s, 3),
        closing_s=CLOSING_S,
        left=left,
    )

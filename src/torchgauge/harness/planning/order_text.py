"""What is said of a plan's order, of its shard and of what a budget leaves out, line by line."""

from __future__ import annotations

from torchgauge.counted import counted
from torchgauge.harness.planning.order import VALUE
from torchgauge.records import Group, Plan, Status
from torchgauge.results import units
from torchgauge.results.store import Store

MOST_NAMED = 5
_BY = {"longest": "the longest first", VALUE: "the highest priority first"}


def order_lines(plan: Plan) -> list[str]:
    """The order of ``plan``, its expected time and its shard; nothing for a plan without a schedule."""
    schedule = plan.schedule
    if schedule is None:
        return []
    groups = len(schedule.expected_s)
    basis = f"recorded durations of {schedule.known} of {counted(groups, 'group')}"
    lines = [f"order: {_BY.get(schedule.order, schedule.order)}, {basis}"]
    if schedule.source:
        lines[0] += f" (from {schedule.source})"
    whole = sum(seconds for _, seconds in schedule.expected_s)
    if schedule.known:
        lines.append(
            f"expected: {units.duration(whole)} for the groups, "
            f"{units.duration(beside_s(plan))} for starts and calibrations"
        )
    if schedule.sharding:
        lines.append(
            f"shard {plan.shard} of sharding {schedule.sharding}: "
            "the other shards must print the same sharding"
        )
    if plan.settings.budget_s is not None:
        lines += _budget_lines(plan, plan.settings.budget_s)
    return lines


def beside_s(plan: Plan) -> float:
    """Seconds that a run of ``plan`` takes beside its groups: starts and calibrations of its devices."""
    schedule = plan.schedule
    if schedule is None:
        return 0.0
    return len({group.device for group in plan.groups}) * (schedule.startup_s + schedule.closing_s)


def left_lines(store: Store, plan: Plan) -> list[str]:
    """What a published run left for want of time, how long that would take, and what comes first then."""
    from torchgauge.results.dataset import read_run

    table = read_run(store, "results", plan.run_id, ("case_key", "status"))
    keys, statuses = table["case_key"].to_pylist(), table["status"].to_pylist()
    missing = {key for key, status in zip(keys, statuses, strict=True) if status == Status.NOT_RUN.value}
    left = [group for group in plan.groups if any(each.case.key in missing for each in group.cases)]
    if not left:
        return []
    cases = sum(each.case.key in missing for group in left for each in group.cases)
    seconds = dict(plan.schedule.expected_s) if plan.schedule is not None else {}
    takes = sum(seconds.get(group.id, 0.0) for group in left)
    about = f", about {units.duration(takes)}" if takes else ""
    return [f"left: {counted(cases, 'case')} in {counted(len(left), 'group')}{about}; next: {_named(left)}"]


def _budget_lines(plan: Plan, budget_s: float) -> list[str]:
    schedule = plan.schedule
    assert schedule is not None
    seconds, left = dict(schedule.expected_s), set(schedule.left)
    fits = sum(value for group, value in seconds.items() if group not in left)
    count = f"{len(seconds) - len(left)} of {counted(len(seconds), 'group')} are expected to fit"
    if len(seconds) - len(left) == 1 and fits + beside_s(plan) > budget_s:
        count = f"none of {counted(len(seconds), 'group')} is expected to fit; one always runs"
    takes = f"{units.duration(fits + beside_s(plan))} with starts and calibrations"
    lines = [f"budget {units.duration(budget_s)}: {count}, {takes}"]
    if left:
        groups = [group for group in plan.groups if group.id in left]
        size = (
            f"{counted(sum(len(group.cases) for group in groups), 'case')} in {counted(len(groups), 'group')}"
        )
        about = units.duration(sum(seconds[group.id] for group in groups))
        lines.append(f"not expected to fit: {size}, about {about}; next: {_named(groups)}")
        never = [group for group in groups if seconds[group.id] > budget_s]
        if never:
            lines.append(f"longer than the whole budget: {_named(never)}")
    return lines


def _named(groups: list[Group]) -> str:
    names = [f"{g.workload.suite}/{g.workload.model} {g.workload.mode} @{g.device}" for g in groups]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more

"""The line of a case while a run goes on: its number, what the number is compared with, and any doubt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.counted import counted
from torchgauge.records import GRAVEST, Case, Modifier, Plan, Result, Status, Subject, Summary, inexact
from torchgauge.records.status import why_marked
from torchgauge.results import units

LINE = 100
"""Most columns of a line: a wider terminal and a file have no longer ones."""
LEAST_NAME, LEAST_REASON, MOST_OF_NO_RATIO = 8, 12, 56
"""Columns that a name keeps on a narrow terminal, below which the summary alone has a reason, and at most of
the reason why there is no ratio."""
SLACK = 0.05
"""How far beyond its interval the ratio of the medians may lie from the one of paired rounds.

They are two estimates of one thing; the medians are also of rounds that make no pair."""


@dataclass(frozen=True)
class Naming:
    """What tells the cases of a plan apart: that all of them share is said once, before the first line."""

    suites: bool = True
    modes: bool = True
    dtypes: bool = True
    devices: bool = True

    @classmethod
    def of_plan(cls, plan: Plan) -> Naming:
        """Which parts of a name the cases of ``plan`` do not all share."""
        loads = [group.workload for group in plan.groups]
        parts = (
            {load.suite for load in loads},
            {load.mode for load in loads},
            {load.dtype for load in loads if load.subject is not Subject.CHECKS},
            {str(group.device) for group in plan.groups},
        )
        return cls(*(len(each) > 1 for each in parts))

    def shared(self, plan: Plan) -> str:
        """What all cases share, such as ``timm, inference, float32, on cpu``."""
        if not plan.groups:
            return ""
        load = plan.groups[0].workload
        said = ["" if self.suites else load.suite, "" if self.modes else load.mode]
        said.append("" if self.dtypes or load.subject is Subject.CHECKS else load.dtype)
        said.append("" if self.devices else f"on {plan.groups[0].device}")
        return ", ".join(filter(None, said))

    def model(self, case: Case) -> str:
        """The model of ``case``, with what the others do not share but for the configuration."""
        load = case.workload
        name = f"{load.suite}/{load.model}" if self.suites else load.model
        name += f"[{load.point}]" if load.shape else ""
        name += f" {load.mode}" if self.modes else ""
        name += f" {load.dtype}" if self.dtypes and load.subject is not Subject.CHECKS else ""
        return name + (f" @{case.device}" if self.devices else "")


def case_line(
    place: str, name: str, result: Result, eager: Result | None, width: int = LINE, *, spare: int = 0
) -> str:
    """Return ``[2/24] resnet18 inductor: pass 30.1 ms, 1.13x [1.10, 1.15]`` in at most ``width`` columns.

    The reason of a doubt or a failure gives way first, also to ``spare`` columns. Marks and a missing ratio
    go to a second line where names and numbers need the first; then the model's name gives way, and numbers
    never do.
    """
    check = result.case.workload.subject is Subject.CHECKS  # which no configuration runs
    configuration = "" if check else f" {result.case.configuration.name}"
    told, no_ratio, why = outcome(result, eager).partition(", no ratio")
    marks, reason = no_ratio + why + _marks(result), _reason(result)
    whole = f"{place} {name}{configuration}: {told}{marks}"
    if len(whole) > width:
        name, configuration = _fitting(name, configuration, width - len(place) - len(told) - 3)
        below = f"\n    {marks.removeprefix(', ')}" if marks else ""
        whole = f"{place} {name}{configuration}: {told}{below}"
    left = width - len(whole.rpartition("\n")[2]) - 3 - spare
    return whole + (f" ({units.shortened(reason, left)})" if reason and left >= LEAST_REASON else "")


def _fitting(name: str, configuration: str, room: int) -> tuple[str, str]:
    """Both in ``room`` columns, as far as they have their least ones: the model gives way first."""
    model, space, rest = name.partition(" ")
    model = units.shortened(model, max(LEAST_NAME, room - len(configuration) - len(space + rest)))
    name = units.shortened(model + space + rest, max(LEAST_NAME, room - len(configuration)))
    return name, units.shortened(configuration, max(LEAST_NAME, room - len(name)))


def outcome(result: Result, eager: Result | None) -> str:
    """Return status, latency and ratio to ``eager`` of one case."""
    text: str = result.status.value
    if result.status is not Status.PASS:
        return text
    latency = _median(result)
    if latency is not None:
        text += f" {units.told(latency, 's', inexact('latency', result.modifiers))}"
    ratio = ratio_text(result, eager)
    return text + (f", {ratio}" if ratio else "")


def _marks(result: Result) -> str:
    """Return the names of what puts the numbers in doubt, the gravest last: the reason is of that one."""
    grave = [each for each in reversed(GRAVEST) if each in result.modifiers]
    return "".join(f", {each.value}" for each in (*sorted({*result.modifiers} - {*grave}), *grave))


def ratio_text(result: Result, eager: Result | None) -> str:
    """``1.13x [1.10, 1.15]``, or why there is none; empty where the case is compared with nothing.

    It is the median of paired rounds. Where the medians beside it, which everybody divides, say another one,
    the machine changed between the rounds, and neither is shown as if it were known.
    """
    found = next((each for each in result.summaries if each.metric == "speedup"), None)
    if found is None:
        return ""
    if found.median is None:
        return f"no ratio: {units.shortened(found.absent, MOST_OF_NO_RATIO)}" if eager is not None else ""
    if found.low is None or found.high is None:
        return f"no ratio: {counted(found.n, 'paired round')} gave no interval"
    apart = medians_apart(found, result, eager)
    if apart is not None:
        paired, divided = (units.quantity(each, "ratio") for each in (found.median, apart))
        return f"no ratio: the machine's speed changed: paired rounds give {paired}, medians {divided}"
    number, interval = units.interval_parts(found.median, found.low, found.high, "ratio")
    if inexact("speedup", result.modifiers):
        number = units.rough(found.median, "ratio")
    return f"{number} {interval}"


def medians_apart(found: Summary, result: Result, eager: Result | None) -> float | None:
    """The ratio of both medians where it lies outside the interval of ``found``; None where it agrees."""
    ours, theirs = (_median(each) for each in (result, eager))
    if not ours or not theirs or not found.median or not found.low or not found.high:
        return None
    divided = theirs / ours
    off = math.log(divided / found.median)
    below, above = math.log(found.low / found.median) - SLACK, math.log(found.high / found.median) + SLACK
    return None if below <= off <= above else divided


def _median(result: Result | None) -> float | None:
    summaries: Sequence[Summary] = result.summaries if result is not None else ()
    return next((each.median for each in summaries if each.metric == "latency"), None)


def _reason(result: Result) -> str:
    """Why the case failed, or the gravest of what puts its numbers in doubt."""
    if result.status is not Status.PASS:
        return result.reason
    facts = dict(result.facts)
    doubts = (*GRAVEST, Modifier.FLAKY)
    return next((why for each in doubts if (why := why_marked(each, result.modifiers, facts))), "")

"""What a person sees while a campaign runs: plain lines, and on a terminal a live one below them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torchgauge.counted import counted
from torchgauge.harness.pool.watch import TIMED
from torchgauge.harness.run.case_line import LEAST_REASON, LINE, Naming, case_line
from torchgauge.harness.run.live_lines import LiveLines, ends_no_case
from torchgauge.harness.run.summary import result_lines
from torchgauge.harness.run.time_left import TimeLeft
from torchgauge.records import ATTEMPTED, Group, Modifier, Plan, Result, Status, Subject
from torchgauge.records.placement import placement_of
from torchgauge.records.status import BESIDE_A_NUMBER
from torchgauge.results import units

if TYPE_CHECKING:
    from torchgauge.harness.run.run_report import RunReport

EACH_SAID = 3
"""Up to how many configurations of a group that did not run each get a line of their own."""
RATIOS = "ratios: eager's time divided by the configuration's, with its {:.0%} interval"


class Progress(LiveLines):
    """One line per case, with the time left; the live line has a bar, and names case and phase in flight."""

    total = before = 0
    room, spare = LINE, 0
    naming = Naming()
    remaining = TimeLeft({})
    budget_s: float | None = None

    @ends_no_case
    def start(self, plan: Plan, report: RunReport) -> None:
        """Say how much there is to do: the campaign starts, or goes on after ``report``."""
        self.total, self.before = report.planned, sum(report.counts.values())
        self.naming, self.budget_s = Naming.of_plan(plan), plan.settings.budget_s
        self.explained: list[Modifier] = []
        self.groups = {planned.case.key: group.id for group in plan.groups for planned in group.cases}
        self.remaining = TimeLeft.of_plan(plan, 1 - self.before / max(1, self.total))
        self.begin(self.total, "workers import torch, then the machine is calibrated")
        size = f"{counted(self.total, 'case')} in {counted(len(plan.groups), 'group')}"
        before = f", {self.before} done before" if self.before else ""
        self.say(f"run {plan.run_id}: {size}{before}")
        if shared := self.naming.shared(plan):
            self.say(f"shared by all: {shared}")
        if len({planned.case.configuration.compiled for group in plan.groups for planned in group.cases}) > 1:
            self.say(RATIOS.format(plan.settings.confidence))
        self.show(completed=self.before)

    @ends_no_case
    def event(self, group: Group, event: dict[str, Any]) -> None:
        """Show the phase in flight; phases are too many for a log."""
        self.remaining.heard(group, self.clock.steady())
        if event["ev"] == "phase":
            cases = {planned.case.key: planned.case for planned in group.cases}
            case = cases.get(event.get("case") or "", group.cases[0].case)
            self.hear(group.id, event["phase"] in TIMED)
            self.show(description=f"{self.naming.model(case)}: {event['phase']}")

    @ends_no_case
    def results(self, results: Sequence[Result], report: RunReport) -> None:
        """Say what the rows of a group are, which are durable now, and how long the rest may take."""
        done, now = sum(report.counts.values()), self.clock.steady()
        for result in results:
            if (group := self.groups.get(result.case.key)) is not None:
                self.remaining.ended(group, now)
                self.timed.discard(group)
        left = self.left(done)
        ending = f" | {left}" if self.bar is None and left else ""  # on a terminal the live line says it
        self.room, self.spare = min(LINE, self.width or LINE), len(ending)
        said = "\n".join(self._lines(results, done))
        if said and len(said.rpartition("\n")[2] + ending) > self.room:
            ending = f"\n  {ending[3:]}"
        for line in (said and said + ending).splitlines():
            self.say(line)
        marks = sorted({each for result in results for each in result.modifiers} & {*BESIDE_A_NUMBER})
        for mark in (each for each in marks if each not in self.explained):
            self.explained.append(mark)
            self.say(f"  {mark.value}: {BESIDE_A_NUMBER[mark]}")
        self.show(completed=done, left=f"{left} | " if left and done < self.total else "")

    def _lines(self, results: Sequence[Result], done: int) -> list[str]:
        """Lines for ``results``, which may be of several groups, after which ``done`` rows are there."""
        batches: dict[tuple[str, object], list[Result]] = {}
        for each in results:
            load = each.case.workload
            shared = load if load.subject is Subject.MODELS else load.suite
            batches.setdefault((str(each.case.device), shared), []).append(each)
        lines, done = [], done - len(results)
        for batch in batches.values():
            done += len(batch)
            lines += self._of_one(batch, done)
        return lines

    def _of_one(self, results: Sequence[Result], done: int) -> list[str]:
        """Return a line for each of ``results``, of one model or one suite's checks; equal are counted."""
        if len({result.case.workload for result in results}) > 1:  # checks: many share a process
            checked = results[0].case
            named = f"{checked.workload.suite} @{checked.device}"
            return [f"[{done}/{self.total}] {named}: {describe_counts(results)}"]
        idle = [each for each in results if each.status not in ATTEMPTED]
        each_said = [each for each in results if each not in idle] if len(idle) > EACH_SAID else [*results]
        first = done - len(results) + 1
        lines = [
            case_line(
                f"[{place}/{self.total}]",
                self.naming.model(each.case),
                each,
                _eager(each, results),
                self.room,
                spare=self.spare,
            )
            for place, each in enumerate(each_said, start=first)
        ]
        if len(each_said) < len(results):
            name = units.shortened(self.naming.model(results[0].case), self.room // 2)
            head = f"[{done}/{self.total}] {name}: "
            lines.append(head + describe_idle(idle, self.room - len(head) - self.spare))
        return lines

    def left(self, done: int) -> str:
        """Words for the time left; empty where nobody can say yet."""
        if done >= self.total:
            return f"took {units.duration(self.elapsed_s)}"
        seconds = self.remaining.seconds(self.began, self.clock.steady())
        if seconds is None:
            return ""
        if self.budget_s is not None:
            seconds = min(seconds, max(0.0, self.budget_s - self.elapsed_s))
        return f"about {units.rough_duration(seconds)} left"


class VerboseProgress(Progress):
    """What ``-v`` shows: the lines of :class:`Progress`, each phase as it begins and all that a row holds."""

    @ends_no_case
    def event(self, group: Group, event: dict[str, Any]) -> None:
        """Say which phase of which case begins."""
        super().event(group, event)
        if event["ev"] == "phase":
            self.say(f"  {self.doing}, after {self.elapsed_s:.1f} s")

    @ends_no_case
    def results(self, results: Sequence[Result], report: RunReport) -> None:
        """Say all that the rows of a group hold."""
        super().results(results, report)
        for result in results:
            for line in result_lines(result):
                self.say(f"  {line}")


def _eager(result: Result, results: Sequence[Result]) -> Result | None:
    """Return the eager of ``results`` that ran in the process of ``result``; any other where none did."""
    place = placement_of(result.case.configuration)
    eagers = [each for each in results if not each.case.configuration.compiled]
    here = [each for each in eagers if placement_of(each.case.configuration) == place]
    return next(iter(here or eagers), None)


def describe_idle(idle: Sequence[Result], room: int) -> str:
    """Return ``28 unsupported (no kernel and 1 other reason)`` for cases that were never attempted."""
    counts = describe_counts(idle)
    reasons = Counter(result.reason for result in idle if result.reason).most_common()
    more = f" and {counted(len(reasons) - 1, 'other reason')}" if len(reasons) > 1 else ""
    left = max(LEAST_REASON, room - len(counts) - len(more) - 3)
    return counts + (f" ({units.shortened(reasons[0][0], left)}{more})" if reasons else "")


def describe_counts(results: Sequence[Result]) -> str:
    """``96 pass, 3 unsupported``."""
    return ", ".join(
        f"{number} {status.value}"
        for status in Status
        if (number := sum(each.status is status for each in results))
    )

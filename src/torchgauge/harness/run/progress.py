"""What a person sees while a campaign runs: plain lines, and on a terminal a live one below them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TextIO

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.counted import counted
from torchgauge.records import ATTEMPTED, Group, Plan, Result, Status, Subject, Workload, inexact
from torchgauge.results import units
from torchgauge.results.hostile_text import visible

if TYPE_CHECKING:
    from torchgauge.harness.run.run_report import RunReport

EACH_SAID = 3
"""Up to how many configurations of a group that did not run each get their words in its line."""


class LiveLines:
    """Lines on a stream, stderr unless given; on a terminal above one that says what runs now."""

    bar: Any = None
    doing = "the first process"
    """What runs now, in words."""

    def __init__(self, stream: TextIO | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self.stream = stream or sys.stderr
        self.clock = clock
        self.began = clock.steady()

    def begin(self, total: int | None = None) -> None:
        """Start the clock and, on a terminal, draw the live line: with a bar where there is a ``total``."""
        self.began = self.clock.steady()
        if not self.stream.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        bar = (BarColumn(bar_width=24), MofNCompleteColumn()) if total is not None else ()
        self.bar = Progress(
            *bar,
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}", markup=False),
            console=Console(file=self.stream),
            transient=True,
            auto_refresh=False,  # a refreshing thread would take time from what is being measured
        )
        self.bar.start()
        self.task = self.bar.add_task("starting", total=total, left="")

    def show(self, **changes: Any) -> None:
        """Change the live line: ``description``, ``completed`` or ``left``."""
        self.doing = changes.get("description", self.doing)
        if self.bar is not None:
            self.bar.update(self.task, refresh=True, **changes)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return self.clock.steady() - self.began

    def note(self, text: str) -> None:
        """Pass a note on."""
        self.say(f"note: {text}")

    def say(self, text: str) -> None:
        """Write one line at once, above the live one; what would act on the terminal is left out."""
        text = visible(text)
        if self.bar is not None:
            self.bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
            return
        self.stream.write(text + "\n")
        self.stream.flush()

    def stop(self) -> None:
        """Leave the terminal as it was, whatever happened; called last, and at least once."""
        if self.bar is not None:
            self.bar.stop()


class Progress(LiveLines):
    """One line per group, with the time left; the live line has a bar, and names case and phase in flight."""

    total = before = 0

    def start(self, plan: Plan, report: RunReport) -> None:
        """Say how much there is to do: the campaign starts, or goes on after ``report``."""
        self.total, self.before = report.planned, sum(report.counts.values())
        self.begin(self.total)
        self.say(
            f"run {plan.run_id}: {counted(self.total, 'case')} in "
            f"{counted(len(plan.groups), 'group')}, {self.before} done before"
        )
        self.show(completed=self.before)

    def event(self, group: Group, event: dict[str, Any]) -> None:
        """Show the phase in flight; phases are too many for a log."""
        if event["ev"] == "phase":
            cases = {planned.case.key: planned.case for planned in group.cases}
            workload = cases.get(event.get("case") or "", group.cases[0].case).workload
            self.show(description=f"{_model(workload)} @{group.device}: {event['phase']}")

    def results(self, results: Sequence[Result], report: RunReport) -> None:
        """Say what the rows of a group are, which are durable now, and how long the rest may take."""
        done = sum(report.counts.values())
        if results:
            workload = results[0].case.workload
            words = (
                (workload.mode,) if workload.subject is Subject.CHECKS else (workload.mode, workload.dtype)
            )
            name = f"{_model(workload)} {' '.join(words)} @{results[0].case.device}"
            described = describe_rows(results)
            if len({result.case.workload for result in results}) > 1:  # checks: many share a process
                name, described = f"{workload.suite} @{results[0].case.device}", describe_counts(results)
            self.say(f"[{done}/{self.total}] {name}: {described} | {self.left(done)}")
        self.show(completed=done, left=self.left(done))

    def left(self, done: int) -> str:
        """Words for the time left, from the pace so far."""
        fresh = done - self.before
        if done >= self.total:
            return f"took {units.duration(self.elapsed_s)}"
        if fresh <= 0:
            return "time left unknown"
        return f"about {units.duration(self.elapsed_s / fresh * (self.total - done))} left"


def _model(workload: Workload) -> str:
    """The model, with the point of its sweep where it has sizes of its own."""
    return f"{workload.suite}/{workload.model}" + (f"[{workload.point}]" if workload.shape else "")


def describe_rows(results: Sequence[Result]) -> str:
    """``eager pass 12.3 ms, inductor pass 8.1 ms (1.52x)``; many that were never attempted are a count."""
    idle = [result for result in results if result.status not in ATTEMPTED]
    if len(idle) <= EACH_SAID:
        return ", ".join(map(_describe, results))
    ran = [_describe(result) for result in results if result.status in ATTEMPTED]
    reasons = Counter(result.reason for result in idle if result.reason).most_common()
    more = f" and {counted(len(reasons) - 1, 'other reason')}" if len(reasons) > 1 else ""
    why = f" ({units.shortened(reasons[0][0], 100)}{more})" if reasons else ""
    return ", ".join([*ran, describe_counts(idle) + why])


def describe_counts(results: Sequence[Result]) -> str:
    """``96 pass, 3 unsupported``."""
    return ", ".join(
        f"{number} {status.value}"
        for status in Status
        if (number := sum(each.status is status for each in results))
    )


def _describe(result: Result) -> str:
    check = result.case.workload.subject is Subject.CHECKS  # which no configuration runs
    text = result.status.value if check else f"{result.case.configuration.name} {result.status.value}"
    if result.status is not Status.PASS:
        return f"{text} ({units.shortened(result.reason, 100)})" if result.reason else text
    values = {s.metric: s.median for s in result.summaries if s.median is not None}
    if "latency" in values:
        text += f" {units.told(values['latency'], 's', inexact('latency', result.modifiers))}"
    if "speedup" in values:
        text += f" ({units.told(values['speedup'], 'ratio', inexact('speedup', result.modifiers))})"
    marks = "".join(f" [{modifier.value}]" for modifier in result.modifiers)
    return text + marks

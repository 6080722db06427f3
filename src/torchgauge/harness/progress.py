"""What a person sees while a campaign runs: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TextIO

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.records import Group, Plan, Result, Status, Workload, inexact
from torchgauge.results import units

if TYPE_CHECKING:
    from torchgauge.harness.runner import RunReport


class Progress(Protocol):
    """Hears of a campaign's progress."""

    def start(self, plan: Plan, report: RunReport) -> None:
        """The campaign starts, or goes on after ``report``."""

    def event(self, group: Group, event: dict[str, Any]) -> None:
        """A worker said something."""

    def results(self, results: Sequence[Result], report: RunReport) -> None:
        """Rows are durable."""

    def remark(self, text: str) -> None:
        """A fact about the run."""

    def finish(self, report: RunReport) -> None:
        """The run is published."""

    def stop(self) -> None:
        """Leave the terminal as it was, whatever happened; called last, and at least once."""


class PlainProgress:
    """One line per group, with the time left; for logs and pipes."""

    def __init__(self, stream: TextIO | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self.stream = stream or sys.stderr
        self.clock = clock
        self.total = self.before = 0
        self.began = clock.steady()

    def start(self, plan: Plan, report: RunReport) -> None:
        """Say how much there is to do."""
        self.total, self.before = report.planned, sum(report.counts.values())
        self.began = self.clock.steady()
        self.say(
            f"run {plan.run_id}: {self.total} cases in {len(plan.groups)} groups, {self.before} done before"
        )

    def event(self, group: Group, event: dict[str, Any]) -> None:
        """Phases are too many for a log."""

    def results(self, results: Sequence[Result], report: RunReport) -> None:
        """Say what the group's rows are and how long the rest may take."""
        if not results:
            return
        done = sum(report.counts.values())
        workload = results[0].case.workload
        name = f"{_model(workload)} {workload.mode} {workload.dtype} @{results[0].case.device}"
        described = describe_rows(results)
        if len({result.case.workload for result in results}) > 1:  # checks: many share a process
            name, described = f"{workload.suite} @{results[0].case.device}", describe_counts(results)
        self.say(f"[{done}/{self.total}] {name}: {described} | {self.left(done)}")

    def remark(self, text: str) -> None:
        """Pass a remark on."""
        self.say(f"note: {text}")

    def finish(self, report: RunReport) -> None:
        """The command prints the summary."""

    def stop(self) -> None:
        """Lines need no ending."""

    def left(self, done: int) -> str:
        """Words for the time left, from the pace so far."""
        fresh = done - self.before
        if done >= self.total:
            return f"took {units.duration(self.clock.steady() - self.began)}"
        if fresh <= 0:
            return "time left unknown"
        pace = (self.clock.steady() - self.began) / fresh
        return f"about {units.duration(pace * (self.total - done))} left"

    def say(self, text: str) -> None:
        """Write one line at once."""
        self.stream.write(text + "\n")
        self.stream.flush()


class RichProgress(PlainProgress):
    """A progress bar that names the case and phase in flight, above it the finished rows."""

    bar: Any = None

    def start(self, plan: Plan, report: RunReport) -> None:
        """Draw the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.bar = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("{task.description}", markup=False),
            console=Console(file=self.stream),
            transient=True,
            auto_refresh=False,  # a refreshing thread would take time from what is being measured
        )
        self.bar.start()
        self.task = self.bar.add_task("starting", total=report.planned, left="")
        super().start(plan, report)
        self.bar.update(self.task, completed=self.before, refresh=True)

    def event(self, group: Group, event: dict[str, Any]) -> None:
        """Show the phase in flight."""
        if event["ev"] == "phase":
            cases = {planned.case.key: planned.case for planned in group.cases}
            workload = cases.get(event.get("case") or "", group.cases[0].case).workload
            text = f"{_model(workload)} @{group.device}: {event['phase']}"
            self.bar.update(self.task, description=text, refresh=True)

    def results(self, results: Sequence[Result], report: RunReport) -> None:
        """Move the bar on."""
        super().results(results, report)
        done = sum(report.counts.values())
        self.bar.update(self.task, completed=done, left=self.left(done), refresh=True)

    def stop(self) -> None:
        """Take the bar away, if it was drawn."""
        if self.bar is not None:
            self.bar.stop()

    def say(self, text: str) -> None:
        """Write above the bar."""
        self.bar.console.print(text, markup=False, highlight=False, soft_wrap=True)


def choose_progress(stream: TextIO | None = None) -> Progress:
    """Rich on a terminal, plain lines elsewhere."""
    stream = stream or sys.stderr
    return RichProgress(stream) if stream.isatty() else PlainProgress(stream)


def _model(workload: Workload) -> str:
    """The model, with the point of its sweep where it has sizes of its own."""
    return f"{workload.suite}/{workload.model}" + (f"[{workload.point}]" if workload.shape else "")


def describe_rows(results: Sequence[Result]) -> str:
    """``eager pass 12.3 ms, inductor pass 8.1 ms (1.52x)``."""
    return ", ".join(_describe(result) for result in results)


def describe_counts(results: Sequence[Result]) -> str:
    """``96 pass, 3 unsupported``."""
    return ", ".join(
        f"{number} {status.value}"
        for status in Status
        if (number := sum(each.status is status for each in results))
    )


def _describe(result: Result) -> str:
    text = f"{result.case.configuration.name} {result.status.value}"
    if result.status is not Status.PASS:
        return f"{text} ({units.shortened(result.reason, 100)})" if result.reason else text
    values = {s.metric: s.median for s in result.summaries if s.median is not None}
    if "latency" in values:
        text += f" {units.told(values['latency'], 's', inexact('latency', result.modifiers))}"
    if "speedup" in values:
        text += f" ({units.told(values['speedup'], 'ratio', inexact('speedup', result.modifiers))})"
    marks = "".join(f" [{modifier.value}]" for modifier in result.modifiers)
    return text + marks

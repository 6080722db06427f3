"""What a person sees while base and head are measured: plain lines, and on a terminal what runs now."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Protocol, TextIO

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.records.comparison import ComparisonPlan, Launch, MetricVerdict, Pair, Side
from torchgauge.results import units
from torchgauge.results.comparing import verdict_words as words
from torchgauge.results.comparing.status_verdict import unfit


class AbProgress(Protocol):
    """Hears of an A/B run's progress."""

    def start(self, plan: ComparisonPlan, launches: int) -> None:
        """The run starts, or goes on after ``launches``."""

    def launch(self, number: int, pairs: Sequence[Pair]) -> None:
        """Fresh processes are started to measure ``pairs``."""

    def event(self, pair: Pair, side: Side, event: dict[str, Any]) -> None:
        """A worker said something."""

    def measured(self, launch: Launch, interim: MetricVerdict | None) -> None:
        """A launch of one pair is durable; ``interim`` is how its latency looks by now."""

    def remark(self, text: str) -> None:
        """A fact about the run."""

    def stop(self) -> None:
        """Leave the terminal as it was, whatever happened; called last, and at least once."""


class PlainAbProgress:
    """A line for each launch of each pair; for logs and pipes."""

    def __init__(self, stream: TextIO | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self.stream = stream or sys.stderr
        self.clock = clock
        self.began = clock.steady()

    def start(self, plan: ComparisonPlan, launches: int) -> None:
        """Say what is compared."""
        self.began = self.clock.steady()
        controls = sum(pair.control for pair in plan.pairs)
        extra = f", {controls} of them head against head" if controls else ""
        before = f", {launches} measurements were there" if launches else ""
        self.say(f"comparison {plan.run_id}: {words.pairs(len(plan.pairs))}{extra}{before}")
        self.say(f"  base: {_describe(plan.base.label, plan.base.python)}")
        self.say(f"  head: {_describe(plan.head.label, plan.head.python)}")

    def launch(self, number: int, pairs: Sequence[Pair]) -> None:
        """Say how many pairs are still measured."""
        many = words.pairs(len(pairs))
        self.say(f"launch {number}: {many}, after {units.duration(self.clock.steady() - self.began)}")

    def event(self, pair: Pair, side: Side, event: dict[str, Any]) -> None:
        """Phases are too many for a log."""

    def measured(self, launch: Launch, interim: MetricVerdict | None) -> None:
        """Say how the pair stands."""
        took = units.duration(launch.setup_s + launch.measure_s)
        text = units.shortened(unfit(launch), 200) or _so_far(interim)
        again = " (again)" if launch.confirms else ""
        self.say(f"  {launch.pair_id}{again}: {text} | {took}")

    def remark(self, text: str) -> None:
        """Pass a remark on."""
        self.say(f"note: {text}")

    def stop(self) -> None:
        """Lines need no ending."""

    def say(self, text: str) -> None:
        """Write one line at once."""
        self.stream.write(text + "\n")
        self.stream.flush()


class RichAbProgress(PlainAbProgress):
    """The same lines above one that names side and phase in flight."""

    bar: Any = None

    def start(self, plan: ComparisonPlan, launches: int) -> None:
        """Draw the line."""
        from rich.console import Console
        from rich.progress import Progress, TextColumn, TimeElapsedColumn

        self.bar = Progress(
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(file=self.stream),
            transient=True,
            auto_refresh=False,  # a refreshing thread would take time from what is being measured
        )
        self.bar.start()
        self.task = self.bar.add_task("starting", total=None)
        super().start(plan, launches)

    def launch(self, number: int, pairs: Sequence[Pair]) -> None:
        """Show that hosts are starting."""
        super().launch(number, pairs)
        self.bar.update(self.task, description=f"launch {number}: hosts start", refresh=True)

    def event(self, pair: Pair, side: Side, event: dict[str, Any]) -> None:
        """Show the phase in flight."""
        if event["ev"] == "phase":
            workload = pair.head.workload
            text = f"{workload.suite}/{workload.model}, {side.value}: {event['phase']}"
            self.bar.update(self.task, description=text, refresh=True)

    def stop(self) -> None:
        """Take the line away, if it was drawn."""
        if self.bar is not None:
            self.bar.stop()

    def say(self, text: str) -> None:
        """Write above the line."""
        if self.bar is None:
            super().say(text)
        else:
            self.bar.console.print(text, markup=False, highlight=False, soft_wrap=True)


class NoAbProgress(PlainAbProgress):
    """Says nothing."""

    def say(self, text: str) -> None:
        """Nothing."""


def choose_ab_progress(stream: TextIO | None = None) -> AbProgress:
    """Rich on a terminal, plain lines elsewhere."""
    stream = stream or sys.stderr
    return RichAbProgress(stream) if stream.isatty() else PlainAbProgress(stream)


def _so_far(interim: MetricVerdict | None) -> str:
    """``1.012x [1.004, 1.020] after 4 launches``."""
    if interim is None or interim.ratio is None:
        return "no estimate yet"
    return f"{words.ratio(interim)} after {words.launches(interim.launches)}"


def _describe(label: str, python: str) -> str:
    return python if label == python else f"{label} ({python})"

"""What a person sees while base and head are measured: plain lines, and on a terminal what runs now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchgauge.counted import counted
from torchgauge.harness.pool.watch import TIMED
from torchgauge.harness.run.live_lines import LiveLines, ends_no_case
from torchgauge.records.comparison import ComparisonPlan, Launch, MetricVerdict, Pair, Side
from torchgauge.results import units
from torchgauge.results.comparing import verdict_words as words
from torchgauge.results.comparing.status_verdict import unfit


class AbProgress(LiveLines):
    """A line for each launch of each pair; the live line names side and phase in flight."""

    @ends_no_case
    def start(self, plan: ComparisonPlan, launches: int) -> None:
        """Say what is compared: the run starts, or goes on after ``launches``."""
        self.begin()
        controls = sum(pair.control for pair in plan.pairs)
        extra = f", {controls} of them head against head" if controls else ""
        before = f", {counted(launches, 'measurement was', 'measurements were')} there" if launches else ""
        self.say(f"comparison {plan.run_id}: {words.pairs(len(plan.pairs))}{extra}{before}")
        self.say(f"  base: {_describe(plan.base.label, plan.base.python)}")
        self.say(f"  head: {_describe(plan.head.label, plan.head.python)}")

    @ends_no_case
    def launch(self, number: int, pairs: Sequence[Pair]) -> None:
        """Say how many pairs are still measured; fresh processes are started now."""
        self.timed.clear()
        self.say(f"launch {number}: {words.pairs(len(pairs))}, after {units.duration(self.elapsed_s)}")
        self.show(description=f"launch {number}: hosts start")

    @ends_no_case
    def event(self, pair: Pair, side: Side, event: dict[str, Any]) -> None:
        """Show the phase in flight; phases are too many for a log."""
        if event["ev"] == "phase":
            workload = pair.head.workload
            self.hear(side.value, event["phase"] in TIMED)
            self.show(description=f"{workload.suite}/{workload.model}, {side.value}: {event['phase']}")

    @ends_no_case
    def measured(self, launch: Launch, interim: MetricVerdict | None) -> None:
        """Say how a pair stands, of which a launch is durable; ``interim`` is its latency by now."""
        self.timed.clear()
        took = units.duration(launch.setup_s + launch.measure_s)
        text = units.shortened(unfit(launch), 200) or _so_far(interim)
        again = " (again)" if launch.confirms else ""
        line = f"  {launch.pair_id}{again}: {text} | {took}"
        if self.width is not None and len(line) > self.width:
            line = f"  {launch.pair_id}{again}:\n    {text} | {took}"
        self.say(line)


class VerboseAbProgress(AbProgress):
    """What ``-v`` shows: the lines of :class:`AbProgress`, with each phase of either side as it begins."""

    @ends_no_case
    def event(self, pair: Pair, side: Side, event: dict[str, Any]) -> None:
        """Say which phase of which side begins."""
        super().event(pair, side, event)
        if event["ev"] == "phase":
            self.say(f"  {self.doing}, after {self.elapsed_s:.1f} s")


def _so_far(interim: MetricVerdict | None) -> str:
    """``speed-up 1.012x [1.004, 1.020] after 4 launches``."""
    if interim is None or interim.ratio is None:
        return "no estimate yet"
    return f"{words.named(interim)} after {words.launches(interim.launches)}"


def _describe(label: str, python: str) -> str:
    return python if label == python else f"{label} ({python})"

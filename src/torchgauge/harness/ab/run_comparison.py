"""An A/B run from its plan to its verdicts: launch, journal, judge, and again until nothing is wanted."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Protocol

from torchgauge.counted import counted
from torchgauge.errors import UsageError
from torchgauge.harness.ab.comparison import Comparison, SideSetup
from torchgauge.harness.ab.launch_hosts import LaunchHosts, case_of, choose_cpus, threads_of
from torchgauge.harness.ab.pair_launch import Order, PairLaunch, SideLaunch
from torchgauge.harness.ab.wire import LONGEST_PATH
from torchgauge.harness.executors.executor import Submission
from torchgauge.harness.pool.worker_setup import WorkerSetup
from torchgauge.harness.run.runner import stop_on_interrupt
from torchgauge.processes.kept_process import scratch
from torchgauge.records import DeviceTarget, Environment, Plan, Status
from torchgauge.records.comparison import Launch, MetricVerdict, Pair, Side
from torchgauge.results.atomic_file import storage_errors
from torchgauge.results.comparing.comparison_store import (
    ComparisonFolder,
    begin_comparison,
    finish_comparison,
)
from torchgauge.results.comparing.gate_verdict import INTERRUPTED, control_exit_code, exit_code
from torchgauge.results.comparing.judgement import Wanted
from torchgauge.results.journal import End, Journal, Kind, Note, RunState


class Judging(Protocol):
    """The part of :class:`torchgauge.results.comparing.judgement.Judge` that a run needs."""

    def add(self, launch: Launch) -> None:
        """Take one launch of one pair."""

    def wanted(self) -> tuple[Wanted, ...]:
        """What the next launch should measure; empty where nothing more can or need be known."""

    def nothing_to_compare(self) -> str:
        """Why no pair that is asked for can be compared any more; empty where one can, or may yet."""

    def interim(self, pair_key: str) -> MetricVerdict | None:
        """The latency of the pair as it looks now."""

    def verdicts(self) -> list[MetricVerdict]:
        """All metrics of all pairs."""


JudgeOf = Callable[[Sequence[Environment]], Judging]
"""Makes the judge once it is known where base and head run: history is that of the class of runner."""


@dataclass
class ComparisonEnding:
    """What came out of an A/B run, for people and for exit codes."""

    run_id: str
    folder: Path
    control: bool
    verdicts: list[MetricVerdict] = field(default_factory=list)
    interrupted: bool = False
    out_of_time: bool = False

    @property
    def state(self) -> RunState:
        """How the run ended."""
        if self.interrupted:
            return RunState.INTERRUPTED
        return RunState.OUT_OF_BUDGET if self.out_of_time else RunState.COMPLETE

    @property
    def exit_code(self) -> int:
        """130 interrupted; else what the gate says, or of an A/A run whether it compared anything."""
        if self.interrupted:
            return INTERRUPTED
        code = control_exit_code if self.control else exit_code
        return code(self.verdicts, incomplete=self.out_of_time)


def run_comparison(
    comparison: Comparison,
    judge_of: JudgeOf,
    folder: ComparisonFolder | None = None,
    *,
    max_time_s: float | None = None,
) -> ComparisonEnding:
    """Run the comparison, or what is left of it in ``folder``; returns when its verdicts are published.

    No launch but the very first is started that would probably end more than ``max_time_s`` seconds from now.
    """
    until = None if max_time_s is None else comparison.clock.steady() + max_time_s
    folder = folder or begin_comparison(comparison.store, comparison.plan)
    with stop_on_interrupt(lambda: comparison.progress.doing, folder.path) as stop:
        running = launch_by_launch(comparison, judge_of, stop, folder, until=until)
        while True:
            try:
                next(running)
            except StopIteration as done:
                ending: ComparisonEnding = done.value
                return ending


def launch_by_launch(
    comparison: Comparison,
    judge_of: JudgeOf,
    stop: threading.Event,
    folder: ComparisonFolder | None = None,
    *,
    until: float | None = None,
) -> Generator[None, None, ComparisonEnding]:
    """The same, which pauses after each launch: several comparisons can take turns on one machine.

    While it pauses it has no process. ``stop`` ends it after what runs, with what is known by then; no launch
    but the very first is started that would probably end after ``until``, in seconds of the clock.
    """
    folder = folder or begin_comparison(comparison.store, comparison.plan)
    ending = ComparisonEnding(folder.run_id, folder.path, all(pair.control for pair in comparison.plan.pairs))
    work = folder.path / "work"
    shutil.rmtree(work, ignore_errors=True)
    with storage_errors(work):
        work.mkdir()
    try:
        with folder_for_sockets() as sockets, folder.open_journal() as journal:
            if journal.state is RunState.COMPLETE:
                raise UsageError(
                    f"comparison {folder.run_id} is complete: there is nothing to resume",
                    hint="start a new comparison",
                )
            series = LaunchSeries(comparison, folder, journal, stop, sockets)
            yield from series.run(judge_of, ending, until)
        finish_comparison(comparison.store, folder, comparison.plan)
    finally:
        comparison.progress.stop()
        shutil.rmtree(work, ignore_errors=True)
    return ending


def folder_for_sockets() -> AbstractContextManager[Path]:
    """A new folder whose path is short enough for sockets, for as long as it is entered."""
    long = len(tempfile.gettempdir().encode()) > LONGEST_PATH - 30
    return scratch("ab", "/tmp" if long else None)  # noqa: S108  the folder below it is private


@dataclass
class LaunchSeries:
    """Launch after launch of one A/B run, as long as the judge wants more."""

    comparison: Comparison
    folder: ComparisonFolder
    journal: Journal
    stop: threading.Event
    sockets: Path
    filled: set[tuple[str, Side]] = field(default_factory=set)
    said: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        plan = self.comparison.plan
        self.pairs = {pair.key: pair for pair in plan.pairs}
        self.work = self.folder.path.absolute() / "work"
        self.setups = {
            (side, target): self._setup(setup, target)
            for side, setup in self.comparison.sides.items()
            for target in {group.device for group in setup.groups}
        }

    def run(
        self, judge_of: JudgeOf, ending: ComparisonEnding, until: float | None
    ) -> Generator[None, None, None]:
        """Measure, journal and judge; pauses after each launch, with all hosts closed."""
        comparison, clock = self.comparison, self.comparison.clock
        done = list(self.folder.launches())
        comparison.progress.start(comparison.plan, len(done))
        if done:
            self._note(f"resumed with {counted(len(done), 'measurement')} done")
        for text in dict.fromkeys(t for side in comparison.sides.values() for t in side.notes):
            self._note(text)
        number = max((launch.number for launch in done), default=0)
        longest = longest_of(done)

        def over() -> bool:
            return until is not None and longest > 0 and clock.steady() + longest > until

        hosts: LaunchHosts | None = self._hosts(number + 1)
        try:
            assert hosts is not None
            # Starting the hosts of a launch that is not begun would be most of its time.
            judge = judge_of(self.folder.environments() if over() else self._describe(hosts))
            for launch in done:
                judge.add(launch)
            while not self.stop.is_set() and (wanted := judge.wanted()):
                if over():
                    need = counted(len(wanted), "pair")
                    self._note(f"the time limit was reached: another launch is needed for {need}")
                    ending.out_of_time = True
                    break
                number, started = number + 1, clock.steady()
                hosts = hosts or self._hosts(number)
                self._launch(number, hosts, wanted, judge)
                hosts.close()
                hosts = None
                longest = max(longest, clock.steady() - started)
                yield
        finally:
            if hosts is not None:
                hosts.close()
        if why := judge.nothing_to_compare():
            self._note(f"it ends early: {why}")
        ending.interrupted = self.stop.is_set()
        ending.verdicts = judge.verdicts()
        self.journal.append(Kind.VERDICT, ending.verdicts)
        self.journal.append(Kind.END, [End(ending.state, clock.now())])

    # --- one launch --------------------------------------------------------------------------

    def _hosts(self, number: int) -> LaunchHosts:
        comparison = self.comparison
        specs = {side: setup.spec for side, setup in comparison.sides.items()}
        return LaunchHosts(specs, self.setups, f"launch {number} of {comparison.plan.seed}")

    def _describe(self, hosts: LaunchHosts) -> list[Environment]:
        """The environments of both sides on every device, journaled."""
        found: list[Environment] = []
        for target in sorted({target for _, target in self.setups}, key=str):
            pair = next((p for p in self.pairs.values() if p.head.device == target), None)
            if pair is None or self.stop.is_set():
                continue
            hosts.open([pair])
            for side in Side:
                name = f"environment-{side.value}-{target}.log"
                environment = hosts.describe(side, pair, self.folder.logs / name)
                if environment is not None:
                    found.append(environment)
                elif not self.stop.is_set():
                    self._note(f"the environment of {side.value} on {target} is unknown; see logs/{name}")
        self.journal.append(Kind.ENVIRONMENT, found)
        return found

    def _launch(self, number: int, hosts: LaunchHosts, wanted: Sequence[Wanted], judge: Judging) -> None:
        """Measure every wanted pair in random order; pairs whose cases want other hosts come later."""
        asked = {each.pair_key: each for each in wanted}
        pairs = [self.pairs[key] for key in asked]
        hosts.dice("order of the pairs").shuffle(pairs)
        self.comparison.progress.launch(number, pairs)
        cpus: dict[int | None, tuple[int, ...]] = {}
        for _, shared in groupby(sorted(pairs, key=_hosts_of), key=_hosts_of):
            together = list(shared)
            opened = self.comparison.clock.steady()
            hosts.open(together)
            share = (self.comparison.clock.steady() - opened) / len(together)
            for pair in together:
                if self.stop.is_set():
                    return
                threads = threads_of(pair, self.comparison.plan.settings.threads)
                if threads not in cpus:
                    cpus[threads] = choose_cpus(threads, hosts.dice(f"cpus for {threads}"))
                launch = self._measure(number, hosts, pair, asked[pair.key], cpus[threads])
                for text in hosts.notes():
                    self._note(text)
                if launch is None:
                    return
                launch = replace(launch, setup_s=launch.setup_s + share)
                self.journal.append(Kind.LAUNCH, [launch])
                judge.add(launch)
                self.comparison.progress.measured(launch, judge.interim(pair.key))

    def _measure(
        self, number: int, hosts: LaunchHosts, pair: Pair, wanted: Wanted, cpus: tuple[int, ...]
    ) -> Launch | None:
        order = Order(
            pair=pair,
            number=number,
            confirms=wanted.confirms,
            abba_blocks=wanted.abba_blocks,
            first=hosts.first(pair),
            cpus=cpus,
            sockets=self.sockets,
            logs=self.folder.logs,
            conditions=tuple(sorted(hosts.conditions.items())),
        )
        side_launches = {side: self._side_launch(side, pair, hosts) for side in Side}
        launch = PairLaunch(
            order,
            side_launches,
            hosts.dice(f"quads of {pair.key}"),
            self.stop.is_set,
            lambda side, event: self.comparison.progress.event(pair, side, event),
        ).run()
        if launch is None:
            return None
        sides = ((Side.BASE, launch.base), (Side.HEAD, launch.head))
        self.filled |= {(pair.key, side) for side, outcome in sides if outcome.status is Status.PASS}
        return launch

    def _side_launch(self, side: Side, pair: Pair, hosts: LaunchHosts) -> SideLaunch:
        setup = self.comparison.sides[Side.HEAD if pair.control else side]
        group, planned = setup.find(case_of(side, pair).key)
        cache = self.work / f"cache-{pair.key}-{side.value}"
        filled = (pair.key, side) in self.filled
        return SideLaunch(hosts.setup(side, pair), hosts.host(side, pair), group, planned, cache, filled)

    # --- what is kept ------------------------------------------------------------------------

    def _note(self, text: str) -> None:
        """Journal a note; the same one comes with every launch and is kept once."""
        if text not in self.said:
            self.said.add(text)
            self.journal.append(Kind.NOTE, [Note(text, self.comparison.clock.now())])
            self.comparison.progress.note(text)

    def _stopped(self) -> bool:
        """Whether nothing more is to be measured; asked often, so that the live line moves by it."""
        self.comparison.progress.tick()
        return self.stop.is_set()

    def _setup(self, setup: SideSetup, target: DeviceTarget) -> WorkerSetup:
        plan = self.comparison.plan
        groups = [group for group in setup.groups if group.device == target]
        submission = Submission(
            plan=Plan(plan.run_id, plan.created_at, plan.command, plan.settings, setup.groups),
            groups=setup.groups,
            folder=self.folder.path,
            devices=setup.devices,
            suites=setup.suites,
            python=setup.spec.python,
            clock=self.comparison.clock,
            cancelled=self._stopped,
            on_event=lambda group, event: None,
        )
        return WorkerSetup(submission, target, groups, self.work)


def longest_of(launches: Sequence[Launch]) -> float:
    """Seconds of the longest of ``launches``, over all pairs of one number; 0 where there are none."""
    took: dict[int, float] = defaultdict(float)
    for launch in launches:
        took[launch.number] += launch.setup_s + launch.measure_s
    return max(took.values(), default=0.0)


def _hosts_of(pair: Pair) -> str:
    """Pairs with the same one share their hosts: device, and variables of the configurations."""
    return str((str(pair.head.device), pair.base.configuration.env, pair.head.configuration.env))

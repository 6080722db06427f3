"""A campaign from its plan to its last row: execute, journal, publish; whatever happens, nothing is lost."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.counted import counted
from torchgauge.devices.device import Device
from torchgauge.errors import TorchgaugeError, UsageError
from torchgauge.harness.executors.executor import Executor, Submission, Yield, chosen_words
from torchgauge.harness.executors.silence import Silence, SilentExecutorError
from torchgauge.harness.run.disk_space import require_space
from torchgauge.harness.run.progress import Progress
from torchgauge.harness.run.row_keeper import RowKeeper
from torchgauge.harness.run.run_report import RunReport
from torchgauge.harness.run.versions import MIXED, Versions
from torchgauge.processes.cursor import show_cursor
from torchgauge.processes.kept_process import leave
from torchgauge.records import Again, Group, Plan, Status
from torchgauge.registry import load
from torchgauge.results.hostile_text import visible
from torchgauge.results.journal import End, Journal, Kind, Note, RunState
from torchgauge.results.store import RunFolder, Store
from torchgauge.suites.suite import Suite


@dataclass(frozen=True)
class Campaign:
    """Everything that running a plan needs.

    At ``until``, a moment of ``clock.steady()``, what runs is ended: the budget is spent (None: never). Where
    versions may be ``mixed``, each row says its own.
    """

    plan: Plan
    store: Store
    devices: Mapping[str, Device]
    suites: Mapping[str, Suite]
    progress: Progress
    python: str
    executor: str = "local"
    clock: Clock = SYSTEM_CLOCK
    options: Any = None
    until: float | None = None
    mixed: bool = False
    instead: ClassVar[str] = "start a new run; or repeat cases of status infra: --resume RUN --retry infra"
    """What to do where nothing is left to resume."""

    def run(self, folder: RunFolder | None = None) -> RunReport:
        """Run the plan, or what is left of it in ``folder``; returns when the run is published.

        Raises :class:`InfrastructureError`, with nothing written, where the disk has no room for a new run.
        """
        if folder is None:
            require_space(self.store.path, len(self.plan.cases))
            folder = self.store.begin(self.plan)
        words = (*chosen_words(self.executor, self.options), *([MIXED] if self.mixed else []))
        report = RunReport(self.plan.run_id, len(self.plan.cases), chosen=words)
        try:
            with stop_on_interrupt(lambda: self.progress.doing, folder.path) as stop:
                self._measure(folder, report, stop)
                self.progress.show(description="writing the tables of the run", left="")
                self._publish()
            report.counts[Status.NOT_RUN] += report.planned - sum(report.counts.values())
        finally:
            self.progress.stop()
        return report

    def _publish(self) -> None:
        """Turn the journal into tables; a part of a run leaves that to the merge."""
        self.store.finish(self.plan.run_id, self.plan)

    def _measure(self, folder: RunFolder, report: RunReport, stop: threading.Event) -> None:
        """Journal every row; raises :class:`UsageError` where the run is complete already."""
        with folder.open_journal() as journal:
            mine = {each.case.key for each in self.plan.cases}  # a part may hold other groups, too
            done = mine.intersection(journal.done)
            if journal.state is RunState.COMPLETE:
                raise UsageError(
                    f"run {self.plan.run_id} is complete: there is nothing to resume",
                    hint=self.instead,
                )
            for result in journal.results():
                if result.case.key in done:
                    report.add(result)
            self.progress.start(self.plan, report)
            self._begin(journal)
            if done:
                journal.append(
                    Kind.NOTE, [Note(f"resumed with {counted(len(done), 'case')} done", self.clock.now())]
                )
            left = {each.case.key: each for each in self.plan.cases if each.case.key not in done}
            versions = Versions(self.mixed)
            keeper = RowKeeper(self.plan, journal, report, self.progress, self.clock, left, versions)
            for text in (note for suite in self.suites.values() for note in suite.notes):
                keeper.note(text)
            how, silence = "ended without a result for this case", Silence.within(self.plan)
            try:
                # what a stranger prints is no answer of ours
                with redirect_stdout(sys.stderr), silence.ended():
                    for item in self._execute(folder, keeper, stop, silence):
                        silence.heard()
                        keeper.keep(item)
            except (TorchgaugeError, KeyboardInterrupt):
                raise
            except SilentExecutorError as error:
                how, report.out_of_budget = str(error), False
            except BaseException as error:  # noqa: BLE001  a stranger's executor: its cases end by it
                how, report.out_of_budget = f"raised {type(error).__name__}: {error}", False
            report.interrupted = stop.is_set()
            report.out_of_budget |= bool(self._spent() and keeper.left) and not report.interrupted
            if not (report.interrupted or report.out_of_budget):
                keeper.lose(f"executor {self.executor!r} {how}")
            state = RunState.OUT_OF_BUDGET if report.out_of_budget else RunState.COMPLETE
            state = RunState.INTERRUPTED if report.interrupted else state
            journal.append(Kind.END, [End(state, self.clock.now())])

    def _spent(self) -> bool:
        return self.until is not None and self.clock.steady() >= self.until

    def _begin(self, journal: Journal) -> None:
        """Say what is not in the plan, before anything runs."""

    def _execute(
        self, folder: RunFolder, keeper: RowKeeper, stop: threading.Event, silence: Silence
    ) -> Iterator[Yield]:
        def cancelled() -> bool:
            silence.heard()
            self.progress.tick()
            return stop.is_set() or self._spent()

        def on_event(group: Group, event: dict[str, Any]) -> None:
            silence.heard()
            self.progress.event(group, event)

        executor: Executor = load("torchgauge.executors", self.executor)
        submission = Submission(
            plan=self.plan,
            groups=tuple(cut for group in self.plan.groups if (cut := group.only(keeper.left)).cases),
            folder=folder.path,
            devices=self.devices,
            suites=self.suites,
            python=self.python,
            clock=self.clock,
            cancelled=cancelled,
            on_event=on_event,
            options=self.options,
            mixed=self.mixed,
            made={
                key: sum(said.again is Again.ASKED for said in each)
                for key, each in keeper.attempts.earlier.items()
            },
        )
        return executor.submit(submission)


@contextmanager
def stop_on_interrupt(
    doing: Callable[[], str] = lambda: "what runs", folder: Path | None = None
) -> Iterator[threading.Event]:
    """Turn the first Ctrl-C (or SIGTERM) into a flag, so that finished rows are kept; the second ends us.

    The first says at once what is waited for, in the words of ``doing``. The second leaves nothing of ours in
    ``folder`` but what a resume goes on with.
    """
    stop = threading.Event()

    def handle(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            if folder is not None:
                shutil.rmtree(folder / "work", ignore_errors=True)
            show_cursor()
            leave()
        stop.set()
        said = f"stopping: waiting for {doing()} to end; Ctrl-C again stops at once"
        with suppress(OSError):
            os.write(2, f"\n{visible(said)}\n".encode())  # no stream: this may have interrupted it

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

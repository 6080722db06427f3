"""The pool of workers of one device: groups are built, checked and compiled side by side, timed one by one.

Each runner has a thread, a host and workers of its own, and takes the next group when it has done one. Who
times has the machine to itself (:mod:`.timing_lock`). The caller's thread takes their rows from a queue, so
that the journal has one writer. A pool of one runner needs neither threads nor lock.

A group whose worker ran out of memory, or was killed from outside, may have done so because of its
neighbours: it is run again at the end with nothing beside it, and only that counts.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Union

from torchgauge.errors import TorchgaugeError
from torchgauge.harness.executors.executor import BudgetSpent, RunNote, Submission, Yield
from torchgauge.harness.pool.code_caches import CodeCaches
from torchgauge.harness.pool.group_runner import GroupRunner
from torchgauge.harness.pool.pace import Pace
from torchgauge.harness.pool.timing_lock import TimingLock
from torchgauge.harness.pool.worker_setup import WorkerSetup, variables_of
from torchgauge.records import Cause, DeviceTarget, Group, Result, Status

LISTEN_S = 0.5
"""Seconds between looks at whether all runners have ended."""


@dataclass(frozen=True)
class Done:
    """A group with its rows, and whether another runner had work while it ran."""

    group: Group
    rows: list[Result]
    beside: bool


Message = Union[Done, RunNote, BaseException]


@dataclass
class WorkerPool:
    """The workers of one device; so many groups at once as :func:`groups_at_once` says.

    No group but the first is started that would probably end after ``until`` (steady seconds), as ``pace``
    judges: a run with any budget gets on, and so does each of its resumptions.
    """

    submission: Submission
    target: DeviceTarget
    work: Path
    groups: list[Group]
    pace: Pace
    until: float | None = None
    left: list[Group] = field(default_factory=list)
    messages: queue.Queue[Message] = field(default_factory=queue.Queue)
    busy: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)
    mutex: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.runnable = [g for g in self.groups if any(p.declined is None for p in g.cases)]
        self.count = groups_at_once(self.runnable, self.submission.plan.settings.prefetch)
        self.lock = TimingLock() if self.count > 1 else None
        self.caches = CodeCaches(self.submission.plan, self.work / "shared_budget")

    def run(self) -> Iterator[Yield]:
        """Run every group for which there is time; what is to be kept, in lists that belong together."""
        submission = replace(self.submission, cancelled=self.cancelled)
        setup = WorkerSetup(submission, self.target, self.groups, self.work)
        runners = [GroupRunner(setup, self.pace, self.caches, self.lock) for _ in range(self.count)]
        try:
            if self.runnable:
                self.open_hosts(runners)
                yield from runners[0].calibrate("start")
            for runner in runners[1:]:
                runner.environment_id, runner.absent = runners[0].environment_id, runners[0].absent
            alone: list[Group] = []
            self.left = [group for group in self.groups if may_have_neighbours(group)]
            for item in self.at_once(runners):
                if isinstance(item, Done) and item.beside and suspicious(item.rows):
                    alone.append(item.group)
                    yield RunNote(f"{_named(item.group)} is run again at the end, alone: {_why(item.rows)}")
                else:
                    yield item.rows if isinstance(item, Done) else item
            for runner in runners[1:]:
                runner.close()
            self.left = [group for group in self.groups if not may_have_neighbours(group)]
            for item in self.at_once(runners[:1]):
                yield item.rows if isinstance(item, Done) else item
            yield from self.rest(runners[0], alone)
            measures = any(not group.checks for group in self.runnable)
            if measures and runners[0].absent is None and not self.submission.cancelled():
                yield from runners[0].calibrate("end")
        finally:
            for runner in runners:
                runner.close()
            self.caches.close()

    def cancelled(self) -> bool:
        """Whether the runners are to end at once."""
        return self.stopping.is_set() or self.submission.cancelled()

    def open_hosts(self, runners: list[GroupRunner]) -> None:
        """Start the hosts together: each takes seconds to import what its workers share.

        Each is the one that most groups need; where it does not come up, the first worker says so.
        """
        if self.lock is None:
            return
        variables = variables_of(next(group for group in self.groups if group.cases))
        hosts = [runner.host(variables) for runner in runners]
        threads = [threading.Thread(target=_try, args=(host.ready,), name="open host") for host in hosts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    # --- at once -----------------------------------------------------------------------------

    def at_once(self, runners: list[GroupRunner]) -> Iterator[Done | RunNote | BudgetSpent]:
        """What the runners do until no group is left, or no time for one."""
        if self.lock is None or len(runners) == 1:
            yield from self.served(runners[0])
        else:
            yield from self.in_threads(runners, self.lock)
        if self.left and not self.submission.cancelled():
            yield RunNote(f"the budget of {self.target} is spent: {len(self.left)} groups are left")
            yield BudgetSpent()

    def in_threads(self, runners: list[GroupRunner], lock: TimingLock) -> Iterator[Done | RunNote]:
        """What the runners do, each in a thread; raises what one of them raised."""
        threads = [threading.Thread(target=self.serve, args=(each,), name="runner") for each in runners]
        for thread in threads:
            thread.start()
        try:
            while any(thread.is_alive() for thread in threads) or not self.messages.empty():
                try:
                    message = self.messages.get(timeout=LISTEN_S)
                except queue.Empty:
                    continue
                if isinstance(message, BaseException):
                    raise message
                lock.wait_for_quiet(self.cancelled)  # writing rows takes a core
                yield message
        finally:
            self.stopping.set()
            for thread in threads:
                thread.join()
            self.stopping.clear()

    def serve(self, runner: GroupRunner) -> None:
        """Say through the queue what ``runner`` does."""
        try:
            for message in self.served(runner):
                self.messages.put(message)
        except BaseException as error:  # noqa: BLE001  the caller's thread raises it
            self.messages.put(error)

    def served(self, runner: GroupRunner) -> Iterator[Done | RunNote]:
        """Run groups on ``runner`` until there is none left."""
        while (group := self.take()) is not None:
            rows = runner.run_group(group)
            with self.mutex:
                beside, self.busy = self.busy > 1, self.busy - 1
            yield from runner.said()
            yield Done(group, rows, beside)

    def take(self) -> Group | None:
        """The next group; None where there is none, or no time for it."""
        left_s = None
        if self.until is not None:
            left_s = self.until - self.submission.clock.steady() - self.pace.closing_s
        with self.mutex:
            number = self.pace.next_to_start(self.left, left_s)
            if self.cancelled() or number is None:
                return None
            self.busy += 1
            return self.left.pop(number)

    def rest(self, runner: GroupRunner, groups: list[Group]) -> Iterator[Yield]:
        """Run ``groups`` with nothing beside them."""
        for group in groups:
            if self.submission.cancelled():
                return
            yield runner.run_group(group)
            yield from runner.said()


def groups_at_once(runnable: list[Group], prefetch: int) -> int:
    """How many of the ``runnable`` groups of a device to prepare at once, where ``prefetch`` are allowed."""
    return max(1, min(prefetch, sum(map(may_have_neighbours, runnable))))


def may_have_neighbours(group: Group) -> bool:
    """Whether others may be prepared beside ``group``.

    Checks ask a device about its memory, streams and clocks; several processes need the cores, and wait for
    each other.
    """
    return not group.checks and group.workload.processes == 1


def suspicious(rows: list[Result]) -> bool:
    """Whether a row says something that neighbours may have brought about."""
    return any(row.status is Status.OOM or row.cause is Cause.KILLED for row in rows)


def _named(group: Group) -> str:
    return f"{group.workload.suite}/{group.workload.model} ({group.workload.mode})"


def _why(rows: list[Result]) -> str:
    return next(row.reason for row in rows if suspicious([row])) or "it ran out of memory"


def _try(open_host: Callable[[], object]) -> None:
    """Call ``open_host``; what keeps it from coming up is no trace of a thread."""
    with suppress(TorchgaugeError, OSError):
        open_host()

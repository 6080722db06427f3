"""The pool of workers of one device: groups are built, checked and compiled side by side, timed one by one.

Each runner has a thread, a host and workers of its own, and takes the next group when it has done one. Who
times has the machine to itself (:mod:`.timing_lock`). The caller's thread takes their rows from a queue, so
that the journal has one writer. A pool of one runner needs neither threads nor lock.

A group whose worker ran out of memory, or was killed from outside, may have done so because of its
neighbours: it is run again at the end with nothing beside it, and only that counts. What the environment
broke is left to whoever started the pool, to be tried once more (:mod:`.devices_at_once`).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from torchgauge.counted import counted
from torchgauge.devices.cpu_times import allowed_cpus
from torchgauge.errors import TorchgaugeError
from torchgauge.harness.executors.executor import Attempted, BudgetSpent, RunNote, Submission, Yield
from torchgauge.harness.pool.code_caches import CodeCaches
from torchgauge.harness.pool.device_health import DeviceHealth
from torchgauge.harness.pool.device_lease import leases, said
from torchgauge.harness.pool.group_runner import GroupRunner
from torchgauge.harness.pool.judged_rows import Done, is_broken, named, part_of, suspicious, why_suspicious
from torchgauge.harness.pool.pace import Pace
from torchgauge.harness.pool.side_by_side import side_by_side
from torchgauge.harness.pool.timing_lock import TimingLock
from torchgauge.harness.pool.worker_setup import WorkerSetup, variables_of
from torchgauge.records import INCOMPLETE, Again, Calibration, Cause, Group, Phase, Result
from torchgauge.suites.suite import HOST


@dataclass
class WorkerPool:
    """The workers of one device; so many groups at once as :func:`groups_at_once` says.

    No group but the first is started that would probably end after ``until`` (steady seconds), as ``pace``
    judges: a run with any budget gets on, and so does each of its resumptions. ``lock`` is shared with pools
    of other devices where they run beside this one. Cases with a key in ``retried`` are not tried once more,
    and ``siblings`` says whether another device of the kind may take what this one leaves. A ``brief`` pool
    measures no calibration.

    When it has run, ``again`` holds what is to be tried once more, ``alone`` what is to be run with nothing
    beside it, and ``moved`` what a device that has left did not get to.
    """

    submission: Submission
    health: DeviceHealth
    work: Path
    groups: list[Group]
    pace: Pace
    until: float | None = None
    lock: TimingLock | None = None
    prefetch: int = 1
    brief: bool = False
    retried: set[str] = field(default_factory=set)
    again: list[Group] = field(default_factory=list)
    moved: list[Group] = field(default_factory=list)
    made: Counter[str] = field(default_factory=Counter)
    alone: list[Group] = field(default_factory=list)
    left: list[Group] = field(default_factory=list)
    busy: int = 0
    calibrations: dict[str, Calibration] = field(default_factory=dict)
    siblings: bool = False
    never_there: bool = False
    stopping: threading.Event = field(default_factory=threading.Event)
    mutex: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.runnable = [g for g in self.groups if any(p.declined is None for p in g.cases)]
        settings, on_host = self.submission.plan.settings, self.health.device.torch_type == HOST
        most = min(self.prefetch, workers_of_host(settings.threads)) if on_host else self.prefetch
        self.count = groups_at_once(self.runnable, most)
        self.neighbours = self.lock is not None
        if self.count > 1 and self.lock is None:
            self.lock = TimingLock()
        self.caches = CodeCaches(self.submission.plan, self.work / "shared_budget")

    def run(self) -> Iterator[Yield]:
        """Run every group for which there is time; what is to be kept, in lists that belong together."""
        yield from map(RunNote, self.leased())
        submission = replace(self.submission, cancelled=self.cancelled)
        setup = WorkerSetup(submission, self.health.target, self.groups, self.work, self.brief)
        runners = [
            GroupRunner(setup, self.pace, self.caches, self.health, self.lock) for _ in range(self.count)
        ]
        try:
            if self.runnable:
                self.open_hosts(runners)
                yield from self.calibrated(runners[0], "start")
                yield from self.opened(runners[0])
            for runner in runners[1:]:
                runner.environment_id, runner.absent = runners[0].environment_id, runners[0].absent
            self.left = [group for group in self.groups if may_have_neighbours(group)]
            yield from self.kept(self.at_once(runners))
            for runner in runners[1:]:
                runner.close()
            self.left = [group for group in self.groups if not may_have_neighbours(group)]
            yield from self.kept(self.at_once(runners[:1]))
            if not self.neighbours:  # else whoever started us does it when they have ended, too
                yield from self.kept(self.rest(runners[0]))
            measures = any(not group.checks for group in self.runnable) and not self.brief
            if measures and runners[0].absent is None and not self.cancelled() and not self.health.gone:
                yield from self.calibrated(runners[0], "end")
        finally:
            for runner in runners:
                runner.close()
            self.caches.close()

    def calibrated(self, runner: GroupRunner, at: str) -> Iterator[Yield]:
        """What ``runner`` says of the device ``at`` the start or the end; one that drifted is asked again."""
        for item in runner.calibrate(at):
            if isinstance(item, Calibration):
                self.calibrations[at] = item
            yield item
        start, end = self.calibrations.get("start"), self.calibrations.get("end")
        if at == "end" and start and end and self.health.drifted(start, end):
            for item in runner.calibrate(at):
                if isinstance(item, Calibration) and (said := self.health.drifted(start, item)):
                    self.health.leave(said, lasting=True)
                yield item
        yield from self.heard()

    def opened(self, runner: GroupRunner) -> Iterator[Yield]:
        """Ask a device that was not there at the start once more; where another may take its place it leaves.

        Where none may, each of its cases says what was wrong with it.
        """
        if runner.absent is not None and self.health.place is not None:
            runner.absent = None
            yield from runner.calibrate("start")
        if runner.absent is None:
            return
        if self.siblings:
            self.health.leave(f"it could not be opened: {runner.absent.message.partition(chr(10))[0]}")
        self.never_there = not self.siblings
        yield from self.heard()

    def leased(self) -> list[str]:
        """Take the devices' leases, and say what had to be ended for that; raises as :func:`leases`."""
        most = max((group.workload.processes for group in self.groups), default=1)
        leases(self.health.device, self.health.target, most)
        return said()

    def heard(self) -> Iterator[RunNote]:
        """What became of the device since this was last asked."""
        return map(RunNote, self.health.said())

    def kept(self, items: Iterator[Done | RunNote | BudgetSpent]) -> Iterator[Yield]:
        """What is to be kept of ``items``; groups to be run with nothing beside them are set aside."""
        for item in items:
            if not isinstance(item, Done):
                yield item
                continue
            if item.earlier:
                yield Attempted(item.earlier, Again.ASKED)
            if item.beside and suspicious(item.rows):
                broken = [row for row in item.rows if is_broken(row)]
                self.retried.update(row.case.key for row in broken)
                self.alone.append(part_of(item.group, item.rows))
                yield Attempted(tuple(item.rows), Again.ALONE)
                yield RunNote(
                    f"{named(item.group)} is retried at the end, alone: {why_suspicious(item.rows)}"
                )
                continue
            yield from self.judged(item)
        if self.health.gone and self.left:
            self.moved += self.left
            self.left = []

    def judged(self, done: Done) -> Iterator[Yield]:
        """The rows of ``done``, without those of cases that are tried once more; the device hears of them."""
        may = not self.never_there and not done.group.checks  # whose answer it is that the device is ill
        lost = next((row for row in done.rows if row.cause is Cause.NO_DEVICE), None)
        if lost is not None and may:
            opened = lost.phase is not Phase.START
            self.health.lost(done.group.workload.model, lost.reason, began=lost.started_at, opened=opened)
        broken = [row for row in done.rows if may and is_broken(row) and row.case.key not in self.retried]
        keys = {row.case.key for row in broken}
        if broken:
            self.retried |= keys
            self.again.append(part_of(done.group, broken))
            yield Attempted(tuple(broken), Again.INFRASTRUCTURE)
            yield RunNote(f"{named(done.group)} is retried: {broken[0].reason}")
        yield [row for row in done.rows if row.case.key not in keys]
        yield from self.heard()

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
            lock = self.lock
            sources = [self.served(each) for each in runners]
            # writing rows takes a core
            yield from side_by_side(sources, lambda: lock.wait_for_quiet(self.cancelled), self.stopping)
        if self.left and not self.submission.cancelled() and not self.health.gone:
            said = (
                f"device '{self.health.target}': the time left of --budget is too short for "
                f"{counted(len(self.left), 'more group')} of cases"
            )
            yield RunNote(said)
            yield BudgetSpent()

    def served(self, runner: GroupRunner) -> Iterator[Done | RunNote]:
        """Run groups on ``runner`` until there is none left."""
        while (group := self.take()) is not None:
            yield from self.attempts_at(runner, group)
            with self.mutex:
                self.busy -= 1

    def attempts_at(self, runner: GroupRunner, group: Group) -> Iterator[Done | RunNote]:
        """Run ``group``, and its cases again as often as somebody asked for."""
        while True:
            rows = runner.run_group(group)
            with self.mutex:
                beside = self.neighbours or self.busy > 1
            yield from runner.said()
            more = () if beside and suspicious(rows) else self.asked_again(rows)
            keys = {row.case.key for row in more}
            yield Done(group, [row for row in rows if row.case.key not in keys], beside, more)
            if not more or self.cancelled():
                return
            group = part_of(group, more)

    def asked_again(self, rows: Sequence[Result]) -> tuple[Result, ...]:
        """Those of ``rows`` whose cases are to be attempted again: somebody asked for more attempts."""
        tried = [row for row in rows if row.status not in INCOMPLETE and row.exit]
        self.made.update(row.case.key for row in tried)
        wanted = self.submission.plan.settings.attempts
        return tuple(row for row in tried if self.made[row.case.key] < wanted)

    def take(self) -> Group | None:
        """The next group; None where there is none, or no time for it."""
        left_s = None
        if self.until is not None:
            left_s = self.until - self.submission.clock.steady() - self.pace.closing_s
        with self.mutex:
            number = self.pace.next_to_start(self.left, left_s)
            if self.cancelled() or self.health.gone or number is None:
                return None
            self.busy += 1
            return self.left.pop(number)

    def rest(self, runner: GroupRunner) -> Iterator[Done | RunNote]:
        """Run what was set aside with nothing beside it."""
        while self.alone and not (self.submission.cancelled() or self.health.gone):
            yield from self.attempts_at(runner, self.alone.pop(0))


def groups_at_once(runnable: list[Group], prefetch: int) -> int:
    """How many of the ``runnable`` groups of a device to prepare at once, where ``prefetch`` are allowed."""
    return max(1, min(prefetch, sum(map(may_have_neighbours, runnable))))


def workers_of_host(threads: int | None) -> int:
    """Return how many workers with ``threads`` each (None: all CPUs but one) the host runs at once.

    Their threads may outnumber the CPUs by one. With two threads per CPU, barriers take most of the time.
    """
    usable = len(allowed_cpus())
    return max(1, (usable + 1) // (threads or max(1, usable - 1)))


def may_have_neighbours(group: Group) -> bool:
    """Whether others may be prepared beside ``group``.

    Checks ask a device about its memory, streams and clocks; several processes need the cores, and wait for
    each other.
    """
    return not group.checks and group.workload.processes == 1


def _try(open_host: Callable[[], object]) -> None:
    """Call ``open_host``; what keeps it from coming up is no trace of a thread."""
    with suppress(TorchgaugeError, OSError):
        open_host()

"""A host for those who have work for it: it starts when it is first needed and comes back when it is lost.

Every command that measures uses it. :meth:`WorkerHost.run` returns when a worker has ended;
:meth:`WorkerHost.start` returns at once, with what watches the worker, for a parent that leads it.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchgauge.harness.executors.executor import Submission
from torchgauge.harness.job import Job
from torchgauge.harness.pool.host_process import PATIENCE_S, HostOptions, HostProcess
from torchgauge.harness.pool.timing_lock import Member, Pipes, TimingLock
from torchgauge.harness.pool.watch import TICK_S, Ending, JobFiles, Limits, Listener, Place, Watch
from torchgauge.results.atomic_file import storage_errors

READY_TIMEOUT_S = 300.0


@dataclass
class WorkerHost:
    """A host with ``options``; ``name`` says in notes whose it is.

    Where ``lock`` is given, other hosts of the run work beside this one and its workers time one at a time.
    """

    submission: Submission
    work: Path
    name: str
    options: HostOptions
    lock: TimingLock | None = None
    notes: list[str] = field(default_factory=list)
    dead: bool = False
    _process: HostProcess | None = None
    _answered: bool = False

    @property
    def runs(self) -> bool:
        """Whether there is a process."""
        return self._process is not None

    def begin(self, *, warm: bool = True) -> None:
        """Start the process, if there is none; raises :class:`InfrastructureError` without an interpreter."""
        if self._process is None and not self.dead:
            options = replace(self.options, warm=warm and self.options.warm)
            log = self.submission.folder / "logs" / "host.log"
            self._process = HostProcess(options, log, self.submission.clock)
            self.notes += filter(None, [self._process.note])

    def ready(self) -> bool:
        """Wait for it; one that dies of its imports is started anew without them: a worker may die of them.

        One that does not come up even then is dead: nobody waits for it again.
        """
        if self._answered or self.dead:
            return self._answered
        said = self._first_words(warm=True)
        if said is None and self.options.warm and not self.submission.cancelled():
            assert self._process is not None
            fate = self._process.fate()
            self.notes.append(
                f"the process that forks the workers of {self.name} {fate}, see logs/host.log; "
                "every worker now starts as a fresh process"
            )
            self.close()
            said = self._first_words(warm=False)
        if said is None:
            self.close()
            if not self.submission.cancelled():
                self.dead = True
                self.notes.append(
                    f"the process that forks the workers of {self.name} did not start; see logs/host.log"
                )
            return False
        self._answered = True
        self.notes += [f"host of {self.name}: {note}" for note in said["notes"]]
        return True

    def start(self, job: Job, log: Path, on_event: Listener, place: Place | None = None) -> Watch:
        """Give ``job`` to a worker of the host, which is ready; what watches it."""
        assert self._process is not None
        submission, settings = self.submission, self.submission.plan.settings
        files = JobFiles(self.work, log, job)
        limits = Limits.of(settings, submission.clock, submission.cancelled)
        self._process.run(job=str(files.job), log=str(files.printed), log_limit=settings.log_limit_bytes)
        return Watch(self._process, files, limits, on_event, place or Place())

    def run(self, job: Job, log: Path, on_event: Listener = lambda event: None) -> Ending:
        """How a worker with ``job`` ended; also where the host does not come up."""
        if not self.ready():
            if self.submission.cancelled():
                return Ending(killed="cancelled", limit="interrupted")
            return Ending(lost=True)
        with self._place(job) as (told, place):
            ending = self.start(told, log, on_event, place).follow()
        if ending.lost:
            self.close()
        return ending

    def close(self) -> None:
        """End the process, at once where it still imports; a second call does nothing."""
        if self._process is not None:
            self._process.close(PATIENCE_S if self._answered else 0.0)
            self._process, self._answered = None, False

    def _first_words(self, *, warm: bool) -> dict[str, Any] | None:
        """The first reply; nothing where the process is gone, too late or no longer wanted."""
        self.begin(warm=warm)
        process, submission = self._process, self.submission
        assert process is not None
        member = Member(process.pid, submission.clock, True, device=self.name)
        place = self.lock.join(member) if self.lock else None
        deadline = submission.clock.steady() + READY_TIMEOUT_S
        try:
            while not submission.cancelled() and submission.clock.steady() < deadline:
                reply = process.receive(TICK_S)
                if reply is None or reply:
                    return reply
            return None
        finally:
            if place is not None:
                place.leave()

    @contextmanager
    def _place(self, job: Job) -> Iterator[tuple[Job, Place]]:
        """``job`` and its worker's place among those of other hosts, until the worker has ended."""
        if self.lock is None:
            yield job, Place()
            return
        process, submission = self._process, self.submission
        assert process is not None
        with storage_errors(self.work):
            pipes = Pipes.make(self.work / secrets.token_hex(8))
        process.wake_on(pipes.asks)
        self.lock.wait_for_quiet(submission.cancelled)
        place = Member(process.pid, submission.clock, grant=pipes.grant, device=self.name)
        self.lock.join(place)
        try:
            yield replace(job, timing_lock=pipes.path), place
        finally:
            place.leave()
            process.sleep_through(pipes.asks)
            pipes.close()
            self.lock.wait_for_quiet(submission.cancelled)

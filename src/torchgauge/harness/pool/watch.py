"""Watching one worker: phases against deadlines, memory against the limit, until its process has ended."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchgauge.clock import Clock
from torchgauge.harness.events import MOST_BYTES, TIMING_LOCK, EventReader, create
from torchgauge.harness.job import Job
from torchgauge.harness.pool.full_disks import FullDisks, worker_folders
from torchgauge.harness.pool.host_process import HostProcess
from torchgauge.processes import process_tree
from torchgauge.processes.control_group import oom_kills
from torchgauge.processes.host_memory import available_memory
from torchgauge.processes.known_secrets import known_secrets
from torchgauge.records import Phase, RunSettings, to_json
from torchgauge.results.atomic_file import storage_errors, writing_aside
from torchgauge.results.hostile_text import one_line

TICK_S = 0.1
QUIET_TICK_S = 0.5
"""Seconds between looks at the worker; fewer while it times, so that looking disturbs less."""
LOOK_BYTES = 1 << 22
"""Bytes of events that one look reads, so that the next one sees a deadline or a wish to cancel soon."""
LOST_S = 10.0
"""Seconds that a host may take to end a worker that it was told to kill."""
LOG_MARGIN = 1 << 10
"""Bytes of a log beyond its limit: the line that says what was left out."""
TIMED = (Phase.WARMUP, Phase.MEASURE)

Listener = Callable[[dict[str, Any]], None]
"""Hears of each event as it is read."""


@dataclass
class Ending:
    """How a worker's process ended, and why it was killed if it was.

    ``status`` is the wait status; ``killed`` is ``"timeout"``, ``"memory"``, ``"cancelled"``, ``"forged"``
    (it wrote a line that is not an event) or empty;
    ``lost`` says that the host itself went away; ``full`` which disks had no room left, in words.
    """

    events: list[dict[str, Any]] = field(default_factory=list)
    status: int = 0
    killed: str = ""
    phase: Phase = Phase.START
    limit: str = ""
    cursor: int = 255
    leftovers: tuple[str, ...] = ()
    printed: int = 0
    lost: bool = False
    duration_s: float = 0.0
    full: str = ""


class Place:
    """A worker's place among those that run beside it; this one runs alone and is never held up."""

    @property
    def idle(self) -> bool:
        """Whether the worker stands still or waits now."""
        return False

    @property
    def idle_s(self) -> float:
        """Seconds in which it stood still or waited: part of no deadline and of no duration."""
        return 0.0

    def started(self) -> None:
        """The worker's process is there."""

    def lock(self, *, wanted: bool) -> None:
        """The worker wants to time, or has timed."""


class JobFiles:
    """The scratch files through which parent and worker speak, and the ``log`` that is kept.

    They lie in a folder of this worker alone, whose name no earlier worker can guess, and the parent reads
    them by the descriptors that created them. Raises :class:`InfrastructureError` on a failing disk.
    """

    def __init__(self, work: Path, log: Path, job: Job) -> None:
        self.log, cases = log, [] if job.group is None else [each.case.key for each in job.group.cases]
        with storage_errors(work):
            self.folder = Path(tempfile.mkdtemp(prefix="job-", dir=work))
            events, cursor, self.job, self.printed = (
                self.folder / name for name in ("events", "cursor", "job", "printed")
            )
            self.reader = EventReader(events, cursor, cases)
            self._printed = create(self.printed)
            told = replace(job, events=str(events), cursor=str(cursor))
            self.job.write_text(to_json(told), encoding="utf-8")

    def finish(self, most: int) -> None:
        """Keep ``most`` bytes of what the worker printed, without secrets, and remove the files.

        Whatever a model has put in the place of the log is replaced. Raises as the start.
        """
        printed = known_secrets().hide_bytes(
            os.pread(self._printed, min(most, os.fstat(self._printed).st_size), 0)
        )
        os.close(self._printed)
        self.reader.close()
        with storage_errors(self.log), writing_aside(self.log) as aside:
            aside.write_bytes(printed)
            if self.log.is_dir() and not self.log.is_symlink():
                shutil.rmtree(self.log, ignore_errors=True)
            aside.replace(self.log)
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True)
class Limits:
    """What a worker may take: its phases, its memory in bytes, and the patience of whoever may cancel it."""

    settings: RunSettings
    clock: Clock
    cancelled: Callable[[], bool]
    memory: int

    @classmethod
    def of(cls, settings: RunSettings, clock: Clock, cancelled: Callable[[], bool]) -> Limits:
        """The limits of ``settings`` as this machine is now."""
        return cls(settings, clock, cancelled, settings.memory_limit_bytes or default_memory_limit())


@dataclass
class Watch:
    """One worker from its start to its end; its host was told to start it.

    What a worker says after it was condemned does not count: the signal that asks for its stacks wakes a
    hung system call, and the late result would belie the timeout.
    """

    host: HostProcess
    files: JobFiles
    limits: Limits
    on_event: Listener = lambda event: None
    place: Place = field(default_factory=Place)
    ending: Ending = field(default_factory=Ending)
    ended: bool = False
    _pid: int = 0
    _kill_sent: float = 0.0

    def __post_init__(self) -> None:
        self._disks = FullDisks(worker_folders(self.files.folder, self.files.log.parent))
        self._started = self._entered = self._active()

    def follow(self) -> Ending:
        """Return when the worker's process, and all that it started, has ended."""
        while not self.look(QUIET_TICK_S if self.ending.phase in TIMED or self.place.idle else TICK_S):
            pass
        return self.ending

    def condemn(self, why: str, limit: str) -> None:
        """Let the host kill the worker, unless it has ended or is to be killed already."""
        if not self.ended and not self.ending.killed:
            self.ending.killed, self.ending.limit = why, limit
            self._kill()

    def restart_deadline(self) -> None:
        """Count the time in the present phase from now on: the worker waited for the lock."""
        self._entered = self._active()

    def look(self, timeout_s: float) -> bool:
        """Hear what the host says within ``timeout_s``; whether the worker and all it started has ended."""
        if self.ended:
            return True
        ending = self.ending
        reply = self.host.receive(timeout_s)
        self._disks.look()
        for event in self._new_events(LOOK_BYTES):
            if event["ev"] == "phase":
                ending.phase, self._entered = Phase(event["phase"]), self._active()
            if event["ev"] == TIMING_LOCK:
                self.place.lock(wanted=event["wanted"])
        if reply is None:
            ending.lost = True
            return self._end()
        if reply.get("ev") == "started":
            self._pid = reply["pid"]
            self.place.started()
        if reply.get("ev") == "exited":
            ending.status = reply["status"]
            ending.leftovers, ending.printed = tuple(reply["leftovers"]), reply["printed"]
            return self._end()
        if self.place.idle and not self.limits.cancelled():
            return False
        if not ending.killed and self._must_die():
            self._kill()
        if self._kill_sent and self.limits.clock.steady() - self._kill_sent > LOST_S:
            ending.lost = True
            return self._end()
        return False

    def _kill(self) -> None:
        self.host.send(cmd="kill")
        self._kill_sent = self.limits.clock.steady()

    def _active(self) -> float:
        """Steady seconds without those in which the worker stood still."""
        return self.limits.clock.steady() - self.place.idle_s

    def _must_die(self) -> bool:
        """Whether the worker is to be killed; the ending is told why."""
        ending, limits = self.ending, self.limits
        deadline = limits.settings.deadlines.of(ending.phase)
        if limits.cancelled():
            ending.killed, ending.limit = "cancelled", "interrupted"
        elif self._active() - self._entered > deadline:
            ending.killed = "timeout"
            ending.limit = f"phase {ending.phase.value} took longer than {deadline:g} s"
        elif self._pid and (held := process_tree.resident_bytes(self._pid)) > limits.memory:
            ending.killed = "memory"
            ending.limit = f"{held / 1e9:.2f} GB resident, limit {limits.memory / 1e9:.2f} GB"
        return bool(ending.killed)

    def _end(self) -> bool:
        self._new_events(MOST_BYTES)
        self.ending.cursor = self.files.reader.cursor()
        self.ending.duration_s = self._active() - self._started
        self.ending.full = self._disks.said
        self.files.finish(self.limits.settings.log_limit_bytes + LOG_MARGIN)
        self.ended = True
        return True

    def _new_events(self, most: int) -> list[dict[str, Any]]:
        if self.ending.killed:
            return []
        found = self.files.reader.read(most)
        self.ending.events += found
        for event in found:
            self.on_event(event)
        if self.files.reader.problem:
            self.condemn("forged", one_line(self.files.reader.problem, 300))
        return found


class OomKills:
    """Whether the kernel has killed for memory meanwhile, in this control group or, at worst, anywhere."""

    def __init__(self) -> None:
        self._seen = oom_kills()

    def more(self) -> bool:
        """Whether there were any since this was last asked, or since the beginning."""
        before, self._seen = self._seen, oom_kills()
        return self._seen > before


def default_memory_limit() -> int:
    """Nine tenths of the memory that is available now, in bytes; very large where it is not known."""
    free = available_memory()
    return 1 << 62 if free is None else int(free * 0.9)

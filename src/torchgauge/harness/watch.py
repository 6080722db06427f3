"""Watching one worker: phases against deadlines, memory against the limit, until its process has ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchgauge.clock import Clock
from torchgauge.harness import turn
from torchgauge.harness.events import EventReader
from torchgauge.harness.host_process import HostProcess
from torchgauge.harness.worker_log import WorkerLog
from torchgauge.processes import process_tree
from torchgauge.records import Phase, RunSettings

TICK_S = 0.1
QUIET_TICK_S = 0.5
"""Seconds between looks at the worker; fewer while it times, so that looking disturbs less."""
TIMED = (Phase.WARMUP, Phase.MEASURE)


@dataclass
class Ending:
    """How a worker's process ended, and why it was killed if it was.

    ``status`` is the wait status; ``killed`` is ``"timeout"``, ``"memory"``, ``"cancelled"`` or empty;
    ``lost`` says that the host itself went away.
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

    def turn(self, *, wanted: bool) -> None:
        """The worker wants to time, or has timed."""


@dataclass
class Watcher:
    """Watches one worker at a time on behalf of the runner."""

    host: HostProcess
    settings: RunSettings
    memory_limit: int
    clock: Clock
    cancelled: Callable[[], bool] = lambda: False
    on_event: Callable[[dict[str, Any]], None] = lambda event: None
    place: Place = field(default_factory=Place)

    def follow(self, reader: EventReader, log: WorkerLog) -> Ending:
        """Return when the worker's process, and all that it started, has ended."""
        watch = self.begin(reader, log)
        while not watch.look(QUIET_TICK_S if watch.ending.phase in TIMED or self.place.idle else TICK_S):
            pass
        return watch.ending

    def begin(self, reader: EventReader, log: WorkerLog) -> Watch:
        """Watch the worker that the host was told to start, look by look."""
        return Watch(self, reader, log, self.active())

    def active(self) -> float:
        """Steady seconds without those in which the worker stood still."""
        return self.clock.steady() - self.place.idle_s

    def must_die(self, ending: Ending, pid: int, in_phase_s: float) -> bool:
        """Whether the worker is to be killed; ``ending`` is told why."""
        deadline = self.settings.deadlines.of(ending.phase)
        if self.cancelled():
            ending.killed, ending.limit = "cancelled", "interrupted"
        elif in_phase_s > deadline:
            ending.killed = "timeout"
            ending.limit = f"phase {ending.phase.value} took longer than {deadline:g} s"
        elif pid and (held := process_tree.resident_bytes(pid)) > self.memory_limit:
            ending.killed = "memory"
            ending.limit = f"{held / 1e9:.2f} GB resident, limit {self.memory_limit / 1e9:.2f} GB"
        return bool(ending.killed)


@dataclass
class Watch:
    """One worker from its start to its end.

    What a worker says after it was condemned does not count: the signal that asks for its stacks wakes a
    hung system call, and the late result would belie the timeout.
    """

    watcher: Watcher
    reader: EventReader
    log: WorkerLog
    started: float
    ending: Ending = field(default_factory=Ending)
    ended: bool = False
    _entered: float = field(init=False)
    _pid: int = 0
    _kill_sent: float = 0.0

    def __post_init__(self) -> None:
        self._entered = self.started

    def restart_deadline(self) -> None:
        """Count the time in the present phase from now on: the worker waited for its turn."""
        self._entered = self.watcher.active()

    def look(self, timeout_s: float) -> bool:
        """Hear what the host says within ``timeout_s``; whether the worker and all it started has ended."""
        if self.ended:
            return True
        watcher, ending = self.watcher, self.ending
        reply = watcher.host.receive(timeout_s)
        for event in self._new_events():
            if event["ev"] == "phase":
                ending.phase, self._entered = Phase(event["phase"]), watcher.active()
            if event["ev"] == turn.EVENT:
                watcher.place.turn(wanted=event["wanted"])
        if reply is None:
            ending.lost = True
            return self._end()
        if reply.get("ev") == "started":
            self._pid = reply["pid"]
            watcher.place.started()
        if reply.get("ev") == "exited":
            ending.status = reply["status"]
            ending.leftovers, ending.printed = tuple(reply["leftovers"]), reply["printed"]
            return self._end()
        if watcher.place.idle and not watcher.cancelled():
            return False
        if not ending.killed and watcher.must_die(ending, self._pid, watcher.active() - self._entered):
            watcher.host.send(cmd="kill")
            self._kill_sent = watcher.clock.steady()
        if self._kill_sent and watcher.clock.steady() - self._kill_sent > 10.0:
            ending.lost = True
            return self._end()
        return False

    def _end(self) -> bool:
        self._new_events()
        self.ending.cursor = self.reader.cursor()
        self.ending.duration_s = self.watcher.active() - self.started
        self.log.keep()
        self.ended = True
        return True

    def _new_events(self) -> list[dict[str, Any]]:
        if self.ending.killed:
            return []
        found = self.reader.read()
        self.ending.events += found
        for event in found:
            self.watcher.on_event(event)
        return found


def default_memory_limit() -> int:
    """Nine tenths of the memory that is available now, in bytes; very large where it is not known."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(int(line.split()[1]) * 1024 * 0.9)
    except (OSError, ValueError):
        pass
    return 1 << 62


def kernel_oom_kills() -> int:
    """How many processes the kernel has killed for memory, in this control group or on this machine."""
    for path, key in (("/sys/fs/cgroup/memory.events", "oom_kill"), ("/proc/vmstat", "oom_kill")):
        try:
            for line in Path(path).read_text(encoding="ascii").splitlines():
                if line.split()[0] == key:
                    return int(line.split()[1])
        except (OSError, ValueError, IndexError):
            continue
    return 0

"""Watching one worker: phases against deadlines, memory against the limit, until its process has ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchgauge.clock import Clock
from torchgauge.harness import process_tree
from torchgauge.harness.events import EventReader
from torchgauge.harness.host_process import HostProcess
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


@dataclass
class Watcher:
    """Watches one worker at a time on behalf of the runner."""

    host: HostProcess
    settings: RunSettings
    memory_limit: int
    clock: Clock
    cancelled: Callable[[], bool] = lambda: False
    on_event: Callable[[dict[str, Any]], None] = lambda event: None

    def follow(self, reader: EventReader) -> Ending:
        """Return when the worker's process, and all that it started, has ended.

        What a worker says after it was condemned does not count: the signal that asks for its stacks wakes
        a hung system call, and the late result would belie the timeout.
        """
        ending = Ending()
        started = entered = self.clock.steady()
        pid = 0
        kill_sent = 0.0
        while True:
            reply = self.host.receive(QUIET_TICK_S if ending.phase in TIMED else TICK_S)
            for event in self._new_events(reader, ending):
                if event["ev"] == "phase":
                    ending.phase, entered = Phase(event["phase"]), self.clock.steady()
            if reply is None:
                ending.lost = True
                break
            if reply.get("ev") == "started":
                pid = reply["pid"]
            if reply.get("ev") == "exited":
                ending.status = reply["status"]
                ending.leftovers, ending.printed = tuple(reply["leftovers"]), reply["printed"]
                break
            if not ending.killed and self._must_die(ending, pid, self.clock.steady() - entered):
                self.host.send(cmd="kill")
                kill_sent = self.clock.steady()
            if kill_sent and self.clock.steady() - kill_sent > 10.0:
                ending.lost = True
                break
        self._new_events(reader, ending)
        ending.cursor = reader.cursor()
        ending.duration_s = self.clock.steady() - started
        return ending

    def _new_events(self, reader: EventReader, ending: Ending) -> list[dict[str, Any]]:
        if ending.killed:
            return []
        found = reader.read()
        ending.events += found
        for event in found:
            self.on_event(event)
        return found

    def _must_die(self, ending: Ending, pid: int, in_phase_s: float) -> bool:
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

"""What the machine did while it was calibrated, as far as the system tells: other work, heat, swapping.

Parent side, standard library only. Counters are read before and after, so that what counts is what happened
meanwhile and not since the machine started. What a system does not tell is None, never a zero. Sources: the
manual page proc(5) for ``/proc/stat`` and ``/proc/vmstat``; the kernel's documentation of
``/sys/devices/system/cpu/cpu*/thermal_throttle``, of ``cpufreq`` and of control group version 2.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torchgauge.devices.cpu_times import PROC, CpuTimes, allowed_cpus
from torchgauge.devices.host import host_conditions

CPUS = Path("/sys/devices/system/cpu")
LOOK_S = 0.5
"""Seconds for which the machine is watched before anything of ours runs."""


@dataclass(frozen=True)
class Conditions:
    """What was seen; shares are of the CPUs that this process may use, between 0 and 1.

    ``busy_before`` is the share in use by anybody in the half second before the calibration; ``stolen`` the
    share that a hypervisor took during it; ``swapped_pages``, ``thermal_events`` and ``throttled_s`` are what
    was added during it; ``governor`` is the first CPU's.
    """

    cores: int
    seconds: float
    load_1min: float | None = None
    busy_before: float | None = None
    stolen: float | None = None
    swapped_pages: int | None = None
    swap_used_bytes: int | None = None
    memory_available_bytes: int | None = None
    thermal_events: int | None = None
    throttled_s: float | None = None
    governor: str | None = None


class ConditionWatch:
    """Watches from its creation, which takes :data:`LOOK_S` seconds, to :meth:`conditions`."""

    def __init__(
        self,
        proc: Path = PROC,
        cpus: Path = CPUS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._proc, self._cpus = proc, cpus
        before = CpuTimes.read(proc)
        sleep(LOOK_S)
        self._times = now = CpuTimes.read(proc)
        self._busy = now.busy_share(before) if before is not None and now is not None else None
        self._host = host_conditions()
        self._swapped, self._heat = _swapped(proc), _heat(cpus)
        self._began = time.perf_counter()

    def conditions(self) -> Conditions:
        """What was seen until now."""
        host, now = host_conditions(), CpuTimes.read(self._proc)
        return Conditions(
            cores=len(allowed_cpus()),
            seconds=time.perf_counter() - self._began,
            load_1min=_number(self._host.get("host.load_1min")),
            busy_before=self._busy,
            stolen=now.stolen_share(self._times) if now is not None and self._times is not None else None,
            swapped_pages=_grown(self._swapped, _swapped(self._proc)),
            swap_used_bytes=_whole(host.get("host.swap_used_bytes")),
            memory_available_bytes=_whole(host.get("host.memory_available_bytes")),
            thermal_events=_grown(self._heat, _heat(self._cpus)),
            throttled_s=_added(self._host.get("host.throttled_s"), host.get("host.throttled_s")),
            governor=_read(self._cpus / "cpu0" / "cpufreq" / "scaling_governor") or None,
        )


def _swapped(proc: Path) -> int | None:
    """Pages that went to or came from the swap since boot."""
    pairs = (line.split() for line in _read(proc / "vmstat").splitlines())
    found = [int(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] in ("pswpin", "pswpout")]
    return sum(found) if found else None


def _heat(cpus: Path) -> int | None:
    """How often the CPUs were slowed for their heat since boot."""
    texts = [
        _read(path)
        for name in ("core", "package")
        for path in cpus.glob(f"cpu*/thermal_throttle/{name}*count")
    ]
    return sum(int(text) for text in texts if text.isdigit()) if texts else None


def _grown(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(0, after - before)


def _added(before: object, after: object) -> float | None:
    first, second = _number(before), _number(after)
    return None if first is None or second is None else max(0.0, second - first)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, (int, float)) else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""

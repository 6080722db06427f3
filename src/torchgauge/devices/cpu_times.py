"""What the CPUs of this process have done since boot, in ticks, as Linux counts it (``man 5 proc_stat``)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class CpuTimes:
    """Ticks of the CPUs that this process may use; the time of a hypervisor's other guests is ``stolen``."""

    total: int
    idle: int
    stolen: int

    @classmethod
    def read(cls, proc: Path = PROC) -> CpuTimes | None:
        """Sums over the lines ``cpuN user nice system idle iowait irq softirq steal ...`` of allowed CPUs."""
        names = {f"cpu{number}" for number in allowed_cpus()}
        total = idle = stolen = 0
        for name, *fields in map(str.split, _lines(proc / "stat")):
            if name in names and len(fields) >= 8 and all(field.isdigit() for field in fields[:8]):
                ticks = [int(field) for field in fields[:8]]
                total, idle, stolen = total + sum(ticks), idle + ticks[3] + ticks[4], stolen + ticks[7]
        return cls(total, idle, stolen) if total else None

    def busy_share(self, since: CpuTimes) -> float | None:
        """Share of the time between ``since`` and now in which they worked, for us or for others."""
        return self._share(since, self.total - self.idle - since.total + since.idle)

    def stolen_share(self, since: CpuTimes) -> float | None:
        """Share of the time between ``since`` and now that a hypervisor took."""
        return self._share(since, self.stolen - since.stolen)

    def without(self, since: CpuTimes, until: CpuTimes) -> CpuTimes:
        """A beginning from which what passed between ``since`` and ``until`` is not counted."""
        return CpuTimes(
            self.total + until.total - since.total,
            self.idle + until.idle - since.idle,
            self.stolen + until.stolen - since.stolen,
        )

    def _share(self, since: CpuTimes, ticks: int) -> float | None:
        return max(0.0, ticks / (self.total - since.total)) if self.total > since.total else None


def allowed_cpus() -> frozenset[int]:
    """The CPUs that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return frozenset(affinity(0)) if affinity is not None else frozenset(range(os.cpu_count() or 1))


def _lines(path: Path) -> list[str]:
    try:
        return [
            line for line in path.read_text(encoding="ascii", errors="replace").splitlines() if line.strip()
        ]
    except OSError:
        return []

"""What a machine did meanwhile is told from counters that are read twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchgauge.devices.calibration_conditions import ConditionWatch


class Machine:
    """Files as Linux has them, of the CPUs that this process may use and of one that it may not."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.cpus = folder / "proc", folder / "cpu"
        self.proc.mkdir()
        self.allowed = sorted(os.sched_getaffinity(0))
        self.ticks = dict.fromkeys(("user", "idle", "steal"), 1000)
        self.swapped = 5
        for number in self.allowed:
            (self.cpus / f"cpu{number}" / "thermal_throttle").mkdir(parents=True)
        (self.cpus / "cpu0" / "cpufreq").mkdir(parents=True, exist_ok=True)
        (self.cpus / "cpu0" / "cpufreq" / "scaling_governor").write_text("powersave\n")
        self.heat(0)
        self.write()

    def heat(self, count: int) -> None:
        """How often each CPU was slowed."""
        for number in self.allowed:
            path = self.cpus / f"cpu{number}" / "thermal_throttle" / "core_throttle_count"
            path.write_text(f"{count}\n")

    def write(self, **grown: int) -> None:
        """Add ticks to every CPU and write the files."""
        for name, ticks in grown.items():
            self.ticks[name] += ticks
        t = self.ticks
        lines = [f"cpu{n} {t['user']} 0 0 {t['idle']} 0 0 0 {t['steal']} 0 0" for n in self.allowed]
        lines += [f"cpu{max(self.allowed) + 1} 99999 0 0 0 0 0 0 {t['user'] * 7} 0 0", "intr 1 2"]
        (self.proc / "stat").write_text("\n".join(lines))
        (self.proc / "vmstat").write_text(f"pgfault 1\npswpin {self.swapped}\npswpout 2\n")


@pytest.fixture
def machine(tmp_path) -> Machine:
    """A machine that has done something before."""
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("the system binds no process to CPUs")
    return Machine(tmp_path)


def test_only_what_happened_meanwhile_counts(machine) -> None:
    """Shares are of the CPUs that we may use; what was before is not held against the machine."""

    def sleep(_seconds: float) -> None:
        machine.write(user=25, idle=75)

    watch = ConditionWatch(machine.proc, machine.cpus, sleep)
    machine.swapped += 3
    machine.heat(2)
    machine.write(user=80, idle=10, steal=10)
    seen = watch.conditions()
    assert seen.cores == len(machine.allowed)
    assert seen.busy_before == pytest.approx(0.25)
    assert seen.stolen == pytest.approx(0.10)
    assert seen.swapped_pages == 3
    assert seen.thermal_events == 2 * len(machine.allowed)
    assert seen.governor == "powersave"


def test_a_quiet_machine_shows_zeros(machine) -> None:
    """Nothing grew but idle time: zeros, which are readings."""

    def sleep(_seconds: float) -> None:
        machine.write(idle=100)

    watch = ConditionWatch(machine.proc, machine.cpus, sleep)
    machine.write(idle=100)
    seen = watch.conditions()
    assert (seen.busy_before, seen.stolen, seen.swapped_pages, seen.thermal_events) == (0.0, 0.0, 0, 0)


def test_a_system_that_tells_nothing_is_not_quiet(tmp_path) -> None:
    """Without the files there are no readings, and no zeros."""
    seen = ConditionWatch(tmp_path / "no", tmp_path / "none", lambda _seconds: None).conditions()
    assert (seen.busy_before, seen.stolen, seen.swapped_pages) == (None, None, None)
    assert (seen.thermal_events, seen.governor) == (None, None)

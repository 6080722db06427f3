"""The machine under every device: what it is (identity) and what it is doing right now (conditions).

Linux answers in full; elsewhere a fact that cannot be read is absent, never a zero. Standard library only.
"""

from __future__ import annotations

import math
import os
import platform
from pathlib import Path

from torchgauge.processes.control_group import own_group, read
from torchgauge.processes.host_memory import available_memory, memory_in_bytes
from torchgauge.records import Scalar

GIB = 1 << 30
GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


def host_identity() -> dict[str, Scalar]:
    """Machine class: CPU, cores that this process may use, memory. The same on equal machines."""
    cpus = _cpuinfo()
    first = cpus[0] if cpus else {}
    found: dict[str, Scalar | None] = {
        "cpu.model": _model(first),
        "cpu.vendor": first.get("vendor_id") or first.get("CPU implementer"),
        "cpu.architecture": platform.machine(),
        "cpu.cores_logical": os.cpu_count(),
        "cpu.cores_available": available_cores(),
        "cpu.cores_physical": _physical_cores(cpus),
        "cpu.quota_cores": quota_cores(),
        "cpu.governor": read(GOVERNOR) or None,
        "host.memory_bytes": _total_memory(),
        "host.virtualised": "hypervisor" in first["flags"].split() if "flags" in first else None,
        "host.system": platform.system(),
        "host.libc": " ".join(platform.libc_ver()).strip() or None,
    }
    return {key: value for key, value in found.items() if value is not None}


def host_conditions() -> dict[str, Scalar]:
    """Load, clock, free memory, throttling and stolen time: what may disturb a measurement."""
    clocks = [float(cpu["cpu MHz"]) * 1e6 for cpu in _cpuinfo() if "cpu MHz" in cpu]
    found: dict[str, Scalar | None] = {
        "host.load_1min": _load(),
        "host.cpu_clock_hz": sum(clocks) / len(clocks) if clocks else None,
        "host.memory_available_bytes": available_memory(),
        "host.swap_used_bytes": _swap_used(),
        "host.cpu_pressure_percent": _cpu_pressure(),
        "host.cpu_steal_s": _steal_s(),
        "host.kernel": platform.release(),
    }
    found.update(_throttling())
    return {key: value for key, value in found.items() if value is not None}


def available_cores() -> int | None:
    """Logical cores that this process may run on."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count()


def quota_cores() -> float | None:
    """Cores' worth of time that this process's control group may use; None without a quota."""
    quota, _, period = read(own_group() / "cpu.max").partition(" ")
    return float(quota) / float(period) if quota.isdigit() and period.isdigit() else None


def throttled_s() -> float | None:
    """Seconds for which the quota of this process's control group has stopped it so far; None without one."""
    found = _throttling().get("host.throttled_s")
    return float(found) if found is not None else None


def _cpuinfo() -> list[dict[str, str]]:
    cpus = []
    for block in read(Path("/proc/cpuinfo")).split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines() if ":" in line)
        cpu = {key.strip(): value.strip() for key, _, value in pairs}
        if "processor" in cpu:
            cpus.append(cpu)
    return cpus


def _model(cpu: dict[str, str]) -> str:
    if "model name" in cpu:
        return cpu["model name"]
    if "CPU part" in cpu:
        return f"implementer {cpu.get('CPU implementer', '?')} part {cpu['CPU part']}"
    return platform.processor() or platform.machine() or "unknown"


def _physical_cores(cpus: list[dict[str, str]]) -> int | None:
    cores = {(cpu.get("physical id"), cpu["core id"]) for cpu in cpus if "core id" in cpu}
    return len(cores) or None


def _total_memory() -> int | None:
    """Rounded to GiB: kernels of one machine class reserve slightly different amounts."""
    total = memory_in_bytes().get("MemTotal")
    return None if total is None else math.ceil(total / GIB) * GIB


def _swap_used() -> int | None:
    memory = memory_in_bytes()
    return memory["SwapTotal"] - memory["SwapFree"] if {"SwapTotal", "SwapFree"} <= memory.keys() else None


def _load() -> float | None:
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def _cpu_pressure() -> float | None:
    """Share of the last ten seconds in which some task waited for a CPU."""
    for field in read(Path("/proc/pressure/cpu")).split():
        if field.startswith("avg10="):
            return float(field.removeprefix("avg10="))
    return None


def _steal_s() -> float | None:
    """Seconds that the hypervisor took from all CPUs since boot (eighth value of ``/proc/stat``)."""
    fields = read(Path("/proc/stat")).splitlines()[:1]
    values = fields[0].split() if fields else []
    return int(values[8]) / os.sysconf("SC_CLK_TCK") if len(values) > 8 else None


def _throttling() -> dict[str, Scalar]:
    pairs = (line.split() for line in read(own_group() / "cpu.stat").splitlines())
    stat = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
    found: dict[str, Scalar] = {}
    if "nr_throttled" in stat:
        found["host.throttled_periods"] = stat["nr_throttled"]
    if "throttled_usec" in stat:
        found["host.throttled_s"] = stat["throttled_usec"] / 1e6
    return found

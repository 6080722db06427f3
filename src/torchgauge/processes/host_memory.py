"""How much memory this machine could give to one more process."""

from __future__ import annotations

from pathlib import Path

from torchgauge.processes.control_group import memory_left

_MEMINFO = Path("/proc/meminfo")


def memory_in_bytes() -> dict[str, int]:
    """What the kernel counts, by its own names; empty where it does not say."""
    found: dict[str, int] = {}
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
        for line in lines:
            name, _, rest = line.partition(":")
            amount = rest.split()
            if amount and amount[-1] == "kB":
                found[name] = int(amount[0]) * 1024
    except (OSError, ValueError):
        return found
    return found


def available_memory() -> int | None:
    """Bytes that a new process could have without swapping; None where unknown.

    The less of the kernel's estimate for the machine, and of what the limit of a container leaves.
    """
    free, left = memory_in_bytes().get("MemAvailable"), memory_left()
    return min(free, left) if free is not None and left is not None else free

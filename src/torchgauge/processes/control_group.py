"""The Linux control groups that this process is in, of version 2 and of version 1, and what they leave it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
MEMBERSHIP = Path("/proc/self/cgroup")
V1, V2 = ("memory.limit_in_bytes", "memory.usage_in_bytes"), ("memory.max", "memory.current")
"""Files with the limit of a group and with what it has, in bytes."""
EVENTS = {V1: "memory.oom_control", V2: "memory.events"}
"""The file of a group that counts the kills in it."""
VMSTAT = Path("/proc/vmstat")


def own_group() -> Path:
    """The folder of this process's version 2 control group."""
    return next((folder for names, folder in _groups() if names is V2), CGROUP)


def memory_left() -> int | None:
    """Bytes that the tightest memory limit above this process leaves; None where there is none.

    Pages of files that were not used lately (``inactive_file``) are free, as in the kernel's own estimate.
    """
    found: list[int] = []
    for (limit, usage), folder in _groups():
        for each in (folder, *folder.parents):
            if each == CGROUP.parent:
                break
            most, has = read(each / limit), read(each / usage)
            if most.isdigit() and has.isdigit():  # "max" is no limit
                found.append(int(most) - int(has) + _reclaimable(each))
    return max(0, min(found)) if found else None


def oom_kills() -> int:
    """How many processes of this one's control group the kernel has killed for memory.

    Of the whole machine where no group tells: then a kill elsewhere counts, too.
    """
    for kind, folder in _groups():
        own = folder if folder.is_dir() else CGROUP / "memory"  # its host's path is not there in a container
        if (found := _counted(own / EVENTS[kind])) is not None:
            return found
    return _counted(VMSTAT) or 0


def _counted(path: Path) -> int | None:
    """The number that ``oom_kill`` has in a file of the kernel; None where there is none."""
    pairs = (line.split() for line in read(path).splitlines())
    return next((int(pair[1]) for pair in pairs if pair[:1] == ["oom_kill"] and pair[1].isdigit()), None)


def read(path: Path) -> str:
    """The text of a file of the kernel; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _groups() -> Iterator[tuple[tuple[str, str], Path]]:
    for line in read(MEMBERSHIP).splitlines():
        number, _, rest = line.partition(":")
        kinds, _, place = rest.partition(":")
        if number == "0" and not kinds:
            yield V2, CGROUP / place.lstrip("/")
        elif "memory" in kinds.split(","):
            yield V1, CGROUP / "memory" / place.lstrip("/")


def _reclaimable(folder: Path) -> int:
    pairs = (line.split() for line in read(folder / "memory.stat").splitlines())
    stat = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
    return stat.get("total_inactive_file", stat.get("inactive_file", 0))

"""Peak memory of a process: the kernel's high-water mark, reset before the steps that count."""

from __future__ import annotations

import sys
from pathlib import Path

from torchgauge.devices.session import Absent, MemoryReading

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


class RssProbe:
    """Peak resident memory between :meth:`reset` and :meth:`peak`, less what was held at creation.

    Create it before the model is built: a forked worker starts with its template's pages, which are not
    the model's. On Linux the high-water mark (VmHWM) is reset by writing 5 to ``/proc/self/clear_refs``
    (``man 5 proc``); elsewhere ``ru_maxrss`` is read, which cannot be reset, and the provenance says so.
    """

    def __init__(self) -> None:
        self._held = _field("VmRSS") or 0
        self._reset = False

    def reset(self) -> None:
        """Set the high-water mark to what is resident now."""
        try:
            _CLEAR.write_text("5")
            self._reset = True
        except OSError:
            self._reset = False

    def peak(self) -> MemoryReading | Absent:
        """Bytes above those held at creation."""
        high = _field("VmHWM")
        if high is not None and self._reset:
            return MemoryReading(max(0, high - self._held), "rss_high_water_mark")
        return _maxrss()


def _maxrss() -> MemoryReading | Absent:
    try:
        import resource
    except ImportError:
        return Absent("this system has neither /proc nor getrusage")
    scale = 1 if sys.platform == "darwin" else 1024
    return MemoryReading(
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale, "ru_maxrss_whole_process"
    )


def _field(name: str) -> int | None:
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None

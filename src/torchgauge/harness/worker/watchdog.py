"""The watchdog of a process in a group: before a deadline passes, it tells what its flight recorder holds.

It is a thread of its own, so that it can speak while the process hangs. Where a phase has taken half of its
deadline, and again shortly before the end, it touches a file that all watchdogs of the group watch. Each then
writes the newest calls of its recorder (:mod:`torchgauge.harness.flight_records`) in an event. The deadline
stays the parent's, and so does the verdict.

gloo records but writes no file on a time-out (torch 2.13), so the record is read in the process itself, which
works for every back end that records. A process that aborts lingers for some seconds, in which its watchdog
tells: gloo ends one that is sent more than it expects, often two of them, and what is left would not say
which of the two called amiss.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

from torchgauge.harness.flight_records import FlightRecord, calls_of, still_waiting

SHARES = (0.5, 0.9)
"""Of a deadline, at which the processes are asked."""
TICK_S, SETTLE_S = 1.0, 0.3
"""Seconds between looks, and between the two readings of a record, which lags behind the calls."""
Recorder = Callable[[], "list[dict[str, Any]]"]
"""Reads the entries of a process's flight recorders."""
_DUMPS = ("_dump_fr_trace_json", "_dump_nccl_trace_json")
"""NCCL's back end has a recorder of its own, and the other one knows nothing of its calls."""
_LIBRARIES = (f"{os.sep}torch{os.sep}", f"{os.sep}threading.py", "<frozen")


def recorder() -> Recorder | None:
    """What reads the flight recorders of this process; None in a torch that cannot."""
    try:
        from torch._C import _distributed_c10d
    except ImportError:
        return None
    there = [getattr(_distributed_c10d, name, None) for name in _DUMPS]
    dumps = [each for each in there if each is not None]
    if not dumps:
        return None
    return lambda: [entry for dump in dumps for entry in json.loads(dump()).get("entries") or ()]


def read_record(rank: int, thread: int, read: Recorder) -> FlightRecord:
    """What process ``rank`` waits for now, and where in its code its ``thread`` is."""
    calls = calls_of(read())
    if any(not call.ended for call in calls):
        time.sleep(SETTLE_S)
        calls = still_waiting(calls, calls_of(read()))
    return FlightRecord(rank, calls, place_of(sys._current_frames().get(thread)))


def in_its_last_call(record: FlightRecord) -> FlightRecord:
    """``record`` of a process whose newest call failed: it did not end, whatever the recorder says then."""
    if any(not call.ended for call in record.calls) or not record.calls:
        return record
    *before, last = record.calls
    return replace(record, calls=(*before, replace(last, ended=False)))


def _aborts() -> bool:
    """Whether a thread of this process is in the handler of SIGABRT, which is blocked there (proc(5))."""
    bit = 1 << (signal.SIGABRT - 1)
    for status in Path("/proc/self/task").glob("*/status"):
        with suppress(OSError):
            blocked = status.read_text(encoding="ascii").partition("SigBlk:")[2].split(maxsplit=1)
            if blocked and int(blocked[0], 16) & bit:
                return True
    return False


def place_of(frame: FrameType | None) -> str:
    """The innermost frame that is no library's: ``forward (model.py:12)``; "" where there is none."""
    while frame is not None and any(each in frame.f_code.co_filename for each in _LIBRARIES):
        frame = frame.f_back
    if frame is None:
        return ""
    return f"{frame.f_code.co_name} ({Path(frame.f_code.co_filename).name}:{frame.f_lineno})"


@dataclass
class Watchdog:
    """The watchdog of process ``rank``: it passes its record to ``tell`` when a process touches ``asked``."""

    rank: int
    asked: Path
    tell: Callable[[FlightRecord], None]
    read: Recorder
    watched: int = field(default_factory=threading.get_ident)
    _due: list[float] = field(default_factory=list)
    _seen: int = 0
    _stopped: threading.Event = field(default_factory=threading.Event)

    def start(self) -> None:
        """Begin to watch; the thread ends with the process."""
        self._seen = self._touched_at()
        # Let a thread that aborts sleep for as many seconds as SIGABRT's number, 6, before the process ends.
        libc = ctypes.CDLL(None)
        libc.signal.restype, libc.signal.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]
        prints = faulthandler.is_enabled()
        if prints:
            faulthandler.disable()
        libc.signal(signal.SIGABRT, ctypes.cast(libc.sleep, ctypes.c_void_p))
        if prints:
            faulthandler.enable(file=2, all_threads=True)
        threading.Thread(target=self._watch, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        """Watch no more."""
        self._stopped.set()

    def enter(self, deadline_s: float) -> None:
        """A phase with this deadline begins now."""
        now = time.monotonic()
        self._due = [now + share * deadline_s for share in SHARES]

    def _watch(self) -> None:
        while not self._stopped.wait(TICK_S):
            due = self._due
            if due and time.monotonic() >= due[0]:
                self._due = due[1:] if self._due is due else self._due
                self.asked.touch()
            mark = self._touched_at()
            if mark != self._seen:
                self._seen = mark
                self.tell(read_record(self.rank, self.watched, self.read))
            if _aborts():
                self.tell(in_its_last_call(read_record(self.rank, self.watched, self.read)))
                return

    def _touched_at(self) -> int:
        with suppress(OSError):
            return self.asked.stat().st_mtime_ns
        return 0

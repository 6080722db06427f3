"""Peak memory of the steps of one model: the device allocator's own counter, else what this process shows.

Why tensors are counted and not the whole process: a process that compiles, or loads compiled code, keeps
tens of megabytes of the compiler for good, and pages of libraries come in with the first step. Neither is
the model's, and an allocator's counter on a device has neither.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import sys
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

from torchgauge.devices.session import Absent, DeviceSession, MemoryReading
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.harness.worker.case_measurements import single
from torchgauge.records import Measurement, absent
from torchgauge.suites.stored_bytes import parts_of, stored_bytes
from torchgauge.suites.suite import HOST

STEPS = 2
TENSORS_AND_GROWTH = "tensors and growth of the resident set"
PROBE_BYTES = 8 << 20
"""Size of the block whose release shows whether freed memory leaves the process."""

LARGE_BYTES = 128 << 10
"""From this size on glibc maps each block by itself, unless it was told or has learned otherwise."""
LARGEST_GAP = 1 << 30
_MMAP_THRESHOLD, _LARGEST_THRESHOLD = -3, 32 << 20  # malloc.h, mallopt(3)

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_CONTAINERS = (list, tuple, set, frozenset, deque)
_LEAVES = (type, types.ModuleType, types.BuiltinFunctionType, str, bytes, int, float, complex)


class _Mallinfo(ctypes.Structure):
    """The counters of glibc's allocator, ``mallinfo(3)``; ``hblks`` blocks are mapped by themselves."""

    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = tuple((name, ctypes.c_int) for name in _names.split())


class _Mallinfo2(ctypes.Structure):
    """The counters of ``mallinfo2(3)``, in 64 bits, from glibc 2.33 on."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _Mallinfo._names.split())


class RssProbe:
    """Peak resident memory between :meth:`reset` and :meth:`peak`.

    Create it before the model is built: a forked worker starts with its template's pages, which are not
    the model's. On Linux the high-water mark (VmHWM) is reset by writing 5 to ``/proc/self/clear_refs``
    (``man 5 proc``); elsewhere ``ru_maxrss`` is read, which cannot be reset, and the provenance says so.
    """

    def __init__(self) -> None:
        self._created = _field("VmRSS") or 0
        self._before: int | None = None

    def reset(self) -> None:
        """Give freed memory back, and set the high-water mark to what is resident then."""
        give_back()
        try:
            _CLEAR.write_text("5")
            self._before = _field("VmRSS")
        except OSError:
            self._before = None

    def peak(self, tensors: int | None) -> MemoryReading | Absent:
        """``tensors`` bytes that the model held and what was resident above :meth:`reset` at most.

        Where ``tensors`` is None, or freed memory stays in the process and would hide what the steps need:
        what was resident at most above the time of creation.
        """
        high = _field("VmHWM")
        if high is None or self._before is None:
            try:
                import resource
            except ImportError:
                return Absent("this system has neither /proc nor getrusage")
            scale = 1 if sys.platform == "darwin" else 1024
            return MemoryReading(
                resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale, "ru_maxrss_whole_process"
            )
        if tensors is None or not _memory_goes_back():
            return MemoryReading(max(0, high - self._created), "rss_high_water_mark")
        return MemoryReading(tensors + max(0, high - self._before), TENSORS_AND_GROWTH)


def peak_of_steps(
    step: Callable[[], Any], session: DeviceSession, rss: RssProbe, subject: Subject | None
) -> Measurement:
    """Measure ``peak_memory`` over two calls of ``step`` after one warm-up call.

    ``subject`` is None without torch.
    """
    with _large_blocks_mapped() as occupy_gaps:
        step()  # frees blocks of earlier steps that may lie in the heap
        occupy_gaps()
        held = None if subject is None else tensor_bytes(subject, step)  # later tensors count as growth
        rss.reset()
        session.reset_peak_memory()
        for _ in range(STEPS):
            step()
    session.synchronize()
    reading = session.peak_memory()
    if isinstance(reading, Absent):
        reason = reading.reason
        reading = rss.peak(held)
        if isinstance(reading, Absent):
            return absent("peak_memory", f"{reason}; {reading.reason}")
    return single("peak_memory", float(reading.bytes), reading.provenance)


def tensor_bytes(*roots: Any, kind: str = HOST) -> int:
    """Bytes of the distinct storages of all tensors below ``roots`` on devices of type ``kind``.

    Gradients and the state of optimizers are below what holds them. What the harness keeps for itself and
    what belongs to the compiler is not: neither is looked into.
    """
    import torch

    pending, seen = list(roots), dict[int, Any]()  # values are kept: an id belongs to a living object
    storages: dict[int, int] = {}
    while pending:
        value = pending.pop()
        if value is None or isinstance(value, _LEAVES) or id(value) in seen:
            continue
        seen[id(value)] = value
        if not isinstance(value, torch.Tensor):
            pending.extend(_below(value))
        elif (parts := parts_of(value)) is not None:
            pending += parts
        elif value.device.type == kind:
            storage = value.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
            pending.append(value.grad if value.is_leaf else None)
    return sum(storages.values())


def model_bytes(module: Any) -> int:
    """Bytes of the distinct storages of a module's parameters and buffers, wherever they are."""
    return stored_bytes([*module.parameters(), *module.buffers()])


@cache
def heap_counter() -> Callable[[], int] | None:
    """Return a function for the bytes in use of glibc's allocator; None if the process has another allocator.

    A block counts from its allocation until it is freed, even if it was never written to. So steps that keep
    nothing do not change the number.
    """
    counters, allocate, release = (_allocator(name) for name in ("mallinfo2", "malloc", "free"))
    if counters is None or allocate is None or release is None:
        return None
    allocate.restype, counters.restype = ctypes.c_void_p, _Mallinfo2  # type: ignore[attr-defined]

    def in_use() -> int:
        now: Any = counters()
        return int(now.uordblks + now.hblkhd)

    before, block = in_use(), ctypes.c_void_p(allocate(ctypes.c_size_t(PROBE_BYTES)))
    counted = in_use() - before >= PROBE_BYTES
    release(block)
    return in_use if counted else None


def fits(count: float, limit: float | None = None) -> bool:
    """Return whether ``count`` bytes are free on the host, and in what this process may still use.

    It may use ``limit`` bytes in all, if there is one. If the system does not report free memory, the limit
    alone decides.
    """
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        free = None
    left = None if limit is None else limit - (_field("VmRSS") or 0)
    return all(count < room for room in (free, left) if room is not None)


def _below(value: Any) -> Iterable[Any]:
    """What ``value`` holds, as far as it can be the model's."""
    if isinstance(value, Subject):
        return value.module, value.args, value.kwargs
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    if isinstance(value, _CONTAINERS):
        return value
    if isinstance(value, types.FunctionType):
        return [cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType()]
    if isinstance(value, types.MethodType):
        return (value.__self__,)
    if isinstance(value, partial):
        return value.func, value.args, value.keywords
    room = type(value).__module__
    harness = room.startswith("torchgauge.") and not dataclasses.is_dataclass(value)
    if harness or room.startswith(("torch._", "torch.fx")):
        return ()
    slots = (each.__dict__.get("__slots__", ()) for each in type(value).__mro__)
    found = [
        getattr(value, name, None)
        for names in slots
        for name in ((names,) if isinstance(names, str) else names)
    ]
    if hasattr(value, "parameters") and hasattr(value, "buffers"):  # those of a traced module are in C++
        found += [*value.parameters(), *value.buffers()]
    return [*found, *getattr(value, "__dict__", {}).values()]


def _memory_goes_back() -> bool:
    """Whether a freed block leaves the resident set: where it stays, steps would use it again unseen."""
    give_back()
    before = _field("VmRSS") or 0
    block = bytearray(b"\1") * PROBE_BYTES
    held = _field("VmRSS") or 0
    del block
    give_back()
    left = _field("VmRSS") or 0
    return held - before > PROBE_BYTES // 2 > left - before


def give_back(above: int = 0) -> None:
    """Give freed memory back to the system (glibc) if more bytes than ``above`` are resident.

    Freed memory that the process keeps counts against a limit, and would be reported as the model's.
    """
    trim = _allocator("malloc_trim")
    if trim is not None and (_field("VmRSS") or 0) > above:
        trim(0)


@contextmanager
def _large_blocks_mapped() -> Iterator[Callable[[], None]]:
    """Make glibc map each large block separately and unmap it on free.

    By default, the threshold rises after the first free, later blocks lie in the heap, and freed blocks stay
    resident. Yield a function that fills the heap's gaps until the context ends.
    """
    names = ("mallopt", "malloc", "free", "mallinfo")
    option, allocate, release, counters = (_allocator(name) for name in names)
    if option is None or allocate is None or release is None or counters is None:
        yield lambda: None
        return
    allocate.restype, counters.restype = ctypes.c_void_p, _Mallinfo  # type: ignore[attr-defined]
    gaps: list[ctypes.c_void_p] = []  # no page of them is touched, so none of them is resident

    def occupy_gaps() -> None:
        size = LARGEST_GAP
        while size >= LARGE_BYTES:
            mapped = counters().hblks  # type: ignore[attr-defined]
            block = ctypes.c_void_p(allocate(ctypes.c_size_t(size)))
            if block and counters().hblks == mapped:  # type: ignore[attr-defined]
                gaps.append(block)
            else:
                release(block)
                size //= 2

    option(_MMAP_THRESHOLD, LARGE_BYTES)
    occupy_gaps()
    try:
        yield occupy_gaps
    finally:
        for gap in gaps:
            release(gap)
        option(_MMAP_THRESHOLD, int(os.environ.get("MALLOC_MMAP_THRESHOLD_") or _LARGEST_THRESHOLD))


def _allocator(name: str) -> Callable[..., int] | None:
    """The function ``name`` of the C library; None where it has none."""
    try:
        return cast(Callable[..., int], getattr(ctypes.CDLL(None), name))
    except (AttributeError, OSError, TypeError):
        return None


def _field(name: str) -> int | None:
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None

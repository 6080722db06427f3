"""Tell a program that keeps state from one that draws numbers which no seed controls.

Two runs of either differ. Nothing is to blame for state that cannot be restored, such as a counter in another
module or a cache in C: runs that begin from one state agree.
"""

from __future__ import annotations

import ctypes
import hashlib
import io
import os
import select
import signal
from collections.abc import Callable
from contextlib import suppress

import torch

from torchgauge.harness.worker.observer import STATE
from torchgauge.suites.outputs import Observation

LONGEST_S = 60.0
"""Seconds after which a child is killed: a program may wait for a thread that a child does not have."""
_PERTURB = -6
"""``M_PERTURB`` of glibc's malloc.h."""


def kept(observe: Callable[[], Observation], alike: Callable[[Observation, Observation], bool]) -> bool:
    """Return whether runs on the host differ by state that they keep.

    Two runs in this process then differ, by the rule ``alike``, though one thread makes them. Two forked
    children, which begin from one state, observe the same bits twice. Each fills its memory differently:
    what was never written is no state. Attributes are not compared: they may hold times. A child that raises,
    dies or takes more than :data:`LONGEST_S` agrees with none.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if alike(observe(), observe()):
            return False
        first = _in_a_child(observe, 1)
        return bool(first) and first == _in_a_child(observe, 2)
    except Exception:  # noqa: BLE001  a copy of the program need not run
        return False
    finally:
        torch.set_num_threads(threads)


def _in_a_child(observe: Callable[[], Observation], number: int) -> bytes:
    """Return the digest of two runs of the forked child ``number``; empty if there is none."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            torch.set_num_threads(1)  # the parent's other threads do not exist here
            held = _other_memory(number)
            runs = [observe(), observe()]
            seen = [{path: one for path, one in run.items() if not path.startswith(STATE)} for run in runs]
            torch.save(seen, saved := io.BytesIO())
            os.write(writing, hashlib.sha256(saved.getvalue()).digest())
            del held
        finally:
            os._exit(0)
    os.close(writing)
    try:
        ready, _, _ = select.select([reading], [], [], LONGEST_S)
        return os.read(reading, 64) if ready else b""
    finally:
        os.close(reading)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _other_memory(number: int) -> list[bytes]:
    """Let glibc fill memory with other bytes in each child, and return objects that move later ones."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_PERTURB, 85 * number)
    return [bytes(size) for size in (*range(1, 600), *range(600, 100_000, 997)) for _ in range(37 * number)]

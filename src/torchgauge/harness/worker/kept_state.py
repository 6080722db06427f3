"""Tell a program that keeps state from one that draws numbers which no seed controls.

Two runs of either differ. Nothing is to blame for state that cannot be restored, such as a counter in another
module or a cache in C: runs that begin from one state agree.
"""

from __future__ import annotations

import hashlib
import io
import os
import select
import signal
from collections.abc import Callable

import torch

from torchgauge.suites.outputs import Observation

LONGEST_S = 120.0
"""Seconds after which a child is killed: a program may wait for a thread that a child does not have."""


def kept(observe: Callable[[], Observation], alike: Callable[[Observation, Observation], bool]) -> bool:
    """Return whether runs on the host differ by state that they keep.

    Two runs in this process then differ, by the rule ``alike``, though one thread makes them. Two forked
    children, which begin from one state, observe the same bits twice. A child that raises, dies or takes more
    than :data:`LONGEST_S` agrees with none.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if alike(observe(), observe()):
            return False
        digests = [_in_a_child(observe) for _ in range(2)]
    except Exception:  # noqa: BLE001  a copy of the program need not run
        return False
    finally:
        torch.set_num_threads(threads)
    return bool(digests[0]) and digests[0] == digests[1]


def _in_a_child(observe: Callable[[], Observation]) -> bytes:
    """Return the digest of two runs of a forked child; empty if there is none."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            torch.set_num_threads(1)  # the parent's other threads do not exist here
            seen = io.BytesIO()
            torch.save([observe(), observe()], seen)
            os.write(writing, hashlib.sha256(seen.getvalue()).digest())
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

"""Tell a program that keeps state from one that draws numbers which no seed controls.

Two runs of either differ. State that cannot be restored, such as a counter in another module or a cache in C,
is no fault: runs that begin from one state agree.
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
from functools import partial
from typing import TYPE_CHECKING

import torch

from torchgauge.harness.worker.memory import fits, model_bytes
from torchgauge.harness.worker.observer import STATE, Observer
from torchgauge.harness.worker.ranks import RANKS
from torchgauge.harness.worker.rounding import EagerResults
from torchgauge.harness.worker.subjects import make_subject
from torchgauge.suites.outputs import Observation
from torchgauge.suites.placing import named

if TYPE_CHECKING:
    from torchgauge.harness.worker.torch_checks import TorchChecks

LONGEST_S = 60.0
"""Seconds after which a child is killed: a program may wait for a thread that a child does not have."""
_PERTURB = -6
"""``M_PERTURB`` of glibc's malloc.h."""


def keeps_state(checks: TorchChecks) -> tuple[str, bool]:
    """Return a sentence if two runs differ by state that cannot be restored, and whether copies have it.

    Runs then agree if they begin from one state: those of copies of the module, or on the host those of two
    forked children of this process.
    """
    assert checks.observer is not None
    boxes = checks.observer.boxes
    sentence = "two runs differ by program state that cannot be restored"
    if lost := checks.observer.lost:
        return f"{sentence} ({named(lost)})", False

    def alike(one: Observation, other: Observation) -> bool:
        return checks.repeats(EagerResults(lambda _: {}, one), other)

    def of_a_copy(runs: int = 2) -> list[Observation]:
        device = checks.session.torch_device
        subject = make_subject(checks.built, checks.workload, checks.draws, device, apart=True)
        observer = Observer(checks.scenario, subject, boxes)
        return [observer.observe() for _ in range(runs)]

    if not checks.built.wrappable or RANKS.count > 1 or not fits(2 * model_bytes(checks.subject.module)):
        return "", False
    with suppress(Exception):  # not every module can be copied
        # copies begin two, four and five calls after the first: a fault in each second or third call differs
        first, *others = of_a_copy(), of_a_copy(), of_a_copy(1), of_a_copy()
        pairs = [pair for other in others for pair in zip(first, other, strict=False)]
        if not alike(*first) and all(alike(*pair) for pair in pairs):
            return f"{sentence}, but copies agree", True
    on_host = partial(checks.reference.again, 0, torch.float64 if checks.reference.fp64 else None)
    if kept(on_host, alike):
        return f"{sentence}, but two processes with one initial state agree", False
    return "", False


def kept(observe: Callable[[], Observation], alike: Callable[[Observation, Observation], bool]) -> bool:
    """Return whether runs on the host differ by state that they keep.

    Two runs in this process then differ, by the rule ``alike``, though one thread makes them. Two forked
    children, which begin from one state, observe the same bits twice. Each fills its memory differently, so
    that uninitialised memory is no state. Attributes are not compared: they may hold times. A child that
    raises, dies or takes more than :data:`LONGEST_S` agrees with none.
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
    """Return the digest of two runs in the forked child ``number``; empty if the child fails."""
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
    """Let glibc fill memory differently in each child, and return objects that shift later allocations."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_PERTURB, 85 * number)
    return [bytes(size) for size in (*range(1, 600), *range(600, 100_000, 997)) for _ in range(37 * number)]

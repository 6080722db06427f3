"""Reads the peak memory of a few models, each in a process of its own, and prints it."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

import torch

from torchgauge.devices.cpu import CpuSession
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.harness.worker import memory

SIDE, ROWS = 2896, 2172  # 32 MiB of weights, 24 MiB of product


class Slots:
    """An object without a dictionary."""

    __slots__ = ("mask",)


def odd(case: str) -> tuple[Subject, Any]:
    """The inference of :func:`product` by a model that keeps tensors where they are hard to see."""
    subject, step = product()
    kept: list[torch.Tensor] = []
    if case == "traced":
        subject.module = subject.call = torch.jit.trace(subject.module, subject.args)
    elif case == "slots":
        subject.module.held = Slots()
        subject.module.held.mask = torch.ones(16 << 18)
    else:
        subject.module.kept = kept

    def keep() -> None:
        step()
        if case == "growing":
            kept.append(torch.ones(8 << 18))

    return subject, keep


def product(*, attribute: bool = False, training: bool = False) -> tuple[Subject, Any]:
    """A matrix product, and its step."""
    module = torch.nn.Linear(SIDE, SIDE, bias=False)
    if attribute:
        module.mask = torch.ones(16 << 18)  # type: ignore[assignment]
    rows = torch.ones(ROWS, SIDE)
    subject = Subject(module, module, (rows,), {}, None, SESSION, 0)

    def infer() -> None:
        with torch.no_grad():
            subject.forward()

    def train() -> None:
        module.zero_grad(set_to_none=True)
        subject.forward().sum().backward()

    return subject, train if training else infer


def with_a_gap() -> tuple[Subject, Any]:
    """Return the inference of :func:`product`, and a step of 8 and then 10 MiB in a heap with a gap of 9."""
    subject, _ = product()
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    library.mallopt(-3, 32 << 20)  # M_MMAP_THRESHOLD: the blocks below lie in the heap
    block = library.malloc(ctypes.c_size_t(9 << 20))
    library.malloc(ctypes.c_size_t(2 << 20))  # above it: freed, it does not leave the heap
    library.free(ctypes.c_void_p(block))

    def step() -> None:
        for size in (8, 10):
            torch.ones(size << 18)

    return subject, step


def read(case: str) -> dict[str, Any]:
    """The reading of ``case``."""
    rss = memory.RssProbe()
    if case == "python":
        found = memory.peak_of_steps(lambda: len(bytearray(b"\1") * (24 << 20)), SESSION, rss, None)
        return {"bytes": found.samples[0], "provenance": found.provenance}
    if case == "gap":
        subject, step = with_a_gap()
    elif case in ("traced", "slots", "growing"):
        subject, step = odd(case)
    else:
        subject, step = product(attribute=case == "attribute", training=case == "training")
    beside = [bytearray(b"\1") * (1 << 16) for _ in range(1024)] if case == "beside" else []
    if case == "kept":
        memory._allocator = lambda name: None  # as where the C library has no such functions
    step()
    found = memory.peak_of_steps(step, SESSION, rss, subject)
    del beside
    return {"bytes": found.samples[0], "provenance": found.provenance}


def forked(case: str) -> Any:
    """``read`` in a child: nothing of one case is in the next."""
    ours, theirs = os.pipe()
    if os.fork() == 0:
        os.write(theirs, json.dumps(read(case)).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        return json.loads(pipe.read())


SESSION: Any = None
if __name__ == "__main__":
    torch.set_num_threads(1)
    SESSION = CpuSession()
    print(json.dumps({case: forked(case) for case in sys.argv[1:]}))

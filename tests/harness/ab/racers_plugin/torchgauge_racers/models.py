"""The worker's half: ``RACERS_FACTOR`` scales the work of a step, ``RACERS_FAULT`` ends a measured one.

The fault ``wrong`` is that of a model whose second build, counted in the file ``RACERS_BUILDS``, returns
something else each time, and whose other builds are right.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import time
from pathlib import Path
from types import FrameType

from torchgauge.records import Workload
from torchgauge.suites.suite import BuiltWorkload

LOOPS = 20_000
LIVES = 4
"""Measured blocks before the fault."""
WRONG_BUILD = 2


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    loops = int(LOOPS * float(os.environ.get("RACERS_FACTOR", "1")))
    fault = os.environ.get("RACERS_FAULT", "") if workload.model == "faulty" else ""
    if fault == "build":
        raise ValueError("this model cannot be built")
    if fault == "wrong":
        values = itertools.count() if builds() == WRONG_BUILD else itertools.repeat(0)
        return BuiltWorkload(module=lambda: (sum(range(loops)), next(values)), framework="python")
    blocks: list[FrameType] = []

    def step() -> int:
        for _ in range(loops):
            pass
        block = block_of() if fault else None
        if block is not None and not any(each is block for each in blocks):
            blocks.append(block)
            if len(blocks) > LIVES:
                FAULTS[fault]()
        return loops

    return BuiltWorkload(module=step, framework="python")


def builds() -> int:
    """How many builds there were, with this one."""
    with Path(os.environ["RACERS_BUILDS"]).open("a+") as file:
        file.write("built\n")
        file.seek(0)
        return len(file.readlines())


def block_of() -> FrameType | None:
    """The frame of the block that a step belongs to; None outside of a comparison's blocks."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_one_by_one":
        frame = frame.f_back
    return frame


def fail() -> None:
    raise ValueError("once too often")


def forge() -> None:
    """Answer the parent with what is not an answer, wherever it listens."""
    for each in Path("/proc/self/fd").iterdir():
        if each.is_socket():
            os.write(int(each.name), b'{"ev": "block", "wall": "long"}\n')


FAULTS = {
    "forge": forge,
    "raise": fail,
    "segfault": lambda: ctypes.string_at(0),
    "hang": lambda: time.sleep(600),
}

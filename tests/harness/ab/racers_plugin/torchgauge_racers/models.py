"""The worker's half: ``RACERS_FACTOR`` scales the work of a step, ``RACERS_FAULT`` ends a measured one."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from types import FrameType

from torchgauge.records import Workload
from torchgauge.suites.suite import BuiltWorkload

LOOPS = 20_000
LIVES = 4
"""Measured blocks before the fault."""


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    loops = int(LOOPS * float(os.environ.get("RACERS_FACTOR", "1")))
    fault = os.environ.get("RACERS_FAULT", "") if workload.model == "faulty" else ""
    if fault == "build":
        raise ValueError("this model cannot be built")
    blocks: list[FrameType] = []

    def step() -> None:
        for _ in range(loops):
            pass
        block = block_of() if fault else None
        if block is not None and not any(each is block for each in blocks):
            blocks.append(block)
            if len(blocks) > LIVES:
                FAULTS[fault]()

    return BuiltWorkload(module=step, framework="python")


def block_of() -> FrameType | None:
    """The frame of the block that a step belongs to; None outside of a comparison's blocks."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_name != "_one_by_one":
        frame = frame.f_back
    return frame


def fail() -> None:
    raise ValueError("once too often")


FAULTS = {"raise": fail, "segfault": lambda: ctypes.string_at(0), "hang": lambda: time.sleep(600)}

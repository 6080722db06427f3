"""Timed blocks, warm-up and the interleaved rounds of one group.

Definitions (see ``docs/method.md``): a *block* is a number of steps between two synchronisations; a
*round* runs one block of every lane in random order; a *lane* is one configuration's step function.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from statistics import median
from typing import Any

from torchgauge.devices.session import DeviceSession, EventTimer
from torchgauge.harness.stopping import log_ratio_half_width, relative_half_width
from torchgauge.records import RunSettings

STEADY_WINDOW = 4
STEADY_TOLERANCE = 0.03
CEILING = 8.0
"""How many budgets a slow step may take for the smallest number of rounds: few samples say little."""


@dataclass(frozen=True)
class Block:
    """Seconds per step in one block: wall, CPU time of the process, and device events where any."""

    wall: float
    cpu: float
    device: float | None


@dataclass
class Lane:
    """One configuration's step function with the samples taken so far."""

    key: str
    step: Callable[[], Any]
    point: Callable[[], None] = lambda: None
    inner: int = 1
    warmup: str = ""
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    device: list[float] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)
    failed: BaseException | None = None

    def add(self, block: Block, number: int) -> None:
        """Keep ``block`` as this lane's sample of round ``number``."""
        self.wall.append(block.wall)
        self.cpu.append(block.cpu)
        self.rounds.append(number)
        if block.device is not None:
            self.device.append(block.device)


def time_block(
    step: Callable[[], Any], inner: int, session: DeviceSession, timer: EventTimer | None = None
) -> Block:
    """Run ``inner`` steps between two synchronisations and return seconds per step."""
    session.synchronize()
    cpu = time.process_time_ns()
    if timer is not None:
        timer.start()
    start = time.perf_counter_ns()
    for _ in repeat(None, inner):
        step()
    if timer is not None:
        timer.stop()
    session.synchronize()
    wall = time.perf_counter_ns() - start
    cpu = time.process_time_ns() - cpu
    device = timer.elapsed_s() / inner if timer is not None else None
    return Block(max(wall, 1) * 1e-9 / inner, cpu * 1e-9 / inner, device)


def warm_up(lane: Lane, session: DeviceSession, settings: RunSettings) -> None:
    """Step until block times no longer fall, or until the warm-up budget ends.

    Warm-up has ended when the median of the last four blocks lies within three percent of the median of
    the four before them, or above it. Sets ``lane.inner`` so that a block lasts at least
    ``settings.min_block_s``.
    """
    lane.point()
    lane.inner = 1
    first = time_block(lane.step, 1, session)
    deadline = time.perf_counter() + settings.warmup_budget_s  # the first step may compile again
    lane.inner = steps_per_block(first.wall, settings.min_block_s)
    times: list[float] = []
    while True:
        block = time_block(lane.step, lane.inner, session)
        times.append(block.wall)
        needed = steps_per_block(block.wall, settings.min_block_s)
        if needed > 1.5 * lane.inner:
            lane.inner, times = needed, []
        elif _steady(times):
            lane.warmup = "steady"
            return
        if time.perf_counter() > deadline:
            lane.warmup = "budget"
            return


def steps_per_block(step_s: float, block_s: float) -> int:
    """Number of steps of ``step_s`` seconds that last at least ``block_s`` together."""
    return max(1, min(1_000_000, int(block_s / max(step_s, 1e-9)) + 1)) if step_s < block_s else 1


def _steady(times: Sequence[float]) -> bool:
    if len(times) < 2 * STEADY_WINDOW:
        return False
    before = median(times[-2 * STEADY_WINDOW : -STEADY_WINDOW])
    return median(times[-STEADY_WINDOW:]) >= before * (1.0 - STEADY_TOLERANCE)


def measure(lanes: Sequence[Lane], session: DeviceSession, settings: RunSettings) -> str:
    """Run interleaved rounds until every interval is narrow enough or the budget ends.

    Returns ``"precision"``, ``"budget"``, ``"max_blocks"``, or ``"failed"`` where no lane is left. A lane
    whose step raises is left out of the later rounds with the exception in ``lane.failed``. The budget
    counts per lane; a slow step may overrun it up to ``CEILING`` times for the smallest number of rounds.
    """
    order = random.Random(settings.order_seed)  # noqa: S311  an order, not a secret
    timers = {lane.key: session.event_timer() for lane in lanes}
    next_check = settings.min_blocks
    with quiet_collector():
        began, budget = time.perf_counter(), settings.measure_budget_s * len(lanes)
        deadline, ceiling = began + budget, began + CEILING * budget
        for number in range(settings.max_blocks):
            live = [lane for lane in lanes if lane.failed is None]
            if not live:
                return "failed"
            order.shuffle(live)
            for lane in live:
                _sample(lane, session, timers[lane.key], number)
            done = number + 1
            if done >= next_check:
                if _precise([lane for lane in lanes if lane.failed is None], settings):
                    return "precision"
                next_check = done + max(2, done // 8)
            now = time.perf_counter()
            if (now > deadline and done >= settings.min_blocks) or (now > ceiling and done >= 3):
                return "budget"
    return "max_blocks"


def _sample(lane: Lane, session: DeviceSession, timer: EventTimer | None, number: int) -> None:
    lane.point()
    try:
        lane.add(time_block(lane.step, lane.inner, session, timer), number)
    except Exception as error:  # noqa: BLE001  the case's own failure: it becomes its status
        lane.failed = error


def _precise(lanes: Sequence[Lane], settings: RunSettings) -> bool:
    target, confidence = settings.precision_target, settings.confidence
    if any(relative_half_width(lane.wall, confidence) > target for lane in lanes):
        return False
    return all(log_ratio_half_width(lanes[0].wall, lane.wall, confidence) <= target for lane in lanes[1:])


class quiet_collector:  # noqa: N801  reads as a statement
    """Context in which Python's cyclic garbage collector does not run, after one full collection."""

    def __enter__(self) -> None:
        self._enabled = gc.isenabled()
        gc.collect()
        gc.disable()

    def __exit__(self, *exc: object) -> None:
        if self._enabled:
            gc.enable()

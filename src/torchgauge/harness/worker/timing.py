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

from torchgauge.autocorrelation import resemblance, widening
from torchgauge.devices.session import DeviceSession, EventTimer
from torchgauge.harness.worker.purse import Purse
from torchgauge.harness.worker.stopping import log_ratio_half_width, relative_half_width
from torchgauge.records import RunSettings

STEADY_WINDOW = 4
STEADY_TOLERANCE = 0.03
CEILING = 8.0
"""How many budgets a slow step may take for the smallest number of rounds: few samples say little."""
AGREEING_CHECKS = 2
"""Checks in a row that must find a lane precise: one that does may have been lucky."""
ALIKE = 0.3
"""Resemblance of consecutive samples from which fewer than ``ALIKE_ROUNDS`` are never enough."""
ALIKE_ROUNDS = 30
LEAST_S = 0.25
"""Seconds that sampling lasts at least: a machine does not show all it does in a few milliseconds."""
WIDE = 2.0
"""How many times the target an interval must miss it by for others' unused time to be spent on it."""
MOST_BUDGETS = 3.0
"""How many budgets a wide group may take where others left time."""


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
    agreed: int = 0
    stopped: str = ""

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


def measure(
    lanes: Sequence[Lane], session: DeviceSession, settings: RunSettings, purse: Purse | None = None
) -> str:
    """Run interleaved rounds until every interval is narrow enough or the budget ends.

    Returns ``"precision"``, ``"budget"``, ``"max_blocks"``, or ``"failed"`` where no lane is left. A lane
    whose step raises is left out of the later rounds with the exception in ``lane.failed``; one that is
    precise is left out of them with ``lane.stopped``, but for the first, which the others are paired with.
    The budget counts per lane; a slow step may overrun it up to ``CEILING`` times for the smallest number of
    rounds. A group that is still wide may take up to ``MOST_BUDGETS`` where ``purse`` has the time, and one
    that needs less than its budget leaves the rest there.
    """
    purse = purse or Purse()
    order = random.Random(settings.order_seed)  # noqa: S311  an order, not a secret
    timers = {lane.key: session.event_timer() for lane in lanes}
    budget = settings.measure_budget_s * len(lanes)
    with quiet_collector():
        began = time.perf_counter()
        stopped = _rounds(Rounds(lanes, settings, purse, began, budget), session, timers, order)
        purse.settle(budget - (time.perf_counter() - began))
    return stopped


def _rounds(
    rounds: Rounds, session: DeviceSession, timers: dict[str, EventTimer | None], order: random.Random
) -> str:
    for number in range(rounds.settings.max_blocks):
        live = rounds.live
        if not live:
            return "failed"
        order.shuffle(live)
        for lane in live:
            _sample(lane, session, timers[lane.key], number)
        stopped = rounds.verdict(number + 1, time.perf_counter())
        if stopped:
            return stopped
    return "max_blocks"


@dataclass
class Rounds:
    """When the rounds of one group, begun at ``began`` with ``budget`` seconds, have been enough."""

    lanes: Sequence[Lane]
    settings: RunSettings
    purse: Purse
    began: float
    budget: float
    next_check: int = 0
    extended: bool = False

    def __post_init__(self) -> None:
        self.next_check = self.settings.min_blocks
        self.deadline = self.began + self.budget

    @property
    def whole(self) -> list[Lane]:
        """Lanes that have not failed."""
        return [lane for lane in self.lanes if lane.failed is None]

    @property
    def live(self) -> list[Lane]:
        """Lanes that take part in the next round."""
        return [lane for lane in self.whole if not lane.stopped]

    def verdict(self, done: int, now: float) -> str:
        """Why to stop after ``done`` rounds, at ``now`` on the clock of ``began``; "" to go on."""
        if now > self.began + CEILING * self.budget and done >= 3:
            return "budget"
        if done < self.settings.min_blocks:
            return ""
        if done >= self.next_check:
            self.next_check = done + max(2, done // 8)
            if self.check(done, now):
                return "precision"
            if self.extended and not self.wide():
                return "budget"
        if now <= self.deadline or (done < ALIKE_ROUNDS and self.alike()):
            return ""
        return "" if self.extend(now) else "budget"

    def check(self, done: int, now: float) -> bool:
        """Judge every lane; whether all are precise."""
        if now - self.began < min(LEAST_S, self.budget / 4.0):
            return False
        whole = self.whole
        if not whole:
            return False
        base, *others = whole
        for lane in (base, *(each for each in others if not each.stopped)):
            precise = self.width(base, lane) <= self.settings.precision_target
            lane.agreed = lane.agreed + 1 if precise and (done >= ALIKE_ROUNDS or not _alike(lane)) else 0
            if lane.agreed >= AGREEING_CHECKS and lane is not base:
                lane.stopped = "precision"
        return base.agreed >= AGREEING_CHECKS and all(lane.stopped for lane in others)

    def width(self, base: Lane, lane: Lane) -> float:
        """Half the width of the interval of ``lane``, or of its ratio to ``base``: the greater, relative."""
        confidence = self.settings.confidence
        found = relative_half_width(lane.wall, confidence) * widening(resemblance(lane.wall))
        if lane is base:
            return found
        pairs = _pairs(base, lane)
        ratio = log_ratio_half_width([a for a, _ in pairs], [b for _, b in pairs], confidence)
        return max(found, ratio * widening(resemblance([a / b for a, b in pairs])))

    def alike(self) -> bool:
        """Whether consecutive samples of a lane that goes on resemble each other."""
        return any(_alike(lane) for lane in self.live)

    def wide(self) -> bool:
        """Whether a lane that goes on is so far from its target that others' time should go there."""
        limit = WIDE * self.settings.precision_target
        return any(self.width(self.whole[0], lane) > limit for lane in self.live)

    def extend(self, now: float) -> bool:
        """Take more time from the purse, once, where there is some and it is needed."""
        if self.extended or not self.live or not self.wide():
            return False
        more = min(self.purse.seconds(), (MOST_BUDGETS - 1.0) * self.budget)
        self.extended, self.deadline = True, self.deadline + more
        return now <= self.deadline


def _alike(lane: Lane) -> bool:
    return resemblance(lane.wall) > ALIKE


def _pairs(base: Lane, lane: Lane) -> list[tuple[float, float]]:
    """Samples of both lanes from the rounds that they share."""
    by_round = dict(zip(base.rounds, base.wall, strict=True))
    return [(by_round[n], wall) for n, wall in zip(lane.rounds, lane.wall, strict=True) if n in by_round]


def _sample(lane: Lane, session: DeviceSession, timer: EventTimer | None, number: int) -> None:
    lane.point()
    try:
        lane.add(time_block(lane.step, lane.inner, session, timer), number)
    except Exception as error:  # noqa: BLE001  the case's own failure: it becomes its status
        lane.failed = error


class quiet_collector:  # noqa: N801  reads as a statement
    """Context in which Python's cyclic garbage collector does not run, after one full collection."""

    def __enter__(self) -> None:
        self._enabled = gc.isenabled()
        gc.collect()
        gc.disable()

    def __exit__(self, *exc: object) -> None:
        if self._enabled:
            gc.enable()

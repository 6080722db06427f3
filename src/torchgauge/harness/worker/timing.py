"""Timed blocks, warm-up and the interleaved rounds of one group.

Definitions (see ``docs/method.md``): a *block* is a number of steps between two synchronisations; a
*round* runs one block of every series in random order; a *series* is one configuration's step function.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from statistics import median
from typing import Any, NamedTuple

from torchgauge.devices.clock_check import LONG_BLOCK_S, Closer, applies, stepped
from torchgauge.devices.session import DeviceSession, EventTimer
from torchgauge.harness.worker.contention import Contention
from torchgauge.harness.worker.memory_growth import MemoryGrowth
from torchgauge.harness.worker.ranks import RANKS
from torchgauge.harness.worker.rounds import Rounds
from torchgauge.harness.worker.series import Block, Series
from torchgauge.harness.worker.shared_budget import SharedBudget
from torchgauge.records import RunSettings

STEADY_WINDOW = 4
SLOW_WINDOW = 2
"""The same where ``SLOW_BLOCKS`` blocks do not fit into the warm-up's budget: samples are worth more."""
SLOW_BLOCKS = 40
STEADY_TOLERANCE = 0.03
BLOCK_S, BLOCK_SHARE = 0.01, 0.01
"""Minimum seconds of a block, or its share of the measuring time if that is less.

State is restored before each block, so its first steps find cold caches. In blocks of 2 ms, steps of a
convolutional network took 5 % longer than in a loop.
"""
AHEAD_BLOCK_S = 0.03
"""Minimum seconds of a block on an asynchronous device. Its first kernel after a synchronisation starts late:
by 30 to 80 microseconds on an H100, which are up to 4 % of a block of 2 ms."""
LEAD_S = 0.05
"""Seconds of a block below which an untimed step precedes it, to fill the caches."""
SETTLING_S = 0.05
"""How long blocks are no samples after a pause: the caches are others', and a core that slept is slower."""


@dataclass(frozen=True)
class Clocks:
    """What is read around steps, in nanoseconds; tests replace it."""

    wall: Callable[[], int]
    cpu: Callable[[], int]


class Taken(NamedTuple):
    """Nanoseconds of one block, and the result of one of its steps.

    ``most`` lasts from before the first event until the device was waited for, ``submitting`` from the first
    event to the second; ``wall`` where there are none.
    """

    wall: int
    cpu: int
    most: int
    submitting: int
    result: Any


def run_steps(  # noqa: PLR0917  one block with all that is read around it
    step: Callable[[], Any],
    steps: int,
    session: DeviceSession,
    timer: EventTimer | None = None,
    clocks: Clocks | None = None,
    kept: int | None = None,
) -> Taken:
    """Nanoseconds of wall time and of CPU time that ``steps`` steps take between two synchronisations.

    The result of step ``kept`` is returned with them, that of the last one by default.
    """
    kept = steps - 1 if kept is None else kept
    before, after = repeat(None, kept), repeat(None, steps - 1 - kept)
    clocks = clocks or Clocks(time.perf_counter_ns, time.process_time_ns)
    session.synchronize()
    cpu = clocks.cpu()
    opened = 0
    if timer is not None:
        opened = clocks.wall()
        timer.start()
    start = submitted = clocks.wall()
    for _ in before:
        step()
    result = step()
    for _ in after:
        step()
    if timer is not None:
        submitted = clocks.wall()
        timer.stop()
    session.synchronize()
    end = clocks.wall()
    cpu = clocks.cpu() - cpu
    if timer is None:
        return Taken(end - start, cpu, end - start, end - start, result)
    return Taken(end - start, cpu, end - opened, submitted - start, result)


def time_block(  # noqa: PLR0917  one block with all that is read around it
    step: Callable[[], Any],
    inner: int,
    session: DeviceSession,
    timer: EventTimer | None = None,
    closer: Closer | None = None,
    kept: int | None = None,
) -> Block:
    """Run ``inner`` steps between two synchronisations and return seconds per step.

    With ``closer`` also how long the device still needed. The block holds the result of step ``kept``.
    """
    taken = run_steps(step, inner, session, timer, kept=kept)
    late = closer.late(taken.result) if closer is not None else None
    shown = timer.elapsed_s() if timer is not None else None
    span = stepped(shown, taken.submitting * 1e-9, taken.most * 1e-9) if shown is not None else None
    wall, cpu, device = RANKS.slowest(
        max(taken.wall, 1) * 1e-9 / inner, taken.cpu * 1e-9 / inner, None if shown is None else shown / inner
    )
    assert wall is not None
    assert cpu is not None
    return Block(wall, cpu, device, span=span, late=late, result=taken.result)


def warm_up(
    series: Series, session: DeviceSession, settings: RunSettings, growth: MemoryGrowth | None = None
) -> None:
    """Step until block times no longer fall, or until the warm-up budget ends.

    Warm-up has ended when the median of the last four blocks (two, where they are slow) lies within three
    percent of the median of as many before them, or above it. A settled step that is longer than the whole
    budget has one block. Sets ``series.inner`` so that a block lasts at least ``settings.min_block_s``,
    :data:`BLOCK_S` unless the measuring time is short, and :data:`AHEAD_BLOCK_S` on an accelerator.
    """
    with series.running():
        series.growth.clear()
        _warm_up(series, session, settings, growth)
    if growth is not None:
        growth.end_warm_up(series)


def _warm_up(
    series: Series, session: DeviceSession, settings: RunSettings, growth: MemoryGrowth | None
) -> None:
    series.inner = 1
    enough_s = min(BLOCK_S, BLOCK_SHARE * settings.measure_budget_s)
    block_s = max(settings.min_block_s, AHEAD_BLOCK_S if applies(session) else enough_s)
    first = time_block(series.step, 1, session, None, series.closer)
    if first.late is not None and first.wall > LONG_BLOCK_S:
        series.late.append((first.wall, first.late))
    if series.settled and first.wall > settings.warmup_budget_s:  # one more would cost a sample
        series.warmup = "budget"
        return
    deadline = _now() + settings.warmup_budget_s  # the first step may compile again
    series.inner = steps_per_block(first.wall, block_s)
    times: list[float] = []
    slow_s = settings.warmup_budget_s / SLOW_BLOCKS
    while True:
        block = time_block(series.step, series.inner, session)
        times.append(block.wall)
        if growth is not None:
            growth.note(series, block.wall * series.inner)
        needed = steps_per_block(block.wall, block_s)
        if needed > 1.5 * series.inner:
            series.inner, times = needed, []
        elif _steady(times, SLOW_WINDOW if block.wall * series.inner > slow_s else STEADY_WINDOW):
            series.warmup = "steady"
            return
        if _now() > deadline:
            series.warmup = "budget"
            return


def steps_per_block(step_s: float, block_s: float) -> int:
    """Number of steps of ``step_s`` seconds that last at least ``block_s`` together."""
    return max(1, min(1_000_000, int(block_s / max(step_s, 1e-9)) + 1)) if step_s < block_s else 1


def _steady(times: Sequence[float], window: int) -> bool:
    if len(times) < 2 * window:
        return False
    before = median(times[-2 * window : -window])
    return median(times[-window:]) >= before * (1.0 - STEADY_TOLERANCE)


def measure(  # noqa: PLR0917  the series with all that is read around their blocks
    all_series: Sequence[Series],
    session: DeviceSession,
    settings: RunSettings,
    shared_budget: SharedBudget | None = None,
    contention: Contention | None = None,
    growth: MemoryGrowth | None = None,
) -> str:
    """Run interleaved rounds until every interval is narrow enough or the budget ends.

    Returns ``"precision"``, ``"budget"``, ``"max_blocks"``, ``"interrupted"``, or ``"failed"`` where no
    series is left. A series whose step raises is left out of the later rounds with the exception in
    ``series.failed``; one that is precise is left out of them with ``series.stopped``, but for the first,
    which the others are paired with.
    The budget counts per series; a slow step may overrun it up to ``CEILING`` times for the smallest number
    of rounds. A group that is still wide may take up to ``MOST_BUDGETS`` where ``shared_budget`` has the
    time, and one that needs less than its budget leaves the rest there. Blocks of which others had the cores
    are left out as long as there are enough others, and sampling goes on for them up to
    ``settings.quiet_wait_s`` longer; so are blocks after which the device says that it lowered its clock.
    Short rounds come in a few visits apart from each other, between which others have the machine.
    """
    order = random.Random(settings.order_seed)  # noqa: S311  an order, not a secret
    timers = {series.key: session.event_timer() for series in all_series}
    budget = settings.measure_budget_s * len(all_series)
    with quiet_collector(), contention or Contention() as watched:
        if growth is not None:
            growth.begin()
        rounds = Rounds(all_series, settings, shared_budget or SharedBudget(), _now(), budget)
        try:
            stopped = _rounds(
                rounds,
                watched,
                lambda series: _sample(series, session, timers[series.key], order),
                order,
                growth,
            )
        except KeyboardInterrupt:  # in a caller's own process, which keeps what was sampled
            stopped = "interrupted"
        rounds.settle(_now())
    return stopped


def _rounds(
    rounds: Rounds,
    contention: Contention,
    sample: Callable[[Series], Block | None],
    order: random.Random,
    growth: MemoryGrowth | None,
) -> str:
    for number in range(rounds.settings.max_blocks):
        live = rounds.live
        if not live:
            return "failed"
        order.shuffle(live)
        for series in live:
            with series.running():
                contention.begin_block()
                block = sample(series)
                if block is not None:
                    series.add(block, number, *RANKS.slowest(contention.end_block()))
                    series.judge(block)
                    wall_s, block = block.wall * series.inner, None  # a result still alive is not growth
                    if growth is not None:
                        growth.note(series, wall_s)
        now = _now()
        stopped = rounds.verdict(number + 1, now)
        if stopped:
            return stopped
        pause = rounds.rest(number + 1, now)
        if pause > 0.0:
            settling = min(SETTLING_S, pause / 2.0)
            contention.leave(pause - settling)
            _settle_in(rounds, sample, settling)
            if growth is not None:
                growth.skip()
            rounds.rested(_now() - now)
    return "max_blocks"


def _settle_in(rounds: Rounds, sample: Callable[[Series], Block | None], seconds: float) -> None:
    """Run blocks of every series for ``seconds``, and one at least, that are no samples."""
    began, settled = _now(), False
    while rounds.live and not settled:
        for series in rounds.live:
            with series.running():
                sample(series)
        settled = _now() - began >= seconds


def _sample(
    series: Series, session: DeviceSession, timer: EventTimer | None, order: random.Random
) -> Block | None:
    try:
        long = bool(series.wall) and series.wall[-1] * series.inner > LONG_BLOCK_S
        closer = series.closer if long else None
        kept = series.inner - 1 if closer is not None else order.randrange(series.inner)
        series.lead = int(bool(series.wall) and series.wall[-1] * series.inner < LEAD_S)
        with series.observed(series.steps):
            if series.lead:
                series.step()
            block = time_block(series.step, series.inner, session, timer, closer, kept)
        return replace(block, kept=series.lead + kept, throttled=getattr(session, "throttled_for", str)())
    except Exception as error:  # noqa: BLE001  the case's own failure: it becomes its status
        series.failed = error
        RANKS.leave()
        return None


def _now() -> float:
    """Seconds on the clock that all processes of the group go by."""
    return RANKS.moment(time.perf_counter())


class quiet_collector:  # noqa: N801  reads as a statement
    """Context in which Python's cyclic garbage collector does not run, after one full collection."""

    def __enter__(self) -> None:
        self._enabled = gc.isenabled()
        gc.collect()
        gc.disable()

    def __exit__(self, *exc: object) -> None:
        if self._enabled:
            gc.enable()

"""From the steps of one launch to one number: the log ratio of head to base.

The rule in prose is ``docs/comparison.md``. Only ABBA blocks whose four blocks are there count, since only
those are balanced against a machine that becomes slower; readings that no clock can give (zero, negative or
non-finite times) are never repaired, their steps are left out and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from statistics import geometric_mean, median

import numpy as np
import numpy.typing as npt

from torchgauge.records.comparison import Block, Launch, Side

Floats = npt.NDArray[np.float64]

CLEAN_SHARE = 0.2
"""Share of clean steps that either side needs for ``clean_wall``."""

MAX_DELAY = 0.01
"""Run-queue delay over wall time from which a step has waited for a core."""

CPU_FACTOR, CPU_SLACK_S = 1.03, 30e-6
"""Where the system does not tell delays, a step is clean if wall <= factor x CPU + slack (seconds)."""

FENCE = 3.0
"""Tukey's outer fence, in interquartile ranges (Exploratory Data Analysis, 1977, section 2D)."""

MIN_ABBA_BLOCKS = 4
"""Fewer usable ABBA blocks have no quartiles, so no fences, and make no launch."""


class Estimator(str, Enum):
    """What of a step is compared."""

    DEVICE = "device"
    CLEAN_WALL = "clean_wall"
    CPU = "cpu"
    WALL = "wall"


@dataclass(frozen=True)
class LaunchEstimate:
    """What one launch says: the mean log ratio of its ABBA blocks, and medians of either side in seconds.

    ``abba_blocks`` entered; ``outliers`` lay outside the fences; ``incomplete`` lacked a block, or a side of
    them had no usable step; ``bad_steps`` had readings that no clock can give.
    """

    log_ratio: float
    base: float
    head: float
    abba_blocks: int
    outliers: int = 0
    incomplete: int = 0
    bad_steps: int = 0


@dataclass(frozen=True)
class Unusable:
    """A launch that has no estimate, and why, in words."""

    reason: str


def choose_estimator(launch: Launch) -> Estimator:
    """The estimator of the pair, from its first launch: by events and waiting, never by the ratio."""
    if launch.blocks and all(_positive(block.device) for block in launch.blocks):
        return Estimator.DEVICE
    shares = [_clean_share(launch, side) for side in Side]
    return Estimator.CLEAN_WALL if min(shares) >= CLEAN_SHARE else Estimator.CPU


def estimate(launch: Launch, estimator: Estimator) -> LaunchEstimate | Unusable:
    """What ``launch`` says by ``estimator``."""
    if not launch.blocks:
        return Unusable("the launch has no blocks")
    base, head = abba_block_times(launch, estimator)
    whole = np.isfinite(base) & np.isfinite(head)
    bad = sum(_bad(block, estimator) for block in launch.blocks)
    if whole.sum() < MIN_ABBA_BLOCKS:
        return Unusable(
            f"{whole.sum()} of {len(whole)} ABBA blocks are usable by {estimator.value}"
            f" ({bad} steps with impossible times), and {MIN_ABBA_BLOCKS} are needed"
        )
    base, head = base[whole], head[whole]
    logs = np.log(head) - np.log(base)
    kept = within_fences(logs)
    return LaunchEstimate(
        log_ratio=float(logs[kept].mean()),
        base=float(np.median(base[kept])),
        head=float(np.median(head[kept])),
        abba_blocks=int(kept.sum()),
        outliers=int((~kept).sum()),
        incomplete=int((~whole).sum()),
        bad_steps=bad,
    )


def abba_block_times(launch: Launch, estimator: Estimator) -> tuple[Floats, Floats]:
    """The typical step of base and of head in every ABBA block, seconds; NaN where one cannot be used.

    The geometric mean of the steps, which loses less of them than a median does; the median for wall time
    of all steps, where one that lost its core takes ten times as long.
    """
    typical = median if estimator is Estimator.WALL else geometric_mean
    steps: dict[tuple[int, Side], list[float]] = {}
    places: dict[int, list[tuple[int, Side]]] = {}
    for block in launch.blocks:
        readings = _readings(block, estimator)
        usable = readings[np.isfinite(readings) & (readings > 0)]
        steps.setdefault((block.abba_block, block.side), []).extend(usable.tolist())
        places.setdefault(block.abba_block, []).append((block.position, block.side))

    def of(abba_block: int, side: Side) -> float:
        found = steps.get((abba_block, side), []) if _balanced(places[abba_block]) else []
        return typical(found) if found else np.nan

    base, head = (np.array([of(abba_block, side) for abba_block in sorted(places)]) for side in Side)
    return base, head


def within_fences(logs: Floats) -> npt.NDArray[np.bool_]:
    """Which values of the last axis lie within Tukey's outer fences; all, where the quartiles are equal.

    A clock that ticks coarsely makes equal quartiles, and fences of no width would leave its ties alone.
    NaN is "no value" and lies outside.
    """
    low, high = np.nanquantile(logs, (0.25, 0.75), axis=-1, keepdims=True)
    reach = np.where(high > low, FENCE * (high - low), np.inf)
    inside: npt.NDArray[np.bool_] = (logs >= low - reach) & (logs <= high + reach)
    return inside


def is_clean(wall: Floats, cpu: Floats, delay: Floats | None) -> npt.NDArray[np.bool_]:
    """Which steps did not wait for a core; times in seconds, ``delay`` None where nobody tells."""
    return delay < MAX_DELAY * wall if delay is not None else wall <= CPU_FACTOR * cpu + CPU_SLACK_S


def _readings(block: Block, estimator: Estimator) -> Floats:
    """One value per step, NaN where the estimator leaves the step out; none for a block out of shape."""
    if not block.wall or any(
        len(each) not in allowed
        for each, allowed in (
            (block.cpu, (len(block.wall),)),
            (block.delay, (0, len(block.wall))),
            (block.device, (0, len(block.wall))),
        )
    ):
        return np.empty(0)
    wall, cpu = np.array(block.wall), np.array(block.cpu)
    if estimator is Estimator.DEVICE:
        return np.array(block.device)
    if estimator is Estimator.CPU:
        return cpu
    if estimator is Estimator.WALL:
        return wall
    return np.where(is_clean(wall, cpu, np.array(block.delay) if block.delay else None), wall, np.nan)


def _bad(block: Block, estimator: Estimator) -> int:
    """Steps with an impossible reading in what ``estimator`` takes (waiting is no impossible reading)."""
    source = {Estimator.DEVICE: block.device, Estimator.CPU: block.cpu}.get(estimator, block.wall)
    times = np.array(source, dtype=np.float64)
    return int((~(np.isfinite(times) & (times > 0))).sum())


def _balanced(blocks: list[tuple[int, Side]]) -> bool:
    """Whether an ABBA block is ABBA or BAAB, complete and without a repetition."""
    sides = [side for _, side in sorted(blocks, key=lambda each: each[0])]
    return (
        sorted(position for position, _ in blocks) == [0, 1, 2, 3]
        and sides[0] is sides[3]
        and sides[1] is sides[2]
        and sides[0] is not sides[1]
    )


def _clean_share(launch: Launch, side: Side) -> float:
    steps = [_readings(block, Estimator.CLEAN_WALL) for block in launch.blocks if block.side is side]
    together = np.concatenate(steps) if steps else np.empty(0)
    return float(np.isfinite(together).mean()) if together.size else 0.0


def _positive(times: tuple[float, ...]) -> bool:
    return bool(times) and bool(np.all(np.isfinite(times) & (np.array(times) > 0)))

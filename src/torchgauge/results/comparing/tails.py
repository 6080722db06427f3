"""Rare slow steps: how much longer they make the mean of one side than the mean without them.

A step that takes a hundred times as long is an outlier to every robust estimator, and it is what a user waits
for. The rule in prose is ``docs/comparison.md``. Steps count by their own time, so that a step which lost its
core is not slow for that: wall time less the time in run queues, or CPU time where the system does not tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchgauge.records.comparison import Block, Launch, Side
from torchgauge.results.comparing.estimators import MIN_ABBA_BLOCKS, Floats, LaunchEstimate

SLOW = 2.0
"""A step is slow from so many times its side's median step in the launch."""

SUSPECT = 0.15
"""One-sided p-value, for one look, at which heavier tails ask for another launch."""


@dataclass(frozen=True)
class TailEstimate(LaunchEstimate):
    """What one launch says of slow steps; ``base`` and ``head`` are untrimmed over trimmed mean.

    ``slow`` and ``steps`` count slow steps and all steps, base first.
    """

    slow: tuple[int, int] = (0, 0)
    steps: tuple[int, int] = (0, 0)


def estimate_tail(launch: Launch) -> TailEstimate | None:
    """What ``launch`` says of slow steps; None where a side has too few steps."""
    sides = [_own_times(launch, side, waited=True) for side in Side]
    if not all(map(_has_typical_step, sides)):  # threads waited for longer than the steps lasted
        sides = [_own_times(launch, side, waited=False) for side in Side]
    if not all(map(_has_typical_step, sides)):
        return None
    (base, base_slow), (head, head_slow) = map(stretch, sides)
    return TailEstimate(
        log_ratio=float(np.log(head) - np.log(base)),
        base=base,
        head=head,
        abba_blocks=len({block.abba_block for block in launch.blocks}),
        slow=(base_slow, head_slow),
        steps=(len(sides[0]), len(sides[1])),
    )


def stretch(times: Floats) -> tuple[float, int]:
    """The mean of ``times`` over that of those which are not slow, and how many are slow."""
    slow = times >= SLOW * np.median(times)
    return float(times.mean() / times[~slow].mean()), int(slow.sum())


def _has_typical_step(times: Floats) -> bool:
    """Return whether the lower middle step, which is not slow, took any time."""
    return len(times) >= 2 * MIN_ABBA_BLOCKS and float(np.quantile(times, 0.5, method="lower")) > 0


def _own_times(launch: Launch, side: Side, *, waited: bool) -> Floats:
    """The own time of every step of ``side``, seconds; by CPU time unless what it ``waited`` is taken off."""
    found = [_of_block(block, waited=waited) for block in launch.blocks if block.side is side]
    return np.concatenate(found) if found else np.empty(0)


def _of_block(block: Block, *, waited: bool) -> Floats:
    wall, cpu = np.array(block.wall, dtype=np.float64), np.array(block.cpu, dtype=np.float64)
    if len(cpu) != len(wall) or len(block.delay) not in (0, len(wall)):
        return np.empty(0)
    own = np.maximum(wall - np.array(block.delay), 0.0) if waited and block.delay else cpu
    usable: Floats = own[np.isfinite(own) & np.isfinite(wall) & (wall > 0)]
    return usable

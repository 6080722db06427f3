"""ABBA blocks: two sides run blocks of steps in alternation, so that a machine which slows down meets both.

A side is a function that runs so many steps and returns their columns: a worker's, or one of this process.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from torchgauge.clock import Clock
from torchgauge.harness.ab.wire import BLOCK_S
from torchgauge.records.comparison import Block, Side

MAX_STEPS = 200
"""Steps of a block: shorter steps than a fiftieth of a millisecond would only make the journal long."""
FEWEST_ABBA_BLOCKS = 12
"""ABBA blocks of a launch that its time does not cut short."""
ABBA: Mapping[bool, tuple[Side, ...]] = {
    True: (Side.BASE, Side.HEAD, Side.HEAD, Side.BASE),
    False: (Side.HEAD, Side.BASE, Side.BASE, Side.HEAD),
}
RunBlock = Callable[[int], Optional[Mapping[str, Any]]]
"""Runs so many steps of one side; None where the side has failed."""


@dataclass
class Alternation:
    """The ABBA blocks of one launch; ``refused`` counts steps with impossible times, which are left out."""

    sides: Mapping[Side, RunBlock]
    dice: random.Random
    clock: Clock
    cancelled: Callable[[], bool]
    blocks: list[Block] = field(default_factory=list)
    refused: int = 0
    stopped: bool = False

    def run(self, first: Side, steps: int, abba_blocks: int, seconds: float) -> None:
        """Run one block of each side for its caches, then ``abba_blocks``, or fewer after ``seconds``.

        A side that fails ends them, and what was measured before stays.
        """
        for side in (first, other(first)):  # caches went cold meanwhile
            if self.sides[side](steps) is None:
                return
        until = self.clock.steady() + seconds
        for abba_block in range(abba_blocks):
            if abba_block >= FEWEST_ABBA_BLOCKS and self.clock.steady() > until:
                return
            for position, side in enumerate(ABBA[self.dice.random() < 0.5]):
                if self.cancelled():
                    self.stopped = True
                    return
                columns = self.sides[side](steps)
                if columns is None:
                    return
                self._keep(_block(side, abba_block, position, columns), columns["refused"])

    def _keep(self, block: Block, refused: int) -> None:
        """Keep ``block``, unless it has no step."""
        self.refused += refused
        if block.wall:
            self.blocks.append(block)


def steps_per_block(step_s: Mapping[Side, float]) -> int:
    """Steps that last a block on the faster side: as many on both."""
    return max(1, min(MAX_STEPS, math.ceil(BLOCK_S / max(1e-9, min(step_s.values())))))


def other(side: Side) -> Side:
    """Return the side against which ``side`` is compared."""
    return Side.HEAD if side is Side.BASE else Side.BASE


def _block(side: Side, abba_block: int, position: int, columns: Mapping[str, Any]) -> Block:
    return Block(
        side=side,
        abba_block=abba_block,
        position=position,
        wall=tuple(columns["wall"]),
        cpu=tuple(columns["cpu"]),
        delay=tuple(columns["delay"]),
        switches=tuple(columns["switches"]),
        device=tuple(columns["device"]),
    )

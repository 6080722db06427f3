"""Recorded A/B step timings as a source of noise: every launch with its known slow-down taken out again.

``benchmarks/data/README.md`` says what was recorded. Every estimate goes through the package's own
estimators, so that what is replayed is what torchgauge would have computed from these steps.
"""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np

from torchgauge.records import Outcome, Phase, Status
from torchgauge.records.comparison import Block, Launch, Side
from torchgauge.results.comparing.estimators import (
    MIN_ABBA_BLOCKS,
    Estimator,
    abba_block_times,
    choose_estimator,
    within_fences,
)

DATA = Path(__file__).parent / "data" / "ab_steps.json.gz"
PASSED = Outcome("0" * 16, Status.PASS, Phase.DONE)


@dataclass(frozen=True)
class Record:
    """One recorded comparison: its ABBA blocks in order, and what they cost.

    ``slowdown`` is what was injected into the head. ``wall`` and ``cpu`` are seconds, of the shape ABBA
    blocks x 4 positions x steps; ``head`` (ABBA blocks x 4) says which blocks are the head's.
    """

    model: str
    regime: str
    pair: int
    slowdown: float
    wall_s: float
    launch_s: float
    head: np.ndarray
    wall: np.ndarray
    cpu: np.ndarray

    def clean_times(self) -> tuple[np.ndarray, np.ndarray]:
        """Wall and CPU time with the injected CPU time taken out of the head's steps."""
        injected = (
            (1 + self.slowdown) * math.exp(_overhead(self.model, self.regime)) if self.slowdown else 1.0
        )
        share = np.where(self.head, 1 - 1 / injected, 0.0)[..., None]
        return self.wall - share * self.cpu, self.cpu * (1 - share)


@dataclass(frozen=True)
class Sequential:
    """A pair measured one side after the other: wall seconds of every step of either side."""

    model: str
    regime: str
    pair: int
    slowdown: float
    base: np.ndarray
    head: np.ndarray


@cache
def _raw() -> dict[str, list[dict]]:
    return json.loads(gzip.decompress(DATA.read_bytes()))


def interleaved() -> list[Record]:
    """All interleaved records."""
    found = []
    for each in _raw()["interleaved"]:
        sides = np.array(list(each["order"])).reshape(-1, 4) == "B"
        shape = (*sides.shape, len(each["wall_us"]) // sides.size)
        wall, cpu = (np.array(each[name], dtype=float).reshape(shape) / 1e6 for name in ("wall_us", "cpu_us"))
        facts = [each[name] for name in ("model", "regime", "pair", "slowdown", "wall_s", "launch_s")]
        found.append(Record(*facts, head=sides, wall=wall, cpu=cpu))
    return found


@cache
def _overhead(model: str, regime: str) -> float:
    """What the injection cost beside what it should, as a log ratio: the mean of what nominal removal leaves.

    Reading the clock in the spin took about 1 % of a step. It is constant, and not noise of a comparison.
    """
    logs = []
    for record in interleaved():
        if (record.model, record.regime) == (model, regime) and record.slowdown:
            steps = np.log(record.cpu / np.where(record.head, 1 + record.slowdown, 1.0)[..., None])
            head, base = (
                np.array([steps[quad, sides[quad]].mean() for quad in range(len(sides))])
                for sides in (record.head, ~record.head)
            )
            abba_blocks = head - base
            logs.append(abba_blocks[within_fences(abba_blocks)].mean())
    return float(np.mean(logs))


def sequential() -> list[Sequential]:
    """All sequential records."""
    return [
        Sequential(
            each["model"],
            each["regime"],
            each["pair"],
            each["slowdown"],
            np.array(each["base_us"]) / 1e6,
            np.array(each["head_us"]) / 1e6,
        )
        for each in _raw()["sequential"]
    ]


def launch_of(chosen: list[Record], factor: float = 1.0, swap: bool = False) -> Launch:
    """A launch of several records of one pair, their own slow-down taken out.

    The head's CPU time is then ``factor`` of what it was, with the wall time that this takes. ``swap`` calls
    the base head, before that.
    """
    blocks = []
    for number, record in enumerate(chosen):
        wall, cpu = record.clean_times()
        head = ~record.head if swap else record.head
        grown = np.where(head, factor, 1.0)[..., None]
        wall, cpu = wall + (grown - 1) * cpu, cpu * grown
        for quad, position in np.ndindex(head.shape):
            blocks.append(
                Block(
                    Side.HEAD if head[quad, position] else Side.BASE,
                    quad + number * len(head),
                    position,
                    tuple(wall[quad, position].tolist()),
                    tuple(cpu[quad, position].tolist()),
                )
            )
    return Launch(
        pair_key="",
        pair_id="",
        number=1,
        first=Side.BASE,
        base=PASSED,
        head=PASSED,
        blocks=tuple(blocks),
        setup_s=chosen[0].launch_s,
        measure_s=sum(record.wall_s for record in chosen),
    )


@dataclass(frozen=True)
class LaunchTable:
    """Every launch that can be made of the records, by pair: arrays of the shape pairs x choices.

    ``logs`` holds the launch's log ratio by estimator, NaN where it has none; ``clean`` whether its steps
    would choose ``clean_wall``; ``cost_s`` what it takes.
    """

    pairs: tuple[int, ...]
    logs: dict[Estimator, np.ndarray]
    clean: np.ndarray
    cost_s: np.ndarray

    def part(self, keep: np.ndarray) -> LaunchTable:
        """The launches of the pairs at the positions ``keep`` only."""
        return LaunchTable(
            tuple(np.array(self.pairs)[keep].tolist()),
            {estimator: logs[keep] for estimator, logs in self.logs.items()},
            self.clean[keep],
            self.cost_s[keep],
        )


ESTIMATORS = (Estimator.CPU, Estimator.CLEAN_WALL, Estimator.WALL)


@cache
def launch_table(model: str, regime: str, per_launch: int) -> LaunchTable:
    """All launches of ``per_launch`` records that share a pair; pairs that were not finished are left out."""
    by_pair: dict[int, list[Record]] = {}
    for record in interleaved():
        if (record.model, record.regime) == (model, regime):
            by_pair.setdefault(record.pair, []).append(record)
    fullest = max(map(len, by_pair.values()))
    usable = {pair: found for pair, found in by_pair.items() if len(found) == fullest}
    logs: dict[Estimator, list] = {each: [] for each in ESTIMATORS}
    clean, cost = [], []
    for found in usable.values():
        chosen = list(combinations(range(fullest), per_launch))
        launches = [launch_of([record]) for record in found]
        for estimator in ESTIMATORS:
            abba_blocks = [_abba_block_logs(launch, estimator) for launch in launches]
            logs[estimator].append(
                [_launch_log(np.concatenate([abba_blocks[i] for i in some])) for some in chosen]
            )
        choices = [choose_estimator(launch) is Estimator.CLEAN_WALL for launch in launches]
        clean.append([np.mean([choices[i] for i in some]) > 0.5 for some in chosen])
        cost.append([found[0].launch_s + sum(found[i].wall_s for i in some) for some in chosen])
    arrays = {estimator: np.array(rows) for estimator, rows in logs.items()}
    return LaunchTable(tuple(usable), arrays, np.array(clean), np.array(cost))


def _abba_block_logs(launch: Launch, estimator: Estimator) -> np.ndarray:
    base, head = abba_block_times(launch, estimator)
    return np.log(head) - np.log(base)


def _launch_log(abba_blocks: np.ndarray) -> float:
    """What ``estimate`` makes of the same ABBA blocks; NaN where it has too few."""
    kept = abba_blocks[np.isfinite(abba_blocks)]
    return float(kept[within_fences(kept)].mean()) if len(kept) >= MIN_ABBA_BLOCKS else np.nan

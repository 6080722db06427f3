"""Pack work into jobs that end together: longest part first, by recorded durations.

A part is what shares a process: the configurations of one workload, whose speed-up needs both in one run, or
one check. Parts stay whole, so fewer parts than jobs make fewer jobs, never an empty one.

Longest-processing-time-first puts each part into the job that is shortest so far (Graham 1969). The longest
job then lasts at most the mean plus one part, so it is within 10 % of the mean wherever no part is longer
than a tenth of the mean; it is within a third of what any packing could reach in every case.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.counted import counted


@dataclass(frozen=True)
class Part:
    """Cases that stay together, and how long they are expected to take in all, in seconds."""

    cases: tuple[str, ...]
    expected_s: float


@dataclass(frozen=True)
class Bin:
    """The cases of one job, in the order of the plan, and how long they are expected to take, in seconds."""

    cases: tuple[str, ...]
    expected_s: float


def pack(parts: Sequence[Part], shards: int) -> tuple[Bin, ...]:
    """``parts`` in at most ``shards`` jobs: every case in exactly one, none of them empty.

    The same input gives the same jobs. Raises ``ValueError`` for fewer than one job.
    """
    if shards < 1:
        raise ValueError(f"{counted(shards, 'shard')}")
    count = min(shards, len(parts))
    chosen: list[list[int]] = [[] for _ in range(count)]
    # Second key: among equally long jobs the one with fewer parts, so that parts of no length spread too.
    heap = [(0.0, 0, index) for index in range(count)]
    order = sorted(range(len(parts)), key=lambda number: (-parts[number].expected_s, number))
    for number in order:
        load, held, index = heap[0]
        chosen[index].append(number)
        heapq.heapreplace(heap, (load + parts[number].expected_s, held + 1, index))
    return tuple(_bin(parts, numbers) for numbers in chosen)


def _bin(parts: Sequence[Part], numbers: list[int]) -> Bin:
    held = [parts[number] for number in sorted(numbers)]
    cases = tuple(case for part in held for case in part.cases)
    return Bin(cases, sum(part.expected_s for part in held))

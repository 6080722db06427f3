"""Jobs hold every case once, none is empty, and they end together where the parts allow it."""

from __future__ import annotations

import random

import pytest

from torchgauge.harness.planning.bin_packing import Part, pack

SEEDS = range(60)


def parts_of(generator: random.Random, longest: float) -> list[Part]:
    """Random parts of one to five cases that last up to ``longest`` seconds each; some last nothing."""
    parts = []
    for number in range(generator.randint(1, 300)):
        cases = tuple(f"case-{number}-{index}" for index in range(generator.randint(1, 5)))
        seconds = 0.0 if generator.random() < 0.1 else longest * generator.random() ** 3
        parts.append(Part(cases, seconds))
    return parts


@pytest.mark.parametrize("seed", SEEDS)
def test_the_jobs_are_the_plan(seed):
    """Union is the plan, jobs are disjoint, parts stay whole and sums are right."""
    generator = random.Random(seed)
    parts, shards = parts_of(generator, 600.0), generator.randint(1, 40)
    bins = pack(parts, shards)
    held = [case for bin_ in bins for case in bin_.cases]
    assert sorted(held) == sorted(case for part in parts for case in part.cases)
    of_case = {case: number for number, bin_ in enumerate(bins) for case in bin_.cases}
    assert all(len({of_case[case] for case in part.cases}) == 1 for part in parts)
    assert sum(bin_.expected_s for bin_ in bins) == pytest.approx(sum(part.expected_s for part in parts))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_longest_job_is_within_a_tenth_of_the_mean(seed):
    """It is wherever no part is longer than a tenth of the mean; and never more than one part above it."""
    generator = random.Random(seed)
    parts, shards = parts_of(generator, 600.0), generator.randint(1, 16)
    bins = pack(parts, shards)
    mean = sum(part.expected_s for part in parts) / len(bins)
    biggest = max(part.expected_s for part in parts)
    longest = max(bin_.expected_s for bin_ in bins)
    assert longest <= mean + biggest + 1e-9
    many = [
        Part((f"small-{n}",), generator.uniform(1.0, 2.0)) for n in range(generator.randint(20, 60) * shards)
    ]
    mean = sum(part.expected_s for part in many) / shards
    assert max(part.expected_s for part in many) <= 0.1 * mean  # the condition
    assert max(bin_.expected_s for bin_ in pack(many, shards)) <= 1.1 * mean

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
def test_no_job_is_empty(seed):
    """There are as many jobs as asked for, or as parts where those are fewer, and each has a case."""
    generator = random.Random(seed)
    parts, shards = parts_of(generator, 600.0), generator.randint(1, 400)
    bins = pack(parts, shards)
    assert len(bins) == min(shards, len(parts))
    assert all(bin_.cases for bin_ in bins)


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


def test_a_usual_night_is_cut_evenly():
    """1,250 cases of 1 to 30 seconds meet the condition and are cut into 16 jobs of nearly one length."""
    generator = random.Random(7)
    parts = [Part((f"case-{number}",), generator.uniform(1.0, 30.0)) for number in range(1250)]
    bins = pack(parts, 16)
    mean = sum(part.expected_s for part in parts) / 16
    assert max(part.expected_s for part in parts) <= 0.1 * mean
    assert max(bin_.expected_s for bin_ in bins) <= 1.1 * mean


def test_the_longest_parts_are_placed_first():
    """Placed in the order of the plan the two long parts would share a job; longest first they do not."""
    parts = [Part(("a",), 1.0), Part(("b",), 1.0), Part(("c",), 6.0), Part(("d",), 6.0)]
    bins = pack(parts, 2)
    assert [bin_.expected_s for bin_ in bins] == [7.0, 7.0]


def test_the_same_plan_gives_the_same_jobs():
    """Equal input gives equal jobs, with cases in the order of the plan."""
    parts = parts_of(random.Random(3), 10.0)
    assert pack(parts, 7) == pack(list(parts), 7)
    order = {case: number for number, case in enumerate(c for part in parts for c in part.cases)}
    for bin_ in pack(parts, 7):
        assert list(bin_.cases) == sorted(bin_.cases, key=order.__getitem__)


def test_fewer_than_one_job_is_refused():
    """No number of jobs below one makes sense; an empty plan has no job."""
    with pytest.raises(ValueError, match="0 shards"):
        pack([Part(("a",), 1.0)], 0)
    assert pack([], 3) == ()

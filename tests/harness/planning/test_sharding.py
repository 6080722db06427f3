"""Shards hold every group once, end together, and are the same in each shard's own process."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from torchgauge.errors import NothingSelectedError
from torchgauge.harness.planning.forecast import Forecast
from torchgauge.harness.planning.sharding import shard_groups
from torchgauge.testing import make_case, make_plan


def night(seed: int, most: float = 600.0):
    """Random groups, and a forecast that knows most of them."""
    generator = random.Random(seed)
    groups = make_plan(*(make_case(f"m{n}") for n in range(generator.randint(1, 200)))).groups
    recorded = {
        group.cases[0].case.id: most * generator.random() ** 3 for group in groups if generator.random() < 0.8
    }
    return groups, Forecast(recorded), generator.randint(1, 40)


@pytest.mark.parametrize("seed", range(60))
def test_shards_are_the_selection(seed):
    """Their union is everything, no group is in two, none is empty, and each keeps the order."""
    groups, forecast, shards = night(seed)
    sharding = shard_groups(groups, shards, forecast)
    assert len(sharding.shards) == min(shards, len(groups))
    assert all(sharding.shards)
    held = [group.id for shard in sharding.shards for group in shard]
    assert sorted(held) == sorted(group.id for group in groups)
    place = {group.id: number for number, group in enumerate(groups)}
    assert all([*map(place.get, ids)] == sorted(map(place.get, ids)) for ids in ids_of(sharding))


def ids_of(sharding):
    """The ids of the groups of each shard."""
    return [[group.id for group in shard] for shard in sharding.shards]


@pytest.mark.parametrize("seed", range(60))
def test_shards_differ_by_no_more_than_the_longest_group(seed):
    """And by no more than a tenth wherever no group is longer than a tenth of the shortest shard."""
    groups, forecast, shards = night(seed)
    sharding = shard_groups(groups, shards, forecast)
    longest = max(forecast.of_group(group) for group in groups)
    assert max(sharding.expected_s) - min(sharding.expected_s) <= longest + 1e-6
    generator = random.Random(seed)
    groups = make_plan(*(make_case(f"m{n}") for n in range(40 * (shards % 12 + 1)))).groups
    forecast = Forecast({group.cases[0].case.id: generator.uniform(1.0, 3.0) for group in groups})
    sharding = shard_groups(groups, shards % 12 + 1, forecast)
    assert max(sharding.expected_s) <= 1.1 * min(sharding.expected_s)


def test_processes_agree_without_a_word():
    """Another process, with another hash seed, cuts the same; other durations make another digest."""
    groups, forecast, _ = night(5)
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); from test_sharding import night; "
        "from torchgauge.harness.planning.sharding import shard_groups; groups, forecast, _ = night(5); "
        "print(shard_groups(groups, 7, forecast).digest)"
    )
    here = shard_groups(groups, 7, forecast)
    done = subprocess.run(
        [sys.executable, "-c", script, __file__.rpartition("/")[0]],
        capture_output=True, text=True, check=True, timeout=300, env={"PYTHONHASHSEED": "7"},
    )  # fmt: skip
    assert done.stdout.strip() == here.digest
    other = shard_groups(groups, 7, Forecast())
    assert (other.whole, other.digest == here.digest) == (here.whole, False)


def test_a_shard_that_would_be_empty_is_refused():
    """More shards than groups: the first ones have a group each, the others say so."""
    sharding = shard_groups(make_plan(make_case("a"), make_case("b")).groups, 5, Forecast())
    assert [len(shard) for shard in (sharding.shard("1/5"), sharding.shard("2/5"))] == [1, 1]
    with pytest.raises(NothingSelectedError, match="2 groups"):
        sharding.shard("3/5")

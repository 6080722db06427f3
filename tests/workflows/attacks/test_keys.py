"""Sets whose cases have the planned ids and are others: series go by key, which an id does not fix."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign_sets import Night, files_of, replanned, rerowed, shard_plan
from stored_runs import case
from submitted_sets import Edit, Row, kept, refused

from torchgauge.records import Case
from torchgauge.workflows.ingest.refusal import Reason

PAIRS = (("aa", 1), ("seq", 128))


def workload(**changes: Any) -> Edit:
    return lambda case: case["workload"].update(changes)


OTHERS: dict[str, tuple[Case, Edit]] = {
    "sizes in another order": (case(shape=PAIRS), workload(shape=[["seq", 128], ["aa", 1]])),
    "a size as a word": (case(shape=PAIRS), workload(shape=[["aa", "1"], ["seq", 128]])),
    "two sizes as one word": (case(shape=PAIRS), workload(shape=[["aa", "1,seq=128"]])),
    "a seed that is a size": (case(seed=7), workload(seed=1234, shape=[["seed", 7]])),
    "weights that are a word": (
        case(weights="pretrained"), workload(weights="random", shape=[["weights", "pretrained"]])
    ),
    "a size of the model in its shape": (
        case(size="large"), workload(size="small", shape=[["size", "large"]])
    ),
    "a suite with a part of the model": (case("x/linear"), workload(suite="toy/x", model="linear")),
}  # fmt: skip


def night_of(folder: Path, planned: Case) -> Night:
    """A night whose first shard has ``planned`` before another case."""
    night = Night(folder)
    night.cases[:2] = [planned, case("conv")]
    pool = night.campaign.pools[0]
    shards = (shard_plan(1, 2, night.cases[:2]), pool.shards[1])
    night.campaign = replace(night.campaign, pools=(replace(pool, shards=shards),))
    return night


@pytest.mark.parametrize("name", OTHERS)
def test_a_case_of_the_same_id_is_not_the_same(name: str, tmp_path: Path) -> None:
    """It would begin a series of its own, and a slow-down would be seen by nobody."""
    planned, edit = OTHERS[name]
    night = night_of(tmp_path / "night", planned)
    files = files_of(night.pack(1))
    assert kept(night, files, tmp_path)["case_id"] == planned.id

    def in_plan(plan: Row) -> None:
        edit(plan["groups"][0]["cases"][0]["case"])

    other = rerowed(replanned(files, in_plan), lambda row: edit(row["case"]))
    assert refused(night, other, tmp_path / "other")[0] is Reason.TOLERANCE

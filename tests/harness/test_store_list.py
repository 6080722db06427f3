"""``results list``: runs, comparisons and bisections of one store in order of time."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

from stored_runs import BEGIN, DAY, case, control_run, result, run

from torchgauge.harness.ab.reading import Answer, Reading
from torchgauge.harness.bisect.bisection import BisectionState
from torchgauge.harness.bisect.search import Search, Step
from torchgauge.harness.store_list import store_entries
from torchgauge.records import to_plain
from torchgauge.results.store import Store


@pytest.fixture
def full(tmp_path) -> Store:
    """A run, an A/A comparison of the day after, one that was cut off, and two bisections, one damaged."""
    store = Store.open(tmp_path / "store", create=True)
    run(store, "run-1", [result(case())])
    name = control_run(store, 1, [0.0, 0.01, 0.0])
    cut = store.path / "comparisons" / "ab-9999-cut"
    cut.mkdir()
    whole = store.path / "comparisons" / name
    (cut / "plan.json").write_bytes((whole / "plan.json").read_bytes())
    lines = (whole / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (cut / "journal.jsonl").write_bytes(b"".join(lines[:2]) + lines[2][:20])
    step = Step(1, "new", Reading(Answer.SAME, 1.0))
    state = BisectionState(case().id, "latency", "0" * 16, Search(("old", "new"), (step,)))
    for key, text in (("good", json.dumps(to_plain(state))), ("torn", "{")):
        path = store.path / "bisect" / key / "state.json"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return store


def test_everything_is_listed_once_in_order_of_time(full) -> None:
    """Runs and comparisons by when they were planned, bisections by their last step."""
    entries = store_entries(full)
    assert [each.kind for each in entries] == ["run", *["comparison"] * 2, *["bisection"] * 2]
    assert [each.at for each in entries] == sorted(each.at for each in entries)
    assert entries[0].at == BEGIN
    assert entries[1].at == BEGIN + DAY
    assert entries[0].plain["run_id"] == "run-1"
    assert "1/1  1 pass" in entries[0].line


def test_a_bisection_says_how_it_ended_or_that_it_is_damaged(full) -> None:
    """What cannot be read is no reason to list nothing."""
    found = {each.plain["id"]: each for each in store_entries(full) if each.kind == "bisection"}
    assert found["good"].plain["ending"] == "not_reproduced"
    assert case().id in found["good"].line
    assert "damaged" in found["torn"].line

"""A case is measured again as its newest row was; what a row names as a path is not taken from it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "results"))

from stored_runs import BEGIN, DAY, case, result, run

from torchgauge.harness.run.recorded_settings import recorded_settings
from torchgauge.harness.run.summary import brief_text, result_lines
from torchgauge.records import Again, Attempt, Cause, Phase, RunSettings, Status, to_json
from torchgauge.results.store import Store


def test_the_newest_row_says_how(tmp_path) -> None:
    """Its numbers and switches; neither its interpreter nor its files."""
    store = Store.open(tmp_path / "store", create=True)
    run(store, "a-older", [result(case())])
    run(store, "b-newer", [result(case())], at=BEGIN + DAY)
    folder = store.run("b-newer")
    settings = replace(RunSettings(), measure_budget_s=0.5, accuracy=False, torchbench="/theirs", prefetch=4)
    theirs = replace(folder.plan(), settings=settings, python="/theirs/bin/python")
    folder.plan_path.write_text(to_json(theirs))
    found = recorded_settings(str(store.path), case().id)
    assert found is not None
    assert found.run_id == "b-newer"
    told = found.settings
    assert (told.measure_budget_s, told.accuracy) == (0.5, False)
    assert (told.torchbench, told.prefetch) == (None, RunSettings().prefetch)
    assert "--python /theirs/bin/python" in found.command
    paths = {"python": "--python /theirs/bin/python", "torchbench": "--torchbench /theirs"}
    assert found.paths == paths
    assert recorded_settings(str(store.path), case("mlp").id) is None
    assert recorded_settings(str(tmp_path / "none"), case().id) is None


def test_a_row_that_was_tried_again_says_why() -> None:
    """Of a killed worker a person hears in the row that took its place, in a line and in full."""
    why, said = Again.INFRASTRUCTURE, "killed from outside"
    again = (
        Attempt(1, Status.INFRA, Phase.MEASURE, Cause.KILLED, said, "fake", 0.0, 1.0, "", why),
        Attempt(2, Status.PASS, Phase.DONE, None, "", "fake", 2.0, 1.0, ""),
    )
    row = replace(result(case()), attempt=2, attempts=again)
    (line,) = [line for line in result_lines(row) if "attempt 1" in line]
    assert "infra on fake: killed from outside; retried, because" in line
    assert "attempt 1: infra on fake: killed from outside" in brief_text([row])
    assert "attempt" not in brief_text([result(case())])

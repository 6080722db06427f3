"""The clock on the wall jumps by days under a run, and machines disagree by days: nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_S

DAYS_S = 3 * 86_400
CLOCK = "TORCHGAUGE_TEST_CLOCK"
MOVED = Path(__file__).resolve().parents[2] / "moved_clock"
SLOW = ("slow", "--device", "fake", "--config", "eager")


@pytest.fixture
def clock(sandbox: Any) -> Path:
    """The file that moves the clock of all commands of the sandbox; as long as it is empty, none."""
    file = sandbox.store_path.parent / "clock"
    file.touch()
    path = os.pathsep.join([sandbox.environment["PYTHONPATH"], str(MOVED)])
    sandbox.environment.update({"PYTHONPATH": path, CLOCK: str(file)})
    said = subprocess.run(
        [sandbox.command()[0], "-c", "import time; print(time.time())"],
        env=sandbox.environment | {CLOCK: str(move(file.with_name("proof"), DAYS_S))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(said.stdout) > time.time() + DAYS_S - PATIENCE_S, "the clock cannot be moved here"
    return file


def move(file: Path, seconds: int) -> Path:
    """Move the clock that ``file`` moves, at once as a whole."""
    aside = file.with_suffix(".aside")
    aside.write_text(str(seconds), encoding="ascii")
    return aside.rename(file)


@pytest.mark.parametrize("days_s", [pytest.param(DAYS_S, marks=pytest.mark.full), -DAYS_S])
def test_under_a_run_it_moves_no_duration(sandbox: Any, ending: Any, clock: Path, days_s: int) -> None:
    """The run keeps its id and its rows, each as long as it took; readers know it afterwards."""
    gate = sandbox.store_path.parent / "gate"
    gate.mkdir()
    (gate / "ticket-0").touch()
    began = time.monotonic()
    words = (*SLOW, *sandbox.quick, "--prefetch", "1", "--store", str(sandbox.store_path))
    sandbox.environment["TORCHGAUGE_FAULTS_GATE"] = str(gate)
    process = sandbox.start("run", *words)
    sandbox.wait_for_rows(1)
    (before,) = sandbox.store.run_ids()
    move(clock, days_s)
    (gate / "open").touch()
    _, said = process.communicate(timeout=PATIENCE_S)
    took = time.monotonic() - began
    done = subprocess.CompletedProcess(process.args, process.returncode, "", said)
    rows = sandbox.assert_ended(done, ending(0))
    assert {row.run_id for row in rows} == {before} == set(sandbox.store.run_ids())
    assert all(0 < row.duration_s < took for row in rows), [row.duration_s for row in rows]
    apart = max(row.started_at for row in rows) - min(row.started_at for row in rows)
    assert abs(apart - DAYS_S) < took
    for words in (("results", "list"), ("results", "fsck"), ("results", "query")):
        read = sandbox.run(*words, "--store", str(sandbox.store_path))
        assert read.returncode == 0, read.stderr
    site = sandbox.store_path.parent / "site"
    built = sandbox.run("dashboard", "build", str(sandbox.store_path), "--out", str(site))
    assert built.returncode == 0, built.stderr
    page = (site / "index.html").read_text(encoding="utf-8")
    assert ("a result that is dated" in page) is (days_s < 0)


def test_parts_of_machines_that_disagree_are_one_run(sandbox: Any, ending: Any, clock: Path) -> None:
    """Each part was measured three days from the plan, in either direction, and the merged run says so."""
    planned = sandbox.run("plan", *SLOW, *sandbox.quick, "--json")
    assert planned.returncode == 0, planned.stderr
    plan = sandbox.store_path.parent / "plan.json"
    plan.write_text(planned.stdout)
    groups = [group["id"] for group in json.loads(planned.stdout)["groups"]]
    parts = []
    for node, chosen, days_s in (("early", groups[:3], -DAYS_S), ("late", groups[3:], DAYS_S)):
        move(clock, days_s)
        parts.append(str(sandbox.store_path.parent / node))
        done = sandbox.run("worker", str(plan), *chosen, "--into", parts[-1], "--node", node)
        assert done.returncode == 0, done.stderr
    move(clock, 0)
    merged = sandbox.run("results", "merge", *parts, "--store", str(sandbox.store_path))
    rows = sandbox.assert_ended(merged, ending(0))
    assert len(rows) == 6
    assert all(row.duration_s < PATIENCE_S for row in rows)
    text = sandbox.folder().journal_path.read_text(encoding="utf-8")
    assert "part of early: 3 groups, 3 cases done, complete; its clock is 3 days behind" in text
    assert "part of late: 3 groups, 3 cases done, complete; its clock is 3 days ahead" in text
    site = sandbox.store_path.parent / "site"
    built = sandbox.run("dashboard", "build", str(sandbox.store_path), "--out", str(site))
    assert built.returncode == 0, built.stderr

"""Executors of a package: a good one needs no edit of ours, a bad one ends its cases with its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchgauge.records import Cause, Status

PLUGIN = Path(__file__).parents[1] / "backends_plugin"
SUMS = ("toy", "--models", "noop,sum", "--device", "cpu", "--config", "eager")
ENDINGS = {
    "idle": "ended without reporting this case",
    "stumbles": "raised ValueError: I stumbled",
    "leaves": "raised SystemExit: 0",
    "repeats": "raised ValueError: a result of a case that is not left to run: toy/",
    "invents": "raised ValueError: a result of a case that is not left to run: toy/",
    "mumbles": "raised TypeError: an executor must not yield objects of type int",
}


def run(sandbox, name: str, *more: str):
    """Two cases without torch by the executor ``name``."""
    path = f"{sandbox.environment['PYTHONPATH']}:{PLUGIN}"
    done = sandbox.measure(*SUMS, "--executor", name, "--json", *more, PYTHONPATH=path)
    assert "Traceback" not in done.stderr, done.stderr
    assert "I execute" not in done.stdout
    return done


def test_a_fair_executor_needs_no_edit(sandbox) -> None:
    """Each case has its row, and what the executor says is in the journal."""
    assert run(sandbox, "fair").returncode == 0
    rows = sandbox.rows()
    assert len(rows) == 2
    assert {row.status for row in rows} == {Status.PASS}
    assert "a stranger executes" in sandbox.folder().journal_path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ENDINGS)
def test_a_bad_executor_ends_its_cases_and_loses_no_row(sandbox, ending, name: str) -> None:
    """What it measured is kept; each other case says which executor left it, and the run is published."""
    rows = sandbox.assert_ended(run(sandbox, name), ending(3))
    assert len(rows) == 2
    lost = [row for row in rows if row.status is Status.INFRA]
    assert len(lost) == (2 if name == "idle" else 1)
    assert all(f"executor {name!r} {ENDINGS[name]}" in row.reason for row in lost), lost[0].reason


def test_an_executor_that_hangs_ends_when_its_groups_would_have(sandbox, ending) -> None:
    """It has as long as its longest group by all deadlines; rows say who left them, and nothing is green."""
    done = run(sandbox, "hangs", "--timeout", "0.1")
    kept, lost = sorted(sandbox.assert_ended(done, ending(3)), key=lambda row: row.status is Status.INFRA)
    assert kept.status is not Status.INFRA
    assert lost.cause is Cause.LOST_WORKER
    assert lost.reason.startswith("executor 'hangs' was silent for 2 s: its longest group would")
    assert json.loads(done.stdout)["incomplete"]


def test_an_executor_that_waits_for_long_says_that_it_is_alive(sandbox) -> None:
    """Whoever asks whether it is cancelled may wait for hours."""
    run(sandbox, "waits", "--timeout", "0.1")
    assert len(sandbox.rows()) == 2
    assert not [row for row in sandbox.rows() if "waits" in row.reason]


@pytest.mark.torch
def test_a_sweep_of_a_package_runs_point_by_point(sandbox) -> None:
    """One data file and one function: each point of the product that is not excluded has its row."""
    path = f"{sandbox.environment['PYTHONPATH']}:{PLUGIN}"
    done = sandbox.measure("swept", "--device", "cpu", "--config", "eager", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    found = {tuple(sorted(dict(row.case.workload.shape).items())): row.status for row in sandbox.rows()}
    wanted = [(("kind", kind), ("width", width)) for kind, width in (("relu", 8), ("relu", 16), ("tanh", 8))]
    assert found == dict.fromkeys(wanted, Status.PASS)

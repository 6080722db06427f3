"""A run that ended with rows that say nothing goes on with these alone, and each case keeps one row."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from torchgauge.records import Again, Status
from torchgauge.results.dataset import read_table

PLUGIN = Path(__file__).parents[2] / "backends_plugin"
SUMS = ("toy", "--models", "noop,sum", "--device", "cpu", "--config", "eager")


def broken(sandbox: Any, executor: str) -> Any:
    """A run whose executor leaves cases behind, and its run id."""
    sandbox.environment["PYTHONPATH"] += f":{PLUGIN}"
    done = sandbox.measure(*SUMS, "--executor", executor)
    assert done.returncode == 3
    return done


def resumed(sandbox: Any, *more: str) -> Any:
    """``run --resume latest`` of the only run."""
    return sandbox.run("run", "--resume", "latest", "--store", str(sandbox.store_path), *more)


def test_the_gap_of_a_run_is_filled(sandbox: Any) -> None:
    """The command that the summary names measures what is infra; the row has the attempt that broke."""
    said = broken(sandbox, "idle").stderr
    folder = sandbox.folder().path
    assert (
        f"Measure the missing cases with: torchgauge run --resume {folder} --executor idle --retry infra"
        in said
    )
    assert "2 infra (lost_worker): executor 'idle' ended without a result for this case" in said
    done = resumed(sandbox, "--retry", "infra")
    assert done.returncode == 0, done.stderr
    rows = sandbox.assert_accounted()
    assert [row.status for row in rows] == [Status.PASS] * 2
    assert {next((each.status, each.again) for each in row.attempts) for row in rows} == {
        (Status.INFRA, Again.INFRASTRUCTURE)
    }
    table = read_table(sandbox.store, "results").to_pylist()
    assert Counter(row["status"] for row in table) == {"pass": 2}
    assert sandbox.run("results", "fsck", "--store", str(sandbox.store_path)).returncode == 0


def test_rows_that_say_something_stand(sandbox: Any) -> None:
    """They are measured once, whatever becomes of the others."""
    broken(sandbox, "stumbles")
    (kept,) = (row for row in sandbox.rows() if row.status is Status.PASS)
    assert resumed(sandbox, "--retry", "infra").returncode == 0
    rows = sandbox.assert_accounted()
    assert len(rows) == 2
    assert kept in rows


def test_a_run_that_breaks_again_can_be_tried_again(sandbox: Any) -> None:
    """Each attempt is kept, also where the last one that was made is the row."""
    broken(sandbox, "idle")
    done = resumed(sandbox, "--retry", "infra", "--executor", "stumbles")
    assert done.returncode == 3, done.stderr
    assert Counter(row.status for row in sandbox.assert_accounted()) == {Status.PASS: 1, Status.INFRA: 1}
    done = resumed(sandbox, "--retry", "infra")
    assert done.returncode == 0, done.stderr
    rows = sandbox.assert_accounted()
    assert sorted(len(row.attempts) for row in rows) == [2, 3]
    assert [[each.number for each in row.attempts] for row in sorted(rows, key=lambda row: row.attempt)] == [
        [1, 2],
        [1, 2, 3],
    ]


def test_nothing_is_retried_that_is_not_there(sandbox: Any) -> None:
    """A complete run names the way out, and one without such a row is left as it is."""
    broken(sandbox, "idle")
    done = resumed(sandbox)
    assert done.returncode == 2
    assert "--retry infra" in done.stderr
    before = sandbox.folder().journal_path.read_bytes()
    done = resumed(sandbox, "--retry", "not_run")
    assert done.returncode == 2
    assert "has no row with status not_run" in done.stderr
    assert sandbox.folder().journal_path.read_bytes() == before
    done = sandbox.run("run", *SUMS, "--retry", "infra")
    assert done.returncode == 2
    assert "--resume RUN" in done.stderr


def test_each_cause_is_named_once_with_its_count(sandbox: Any) -> None:
    """For machines too; the job of an executor makes no cause of its own."""
    sandbox.environment["PYTHONPATH"] += f":{PLUGIN}"
    done = sandbox.measure(*SUMS, "--executor", "idle", "--json")
    assert json.loads(done.stdout)["missing"] == [
        {
            "status": "infra",
            "cause": "lost_worker",
            "reason": "executor 'idle' ended without a result for this case",
            "cases": 2,
        }
    ]

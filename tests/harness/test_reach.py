"""Precision, configurations, placement, budget and absent suites, each in a real run."""

from __future__ import annotations

import json

import pytest

from torchgauge.harness.derived_series import ONE_ALONE
from torchgauge.records import Cause, Status
from torchgauge.results.dataset import read_table

OWN = """configurations:
  - name: eager-env
    doc: one thread by an environment variable, read when torch is imported
    backend: eager
    env: {OMP_NUM_THREADS: "1", MARK_OF_CONFIGURATION: "seen"}
  - name: nowhere
    doc: a CPU that no machine has
    backend: eager
    pinning: {cpus: "4095"}
"""


@pytest.mark.torch
def test_precision_and_placement_reach_the_worker(sandbox) -> None:
    """float16 and autocast run; threads and variables hold for a process of their own, and rows say so."""
    own = sandbox.store_path.parent / "own.yaml"
    own.write_text(OWN)
    arguments = ("toy", "--models", "mlp", "--device", "cpu", "--dtype", "float16,amp")
    configurations = "eager,eager-1thread,aot_eager,eager-env,nowhere"
    done = sandbox.run(
        "run",
        *arguments,
        "--config",
        configurations,
        "--config-file",
        str(own),
        *sandbox.quick[:-2],
        "--store",
        str(sandbox.store_path),
        OMP_NUM_THREADS="2",
    )
    rows = {(row.case.workload.dtype, row.case.configuration.name): row for row in sandbox.rows()}
    assert done.returncode == 0, done.stderr
    assert {dtype for dtype, _ in rows} == {"float16", "amp_bfloat16"}
    assert {row.status for (_, name), row in rows.items() if name != "nowhere"} == {Status.PASS}, [
        (row.case_id, row.reason) for row in rows.values()
    ]
    for dtype in ("float16", "amp_bfloat16"):
        threads = {
            name: dict(row.facts).get("threads") for (kind, name), row in rows.items() if kind == dtype
        }
        assert (threads["eager"], threads["eager-1thread"], threads["eager-env"]) == (2, 1, 1)
        refused = rows[dtype, "nowhere"]
        assert (refused.status, "4095" in refused.reason) == (Status.UNSUPPORTED, True)
        speedups = {name: _absent(rows[dtype, name], "speedup") for name in ("aot_eager", "eager-1thread")}
        assert speedups["aot_eager"] in ("", ONE_ALONE)  # if busy
    repeat = rows["float16", "eager-env"].reproduce
    assert f"--config-file {own}" in repeat
    text = sandbox.run("results", "query", "dtype=float16", "--json", "--store", str(sandbox.store_path))
    assert len(json.loads(text.stdout)) == 5


def test_a_spent_budget_leaves_rows_and_a_run_to_go_on_with(sandbox) -> None:
    """What the budget left out is ``not_run: budget``, the exit code is 3, and resuming finishes the plan."""
    words = ("run", "toy", "--models", "noop,sum", "--device", "fake", "--config", "eager")
    store = ("--store", str(sandbox.store_path))
    done = sandbox.run(*words, "--measure-seconds", "1.5", "--precision", "0.0001", "--budget", "1.2", *store)
    assert done.returncode == 3, done.stderr
    assert "the budget is spent. Continue with: torchgauge run --resume" in done.stderr
    assert "left: 1 case in 1 group" in done.stderr
    published = read_table(sandbox.store, "results").to_pylist()
    assert [(row["status"], row["cause"]) for row in published] == [
        ("pass", None),
        ("not_run", Cause.BUDGET.value),
    ]
    again = sandbox.run("run", "--resume", str(sandbox.folder().path))
    assert again.returncode == 0, again.stderr
    assert [row.status for row in sandbox.rows()] == [Status.PASS, Status.PASS]


def _absent(row, metric: str) -> str:  # type: ignore[no-untyped-def]
    return next((each.absent for each in row.measurements if each.metric == metric), "not there")

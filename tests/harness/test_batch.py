"""``run --batch``: the batch is part of the case wherever rows are kept, compared or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from torchgauge.results import journal

pytestmark = pytest.mark.torch


def test_batches_are_cases_of_their_own_and_never_compared(sandbox: Any) -> None:
    """Two runs of one model with other batches: inputs of that size, two histories, and no ratio."""
    for batch in ("3", "5"):
        done = sandbox.measure(
            "toy", "--models", "mlp", "--device", "cpu", "--config", "eager", "--batch", batch
        )
        assert done.returncode == 0, done.stderr
    first, second = sandbox.store.run_ids()
    stored = sandbox.run("results", "query", "--store", str(sandbox.store_path), "--json")
    rows = {row["batch"]: row for row in json.loads(stored.stdout)}
    assert set(rows) == {3, 5}
    assert len({row["case_key"] for row in rows.values()}) == 2
    for batch, run_id in ((3, first), (5, second)):
        (row,) = journal.results(sandbox.store.run(run_id).journal_path)
        assert f":b{batch}:" in row.case_id
        assert row.realised.inputs.startswith(f"args.0: float32[{batch}x")
    done = sandbox.run("compare", first, second, "--store", str(sandbox.store_path), "--json")
    verdicts = json.loads(done.stdout)["verdicts"]
    assert [(each["verdict"], each["ratio"]) for each in verdicts] == [("not_comparable", None)]
    assert verdicts[0]["reason"] == "the workloads differ: batch 3 and 5"


def test_the_batch_overrules_every_profile_and_reaches_lent_models(sandbox: Any) -> None:
    """A model of upstream's batch, and one that the suite of features takes from another suite."""
    words = (
        "--models",
        "features/inductor.knobs-mlp,toy/convnet",
        "--batch-profile",
        "pytorch",
        "--batch",
        "7",
    )
    done = sandbox.run("plan", "features", "toy", *words, "--config", "eager", "--device", "cpu")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(":b7:") == 2, done.stdout


@pytest.mark.parametrize("verb", ["run", "plan", "ab"])
def test_a_batch_that_no_table_can_hold_is_refused(sandbox: Any, verb: str) -> None:
    """It is a user's mistake, and names the range; the largest batch in it can be planned."""
    words = ("toy", "--models", "mlp", "--config", "eager", "--device", "cpu", "--batch")
    done = sandbox.run(verb, *words, "99999999999999999999")
    assert done.returncode == 2, done.stderr
    assert "99999999999999999999 is not in the range 1<=x<=2147483647" in done.stderr
    planned = sandbox.run("plan", *words, "2147483647")
    assert ":b2147483647:" in planned.stdout, planned.stderr


@pytest.mark.parametrize(
    ("suite", "models", "why"),
    [
        ("distributed", "collectives-broadcast", "a collective has no batch: its size is `bytes`"),
        ("micro", "copy", "copy has no batch: its size is `n`"),
    ],
)
def test_what_has_no_batch_refuses_one(sandbox: Any, suite: str, models: str, why: str) -> None:
    """Its rows are unsupported, and say what its size is instead."""
    words = ("--models", models, "--device", "cpu", "--config", "eager", "--batch", "2")
    sandbox.measure(suite, *words)
    rows = sandbox.rows()
    assert rows
    for row in rows:
        assert (row.status.value, row.reason.endswith(why)) == ("unsupported", True), row.reason

"""``torchgauge results noise``: the ledger and the policy that is made of it."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

from stored_runs import case, control_run

from torchgauge.errors import UnknownNameError
from torchgauge.records.comparison import Verdict
from torchgauge.results.store import Store


@pytest.fixture
def ledger(tmp_path) -> str:
    """A store with four nights of a noisy case and one of a quiet one."""
    store, rng = Store.open(tmp_path / "store", create=True), random.Random(1)
    for night in range(4):
        said = Verdict.REGRESSION if night == 2 else Verdict.UNCHANGED
        control_run(store, night, [rng.gauss(0, 0.1) for _ in range(4)], said)
    control_run(store, 1, [0.001, -0.001, 0.0], of=case("conv"))
    return str(tmp_path / "store")


def test_an_empty_ledger_says_so(invoke, tmp_path) -> None:
    """No A/B run yet: it says what adds to it."""
    Store.open(tmp_path / "store", create=True)
    done = invoke("results", "noise", "--store", str(tmp_path / "store"))
    assert (done.exit_code, "no A/B run is in this store yet" in done.output) == (0, True)


def test_a_suggested_policy_is_valid(invoke, ledger, tmp_path) -> None:
    """``noise suggest`` writes what ``validate`` accepts, and overwrites nothing."""
    path = tmp_path / "policy.yaml"
    done = invoke("results", "noise", "suggest", "--store", ledger, "--output", str(path))
    assert done.exit_code == 0, done.output
    assert json.dumps(case().id) in path.read_text(encoding="utf-8")
    assert invoke("validate", str(path)).exit_code == 0
    assert invoke("results", "noise", "suggest", "--store", ledger).stdout.startswith("# Made by")
    assert invoke("results", "noise", "suggest", "--store", ledger, "--output", str(path)).exit_code != 0


def test_a_class_of_runner_that_is_not_there_is_told(invoke, ledger) -> None:
    """With the ones that are."""
    done = invoke("results", "noise", "--store", ledger, "--runner-class", "Test CPU, 2 cores, Linux, fak")
    assert isinstance(done.exception, UnknownNameError)
    assert "did you mean Test CPU, 2 cores, Linux, fake" in str(done.exception)

"""``torchgauge gate``: exit codes of A/B runs and of two runs, and a policy that changes them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import stored_runs
from stored_runs import BEGIN, DAY, case, launch, result, verdict

from torchgauge.errors import DataFileError, UnknownNameError, UsageError
from torchgauge.records import Status
from torchgauge.records.comparison import Pair, Verdict
from torchgauge.results.journal import RunState
from torchgauge.results.store import Store

PAIR = Pair(case(), case())
NUMBERS = {"ratio": 1.1, "low": 1.05, "high": 1.15, "base": 1.0, "head": 1.1}


@pytest.fixture
def store(tmp_path) -> Store:
    """An empty store."""
    return Store.open(tmp_path / "store", create=True)


def compared(store: Store, *verdicts, name: str = "ab-1", state=RunState.COMPLETE, pairs=(PAIR,)) -> str:
    stored_runs.comparison(store, name, [launch(PAIR, 1, 0.1)], verdicts, pairs, state=state)
    return str(store.path)


def test_a_regression_ends_with_1(invoke, store) -> None:
    """And says which one, by how much."""
    path = compared(store, verdict(PAIR, Verdict.REGRESSION, **NUMBERS))
    done = invoke("gate", "latest", "--store", path)
    assert done.exit_code == 1
    assert done.output.startswith("fail: A/B run ab-1: 1 regression")
    assert f"regression: latency of {PAIR.id} speed-up 0.909x [0.870, 0.952]" in done.output


def test_nothing_worse_ends_with_0(invoke, store) -> None:
    """And still says what was compared."""
    path = compared(store, verdict(PAIR, Verdict.UNCHANGED, ratio=1.0, low=0.99, high=1.01))
    done = invoke("gate", "ab-1", "--store", path)
    assert (done.exit_code, done.output.splitlines()[0]) == (0, "pass: A/B run ab-1: 1 unchanged")


def test_an_interrupted_comparison_ends_with_3(invoke, store) -> None:
    """What is there is fine, and the rest is not known."""
    fine = verdict(PAIR, Verdict.UNCHANGED, ratio=1.0, low=0.99, high=1.01)
    other = Pair(case("conv"), case("conv"))
    path = compared(store, fine, state=None, pairs=(PAIR, other))
    done = invoke("gate", "latest", "--store", path)
    assert done.exit_code == 3
    assert "the A/B run is interrupted" in done.output
    assert f"no verdict on {other.id}" in done.output


def test_an_empty_comparison_ends_with_3(invoke, store) -> None:
    """Nothing compared is no success."""
    done = invoke("gate", "latest", "--store", compared(store))
    assert (done.exit_code, "nothing was compared" in done.output) == (3, True)


def test_a_misspelt_override_is_told(invoke, store, tmp_path) -> None:
    """File, entry and what was probably meant, whatever the exit code; nothing of one that applies."""
    fine = verdict(PAIR, Verdict.UNCHANGED, ratio=1.0, low=0.99, high=1.01)
    path = compared(store, fine)
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"cases:\n  '{PAIR.head.id}': {{tolerance: 0.01}}\n", encoding="utf-8")
    assert "note:" not in invoke("gate", "latest", "--store", path, "--policy", str(policy)).output
    near = PAIR.head.id.replace(":inference:", ":inferense:")
    policy.write_text(
        f"suites:\n  tyo: {{tolerance: 0.01}}\n  timm: {{tolerance: 0.01}}\n"
        f"patterns:\n  'x*': {{tolerance: 0.01}}\ncases:\n  '{near}': {{tolerance: 0.01}}\n",
        encoding="utf-8",
    )
    done = invoke("gate", "latest", "--store", path, "--policy", str(policy))
    notes = [line for line in done.output.splitlines() if line.startswith("note:")]
    assert done.exit_code == 0
    start = f"note: {policy}: "
    assert notes == [
        f"{start}suites.tyo applies to none of the judged cases (1): did you mean toy?",
        f"{start}patterns.x* applies to none of the judged cases (1): correct the entry if it is misspelt",
        f"{start}cases.{near} applies to none of the judged cases (1): did you mean {PAIR.head.id}?",
    ]


def test_a_policy_decides_what_gates(invoke, process, store, tmp_path) -> None:
    """With a reason; a mistake in the file or an expired entry ends with 2, file and line."""
    path = compared(store, verdict(PAIR, Verdict.REGRESSION, **NUMBERS))
    policy = tmp_path / "policy.yaml"
    policy.write_text("suites:\n  toy:\n    tolerance: 0.3\n    reason: shared machine\n", encoding="utf-8")
    done = invoke("gate", "latest", "--store", path, "--policy", str(policy))
    assert (done.exit_code, done.output[:4]) == (0, "pass")
    policy.write_text("suites:\n  toy:\n    tolerance: 0.3\n", encoding="utf-8")
    wrong = invoke("gate", "latest", "--store", path, "--policy", str(policy)).exception
    assert (isinstance(wrong, DataFileError), "policy.yaml:3" in str(wrong)) == (True, True)
    policy.write_text("suites:\n  toy: {tolerance: 0.3, reason: x, expires: 2020-01-01}\n", encoding="utf-8")
    done = process("gate", "latest", "--store", path, "--policy", str(policy))
    assert (done.returncode, "expired on 2020-01-01" in done.stderr) == (2, True)


def test_two_runs_gate_by_status(invoke, store) -> None:
    """A broken case fails whatever the timing says; without history no step time is decided: 3."""
    for number, status in enumerate((Status.PASS, Status.PASS, Status.ERROR)):
        stored_runs.run(store, f"run-{number}", [result(case(), status=status)], at=BEGIN + number * DAY)
    done = invoke("gate", "run-1", "run-2", "--store", str(store.path))
    assert (done.exit_code, "broken: status of" in done.output) == (1, True)
    done = invoke("gate", "run-0", "run-1", "--store", str(store.path))
    assert done.exit_code == 3
    assert done.output.startswith("not known: run-0 -> run-1")
    assert "that can fail the gate has a verdict" in done.output


def test_an_unknown_comparison_is_suggested(invoke, store) -> None:
    """Exit 2 with the close one; three names are too many."""
    path = compared(store, verdict(PAIR), name="20261121T100000Z-aabbccdd")
    wrong = invoke("gate", "20261121T100000Z-aabbccdf", "--store", path).exception
    assert isinstance(wrong, UnknownNameError)
    assert "did you mean 20261121T100000Z-aabbccdd" in str(wrong)
    assert isinstance(invoke("gate", "a", "b", "c", "--store", path).exception, UsageError)

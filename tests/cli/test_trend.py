"""``torchgauge results trend``: suspicions of a real store, and a confirmation with why it cannot be."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import nightly_store


@pytest.fixture
def nightly(tmp_path) -> Path:
    """Thirty nights, of which the last eight are 20 % slower; the interpreters are gone."""
    rng = random.Random(1)
    for number in range(30):
        value = (1.2e-3 if number >= 22 else 1e-3) * (1.0 + rng.gauss(0.0, 0.004))
        nightly_store.night(tmp_path / "store", number, {"noop": value}, python=f"/gone/{number}")
    return tmp_path / "store"


def test_a_change_says_that_the_code_of_the_model_changed_with_it(invoke, tmp_path):
    """A night without a digest has no result for it; the series has the night, and the change the mark."""
    rng = random.Random(1)
    for number in range(30):
        value = (1.2e-3 if number >= 22 else 1e-3) * (1.0 + rng.gauss(0.0, 0.004))
        code = "" if number < 5 else "new" if number >= 22 else "old"
        nightly_store.night(tmp_path / "store", number, {"noop": value}, version="2.9", code=code)
    shown = invoke("results", "trend", "--store", str(tmp_path / "store")).output
    assert "torch 2.9 -> 2.9; the code of the model changed\n" in shown
    assert shown.count("model code changed on 2026-06-19") == 2, shown
    plain = invoke("results", "trend", "--store", str(tmp_path / "store"), "--json").stdout
    (series,) = json.loads(plain)["series"]
    assert series["code_changed"] == {"night-022": "new"}
    assert series["changes"][0]["code_changed"] is True
    (look,) = json.loads((tmp_path / "store/trend/findings.json").read_text())["looks"]
    assert [each["code_changed"] for each in look["findings"]] == [True]


def test_a_build_that_is_gone_is_said_and_remembered(invoke, nightly):
    """--confirm writes the outcome, and the next command shows it without measuring."""
    shown = invoke("results", "trend", "--store", str(nightly), "--confirm")
    assert shown.exit_code == 0, shown.output
    assert "NOT_CONFIRMABLE" in shown.output
    again = invoke("results", "trend", "--store", str(nightly))
    assert "/gone/21 no longer exists; try: --build 2.21=PYTHON" in again.output


def test_a_confirmed_change_for_the_worse_is_exit_1(invoke, nightly):
    """What was confirmed stays an alarm."""
    from torchgauge.results.store import Store
    from torchgauge.results.trends.trend import trend
    from torchgauge.results.trends.trend_findings import TrendFilter
    from torchgauge.results.trends.trend_outcomes import TrendOutcome, TrendState, append_outcome

    store = Store.open(nightly)
    (each,) = trend(store, TrendFilter()).suspicions
    append_outcome(store, TrendOutcome(each.series.case_key, each.series.case_id, "latency",
                                       each.series.machine, each.good.run_id, each.suspect.run_id,
                                       TrendState.CONFIRMED, "measured again, ratio 1.2", 1.0))  # fmt: skip
    shown = invoke("results", "trend", "--store", str(nightly), "--all")
    assert (shown.exit_code, "CONFIRMED" in shown.output) == (1, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--metric", "latencyy"], "did you mean latency"),
        (["--build", "a=b"], "--confirm"),
        (["--since", "yesterday"], "neither a date nor"),
        (["--store", "/no/such/store"], "is not a store"),
    ],
)
def test_mistakes_are_explained(process, nightly, words, said):
    """Exit 2 with what to try."""
    done = process("results", "trend", "--store", str(nightly), *words)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


def test_since_takes_a_date(invoke, nightly):
    """Nights before it are left out."""
    shown = invoke("results", "trend", "--store", str(nightly), "--since", "2100-01-01")
    assert "0 series; 0 nights; changes: none" in shown.output


def test_what_was_found_is_kept_unless_it_is_declined(invoke, nightly):
    """The dashboard reads what the command found; --no-keep leaves the store alone."""
    from torchgauge.results.store import Store
    from torchgauge.results.trends.trend_findings import read_findings

    store = Store.open(nightly)
    assert invoke("results", "trend", "--store", str(nightly), "--no-keep").exit_code == 0
    assert read_findings(store) is None
    shown = invoke("results", "trend", "--store", str(nightly))
    assert "findings for the dashboard are in" in shown.output
    (change,) = read_findings(store).standing()
    assert change.suspect_run == "night-022"

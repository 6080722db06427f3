"""From a store of nightly runs to suspicions, with what became of them."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from torchgauge.errors import DamagedJournalError
from torchgauge.results.store import Store
from torchgauge.results.trends.trend import trend
from torchgauge.results.trends.trend_findings import TrendFilter
from torchgauge.results.trends.trend_outcomes import TrendOutcome, TrendState, append_outcome, read_outcomes
from torchgauge.results.trends.trend_text import summary_line, trend_text

sys.path.insert(0, str(Path(__file__).parents[1]))

import nightly_store


def values(count: int, level: float, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [level * (1.0 + rng.gauss(0.0, 0.004)) for _ in range(count)]


SLOWER = [*values(24, 1e-3, 1), None, *values(7, 1.1e-3, 2)]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty-two nights of two cases, of which one becomes 10 % slower at night 25; night 24 failed."""
    path = tmp_path_factory.mktemp("trend") / "store"
    steady = values(32, 2e-3, 3)
    for number, value in enumerate(SLOWER):
        nightly_store.night(path, number, {"noop": value, "steady": steady[number]}, python="/builds/one")
    return path


@pytest.fixture
def store(path, tmp_path) -> Store:
    """A copy of that store which may be written to."""
    import shutil

    shutil.copytree(path, tmp_path / "store")
    return Store.open(tmp_path / "store")


def outcome_of(suspicion, state: TrendState) -> TrendOutcome:
    series = suspicion.series
    return TrendOutcome(
        series.case_key, series.case_id, series.metric, series.machine, suspicion.good.run_id,
        suspicion.suspect.run_id, state, "measured again, ratio 1.099", 1.0, 1.099, 1.09, 1.11,
    )  # fmt: skip


def test_a_slower_case_is_one_suspicion(store):
    """The change has its nights, builds, direction and interpreter; the failed night is a gap."""
    found = trend(store, TrendFilter())
    assert len(found.series) == 2
    (suspicion,) = found.suspicions
    assert suspicion.series.model == "noop"
    assert (suspicion.good.run_id, suspicion.suspect.run_id) == ("night-023", "night-025")
    assert (suspicion.good.torch_version, suspicion.suspect.torch_version) == ("2.23", "2.25")
    assert suspicion.suspect.python == "/builds/one"
    assert suspicion.worse is True
    assert suspicion.state is TrendState.SUSPECTED
    noop = next(each for each in found.series if each.series.model == "noop")
    assert noop.findings.missing == 1
    assert noop.drift == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (TrendFilter(model="steady"), 1),
        (TrendFilter(suite="to*"), 2),
        (TrendFilter(device="cpu"), 0),
        (TrendFilter(configuration="inductor"), 0),
        (TrendFilter(metric="peak_memory"), 0),
        (TrendFilter(since=nightly_store.BEGIN + 100 * nightly_store.DAY), 0),
    ],
)
def test_filters_select_series(store, wanted, count):
    """Each filter leaves what it says."""
    assert len(trend(store, wanted).series) == count


def test_a_short_history_says_that_it_is_short(store):
    """Silence is never success: the first line counts what could not be judged."""
    found = trend(store, TrendFilter(since=nightly_store.BEGIN + 28 * nightly_store.DAY))
    assert "2 series too short" in summary_line(found)


def test_an_outcome_is_shown_next_time_and_resets_the_baseline(store):
    """A confirmed change keeps its state, and the drift begins anew behind it."""
    (before,) = trend(store, TrendFilter()).suspicions
    append_outcome(store, outcome_of(before, TrendState.CONFIRMED))
    found = trend(store, TrendFilter())
    (after,) = found.suspicions
    assert after.state is TrendState.CONFIRMED
    assert after.outcome is not None
    assert after.change.size == pytest.approx(before.change.size, abs=0.01)
    noop = next(each for each in found.series if each.series.model == "noop")
    assert noop.drift == pytest.approx(0.0, abs=0.01)
    assert "CONFIRMED" in trend_text(found)


def test_an_outcome_that_did_not_repeat_leaves_the_baseline(store):
    """What was not reproduced is said, and the drift still counts it."""
    (before,) = trend(store, TrendFilter()).suspicions
    append_outcome(store, outcome_of(before, TrendState.CONFIRMED))
    append_outcome(store, outcome_of(before, TrendState.NOT_REPRODUCED))
    found = trend(store, TrendFilter())
    assert [each.state for each in found.suspicions] == [TrendState.NOT_REPRODUCED]
    noop = next(each for each in found.series if each.series.model == "noop")
    assert noop.drift == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(
    ("state", "size"),
    [(TrendState.NOT_REPRODUCED, 3.0), (TrendState.ENVIRONMENT, 1.3), (TrendState.CONFIRMED, 0.9)],
)
def test_an_answer_hides_no_second_change_close_behind(tmp_path, state, size):
    """Two nights after the change that was measured again there is another one: it is open, with its size."""
    levels = [*values(24, 1e-3, 1), *values(2, 1.1e-3, 2)]
    for number, value in enumerate(levels):
        nightly_store.night(tmp_path / "store", number, {"noop": value}, python="/builds/one")
    store = Store.open(tmp_path / "store")
    (first,) = trend(store, TrendFilter()).suspicions
    append_outcome(store, outcome_of(first, state))
    for number, value in enumerate(values(3, size * 1.1e-3, 3), start=len(levels)):
        nightly_store.night(tmp_path / "store", number, {"noop": value}, python="/builds/one")
    second, before = trend(Store.open(tmp_path / "store"), TrendFilter()).suspicions
    assert (before.state, before.suspect.run_id) == (state, first.suspect.run_id)
    assert before.change.size == pytest.approx(0.1, abs=0.01)
    assert (second.state, second.outcome) == (TrendState.SUSPECTED, None)
    assert second.change.size == pytest.approx(size - 1.0, abs=0.02)


def test_outcomes_of_other_cases_do_not_count(store):
    """An outcome belongs to its case and metric."""
    (before,) = trend(store, TrendFilter()).suspicions
    append_outcome(store, replace(outcome_of(before, TrendState.CONFIRMED), case_key="0" * 16))
    assert trend(store, TrendFilter()).suspicions[0].state is TrendState.SUSPECTED


def test_a_torn_line_is_passed_over_and_a_wrong_one_is_not(store):
    """A kill in the middle of an append costs that line alone; a whole line of something else is an error."""
    (suspicion,) = trend(store, TrendFilter()).suspicions
    append_outcome(store, outcome_of(suspicion, TrendState.CONFIRMED))
    file = store.path / "trend" / "outcomes.jsonl"
    file.write_bytes(file.read_bytes() + b'{"case_key": "ab')
    append_outcome(store, outcome_of(suspicion, TrendState.ENVIRONMENT))
    assert [each.state for each in read_outcomes(store)] == [TrendState.CONFIRMED, TrendState.ENVIRONMENT]
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"surprise": 1}\n')
    with pytest.raises(DamagedJournalError, match=r"outcomes\.jsonl:4"):
        read_outcomes(store)
    file.write_bytes(whole.replace(b'"confirmed"', b'"confirmed'))
    with pytest.raises(DamagedJournalError, match=r"outcomes\.jsonl:1"):
        read_outcomes(store)


def test_the_reference_build_is_a_series_of_its_own(store):
    """Runs of the pinned interpreter never mix with those of the builds that change."""
    for number in range(32):
        nightly_store.night(
            store.path, number, {"noop": 5e-3}, version="1.9", python="/pinned", name="pinned"
        )
    for name in ("/pinned", "1.9"):
        found = trend(store, TrendFilter(reference=name))
        assert len(found.suspicions) == 1
        noop = next(each for each in found.series if each.series.model == "noop")
        pinned = found.reference_of(noop.series)
        assert pinned is not None
        assert {night.value for night in pinned.nights} == {5e-3}
        assert len(noop.series.nights) == 32


def test_another_machine_is_another_series(store):
    """Numbers of two classes of machine are never in one series."""
    for number in range(3):
        nightly_store.night(store.path, 40 + number, {"noop": 9e-3}, machine="small")
    found = [each for each in trend(store, TrendFilter()).series if each.series.model == "noop"]
    assert sorted(each.findings.nights for each in found) == [3, 31]


def test_another_model_of_the_same_name_begins_another_series(tmp_path):
    """A night that failed belongs to the model before it; no change of level is seen across two models."""
    levels = [*values(24, 1e-3, 1), None, *values(24, 2e-3, 2)]
    for number, value in enumerate(levels):
        built = "narrow" if number < 25 else "wide"
        nightly_store.night(tmp_path, number, {"noop": value}, built=built, code=built)
    found = trend(Store.open(tmp_path), TrendFilter())
    assert [len(each.series.nights) for each in found.series] == [25, 24]
    assert found.suspicions == []
    text = trend_text(found)
    (row,) = [line for line in text.splitlines() if "another model since" in line]
    assert f"another model since {found.series[1].series.nights[0].date}" in row

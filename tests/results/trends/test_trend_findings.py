"""What trend found is kept, read back strictly, and counts until somebody looks again."""

from __future__ import annotations

import json
import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from torchgauge.errors import DamagedJournalError
from torchgauge.results.store import Store
from torchgauge.results.trends.trend import Trend, trend
from torchgauge.results.trends.trend_findings import TrendFilter, keep, read_findings
from torchgauge.results.trends.trend_outcomes import TrendOutcome, TrendState

sys.path.insert(0, str(Path(__file__).parents[1]))

import nightly_store

NOW = nightly_store.BEGIN + 40 * nightly_store.DAY


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Path, Trend]:
    """Thirty-two nights, of which the last seven are 10 % slower, and what trend says of them."""
    rng = random.Random(5)
    path = tmp_path_factory.mktemp("findings") / "store"
    for number in range(32):
        level = 1.1e-3 if number >= 25 else 1e-3
        nightly_store.night(path, number, {"noop": level * (1 + rng.gauss(0, 0.004))})
    return path, trend(Store.open(path), TrendFilter())


@pytest.fixture
def store(whole, tmp_path) -> Store:
    """A store to keep findings in."""
    return Store.open(tmp_path / "store", create=True)


@pytest.fixture
def found(whole) -> Trend:
    """What trend found."""
    return whole[1]


def test_a_change_survives_with_its_runs_size_and_interval(store, found):
    """Everything that a reader needs, and no detector."""
    keep(store, found, TrendFilter(), NOW)
    (look,) = read_findings(store).looks
    assert (look.as_of, look.generated_at, look.series, look.ready) == ("night-031", NOW, 1, 1)
    (change,) = look.findings
    assert (change.good_run, change.suspect_run) == ("night-024", "night-025")
    assert change.safe_run <= change.good_run < change.suspect_run <= change.latest_run
    assert (change.good_torch, change.suspect_torch) == ("2.24", "2.25")
    assert change.worse is True
    assert change.state is TrendState.SUSPECTED
    assert change.nights_since == 7
    assert change.low < change.size < change.high
    assert change.low < 0.1 < change.high
    assert change.high - change.low < 0.03


def test_the_same_question_replaces_its_answer(store, found):
    """Asking again leaves one look; another question is kept beside it, newest first."""
    keep(store, found, TrendFilter(), NOW)
    keep(store, found, TrendFilter(since=5.0), NOW + 1)
    keep(store, found, TrendFilter(suite="to*"), NOW + 2)
    looks = read_findings(store).looks
    assert [each.generated_at for each in looks] == [NOW + 2, NOW + 1]
    assert looks[0].question == TrendFilter("latency", suite="to*")


def test_a_newer_look_counts_for_the_series_that_it_selects(store, found):
    """What a newer look no longer finds is gone, and what it did not look at stays."""
    nothing = Trend([replace(each, suspicions=()) for each in found.series])
    keep(store, found, TrendFilter(), NOW)
    keep(store, nothing, TrendFilter(model="other"), NOW + 1)
    assert len(read_findings(store).standing()) == 1
    keep(store, nothing, TrendFilter(model="no*"), NOW + 2)
    assert read_findings(store).standing() == ()


def test_a_later_confirmation_counts(store, found):
    """The state and the measured size are those of the last outcome of that very change."""
    keep(store, found, TrendFilter(), NOW)
    kept = read_findings(store)
    (change,) = kept.standing()
    outcome = TrendOutcome(
        change.case_key, change.case_id, change.metric, change.machine, change.good_run, change.suspect_run,
        TrendState.CONFIRMED, "measured again", NOW, 1.12, 1.11, 1.13, "ab-1",
    )  # fmt: skip
    (now,) = kept.standing([replace(outcome, state=TrendState.ENVIRONMENT), outcome])
    assert now.state is TrendState.CONFIRMED
    assert (now.size, now.low, now.high) == pytest.approx((0.12, 0.11, 0.13))
    (other,) = kept.standing([replace(outcome, suspect_run="night-001")])
    assert other == change


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b'"schema":1', b'"schema":9'),
        lambda data: json.dumps(_with(json.loads(data), size=float("nan"))).encode(),
        lambda data: json.dumps(_with(json.loads(data), suspect_at=1e300)).encode(),
    ],
)
def test_a_damaged_file_is_said_and_replaced(store, found, damage):
    """Nothing is believed of a file that does not fit; the next look writes it anew."""
    path = keep(store, found, TrendFilter(), NOW)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DamagedJournalError, match=r"findings\.json"):
        read_findings(store)
    keep(store, found, TrendFilter(), NOW)
    assert len(read_findings(store).looks) == 1


def _with(data: dict, **changes: object) -> dict:
    data["looks"][0]["findings"][0].update(changes)
    return data

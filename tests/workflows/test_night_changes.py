"""Which changes of level stand in a later night: until they are taken back, answered or acknowledged."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import nightly_store

from torchgauge.results.comparing.policy import Policy
from torchgauge.results.store import Store
from torchgauge.results.trends.trend import Suspicion, trend
from torchgauge.results.trends.trend_findings import TrendFilter
from torchgauge.results.trends.trend_outcomes import TrendOutcome, TrendState, append_outcome
from torchgauge.workflows.night_changes import standing
from torchgauge.workflows.open_suspicions import open_in


def nights(level: float, count: int, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [level * (1.0 + rng.gauss(0.0, 0.004)) for _ in range(count)]


def store_with(folder: Path, *levels: float) -> Store:
    """Fourteen calm nights, and eight at each of ``levels`` times as long."""
    values = nights(1e-3, 14, 0)
    for number, level in enumerate(levels, start=1):
        values += nights(level * 1e-3, 8, number)
    nightly_store.history(folder / "store", values)
    return Store.open(folder / "store")


def changes(store: Store) -> list[Suspicion]:
    (series,) = trend(store, TrendFilter()).series
    return standing(series, Policy.default())


def answer(store: Store, state: TrendState, place: int = 0) -> None:
    (series,) = trend(store, TrendFilter()).series
    each = sorted(series.suspicions, key=lambda each: each.change.index)[place]
    told = (each.series.case_key, each.series.case_id, each.series.metric, each.series.machine)
    runs = (each.good.run_id, each.suspect.run_id)
    append_outcome(store, TrendOutcome(*told, *runs, state, "because", 1.0, 1.2, 1.1, 1.3))


def sizes(store: Store) -> list[float]:
    return [round(each.change.size, 1) for each in changes(store)]


@pytest.mark.parametrize(
    ("levels", "stand"),
    [
        ((1.5,), [0.5]),
        ((1.5, 1.0), []),
        ((1.5, 1.3), [0.5]),
        ((1.5, 2.0), [0.5, 0.3]),
        ((1.5, 2.0, 1.5), [0.5]),
        ((0.7,), []),
    ],
)
def test_a_change_stands_until_its_level_is_back(tmp_path: Path, levels: tuple[float, ...], stand) -> None:
    """A small improvement behind a large loss takes nothing back."""
    assert sizes(store_with(tmp_path, *levels)) == stand


@pytest.mark.parametrize(
    ("state", "stands", "is_open"),
    [
        (TrendState.CONFIRMED, True, False),
        (TrendState.NOT_CONFIRMABLE, True, True),
        (TrendState.NOT_REPRODUCED, False, False),
        (TrendState.ENVIRONMENT, False, False),
    ],
)
def test_an_answer_decides_what_stands_and_what_is_asked_again(tmp_path, state, stands, is_open) -> None:
    """What nobody could measure is asked again; what is confirmed stands, and the environment does not."""
    store = store_with(tmp_path, 1.5)
    assert len(open_in(store, Policy.default())) == 1
    answer(store, state)
    assert (len(changes(store)), len(open_in(store, Policy.default()))) == (int(stands), int(is_open))


def test_an_improvement_of_the_environment_takes_no_regression_back(tmp_path) -> None:
    """A confirmed loss of the build stands where only the machine became quicker."""
    store = store_with(tmp_path, 1.5, 1.0)
    answer(store, TrendState.CONFIRMED)
    assert sizes(store) == []
    answer(store, TrendState.ENVIRONMENT, 1)
    assert sizes(store) == [0.5]

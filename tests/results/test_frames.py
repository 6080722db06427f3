"""The pandas views: the documented columns, also without a single run."""

from __future__ import annotations

import pandas as pd
import pytest

from torchgauge.errors import UnknownNameError
from torchgauge.records import Cause, Status
from torchgauge.results import frames
from torchgauge.results.tables import TABLES

DAY = 86_400.0


class FixedClock:
    def __init__(self, at: float) -> None:
        self.at = at

    def now(self) -> float:
        return self.at

    def steady(self) -> float:
        return 0.0


@pytest.mark.parametrize("name", sorted(TABLES))
def test_an_empty_store_has_the_columns_and_no_rows(store, name):
    """A view of nothing has the shape of a view of something."""
    frame = getattr(frames, name)(store)
    of_its_row = ["modifiers"] if name == "summaries" else []
    assert list(frame.columns) == [*TABLES[name].names, *of_its_row]
    assert frame.empty
    dtypes = frame.dtypes
    assert list(frames.latest(store).columns) == [*TABLES["results"].names, "age_s", "stale"]
    assert frames.matrix(store, "latency").empty
    assert not any(dtype == "float64" for dtype in dtypes)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_dtypes_are_the_same_with_and_without_rows(store, build, name):
    """Code that works on an empty store works on a full one."""
    empty = getattr(frames, name)(store).dtypes.to_dict()
    build.published(store)
    assert getattr(frames, name)(store).dtypes.to_dict() == empty


def test_missing_numbers_are_na_and_lists_are_lists(store, build):
    """A null of the table is pd.NA, never NaN, and the modifiers are a list of words."""
    build.published(store)
    frame = frames.summaries(store).set_index("metric")
    assert frame.loc["peak_memory", "median"] is pd.NA
    assert frame.loc["peak_memory", "absent"] == "the device has no counter"
    assert frames.results(store)["modifiers"].tolist() == [[], ["degraded", "flaky"]]
    assert frames.results(store)["started_at"].dt.tz is not None


def test_views_can_be_narrowed_to_runs(store, build):
    """One run, several runs, or an error that suggests the run that was meant."""
    for run_id in ("run-1", "run-2", "run-3"):
        build.published(store, run_id)
    assert set(frames.results(store, "run-2")["run_id"]) == {"run-2"}
    assert len(frames.results(store, ["run-1", "run-3"])) == 4
    with pytest.raises(UnknownNameError, match="run-2"):
        frames.results(store, "run_2")


def test_an_unpublished_run_is_not_seen(store, build):
    """Views read Parquet only, so a run in progress shows nowhere but in the list of runs."""
    with store.begin(build.plan()).open_journal():
        assert frames.results(store).empty
        assert len(store.runs()) == 1


def test_latest_is_the_newest_row_with_its_age(store, build):
    """Of two runs the newer one wins, whatever its id sorts like; old rows are marked stale."""
    at = build.created_at
    build.published(store, "z", [build.result("z", started_at=at), build.crashed("z", started_at=at)])
    newer = build.result("a", started_at=at + 20 * DAY)
    build.published(store, "a", [newer], models=("linear",), created_at=at + 20 * DAY)
    frame = frames.latest(store, clock=FixedClock(at + 21 * DAY)).set_index("model")
    assert frame.loc["linear", ["run_id", "age_s", "stale"]].tolist() == ["a", DAY, False]
    assert frame.loc["conv", ["run_id", "age_s", "stale"]].tolist() == ["z", 21 * DAY, True]


def test_a_row_that_says_nothing_gives_way_to_an_older_one(store, build):
    """A case that was not reached tonight shows yesterday's result, marked stale."""
    at = build.created_at
    build.published(store, "day-1")
    unreached = {"status": Status.NOT_RUN, "cause": Cause.BUDGET, "started_at": 0.0}
    rows = [build.result("day-2", started_at=at + DAY), build.result("day-2", "conv", **unreached)]
    build.published(store, "day-2", rows, created_at=at + DAY)
    frame = frames.latest(store, clock=FixedClock(at + DAY)).set_index("model")
    assert frame.loc["linear", ["run_id", "status", "stale"]].tolist() == ["day-2", "pass", False]
    assert frame.loc["conv", ["run_id", "status", "stale"]].tolist() == ["day-1", "crash", True]


def test_a_matrix_sets_devices_and_configurations_side_by_side(store, build):
    """Rows are workloads, columns pairs of device and configuration, and a hole is pd.NA."""
    cases = [build.case(), build.case(configuration="inductor"), build.case("conv", device="other")]
    results = [build.result(case=case, samples=[float(i + 1)]) for i, case in enumerate(cases)]
    plan = build.plan()
    group = plan.groups[0]
    planned = tuple(type(group.cases[0])(case, group.cases[0].tolerance) for case in cases)
    build.published(store, results=results, groups=(type(group)("g", planned),))
    table = frames.matrix(store, "latency").droplevel([0, *range(2, 9)])
    assert table.loc["linear", ("fake", "inductor")] == 2.0
    assert table.loc["conv", ("other", "eager")] == 3.0
    assert table.loc["conv", ("fake", "eager")] is pd.NA
    assert frames.matrix(store, "peak_memory").empty

"""Rows in files: each column as the store has it, in CSV and in Parquet."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from stored_runs import BEGIN, DAY, case, result, run

from torchgauge.errors import UsageError
from torchgauge.results import frames
from torchgauge.results.store import Store
from torchgauge.results.table_export import CSV, PARQUET, Wanted, export_table, places


@pytest.fixture
def full(tmp_path) -> Store:
    """Two runs, whose reasons a spreadsheet would run."""
    store = Store.open(tmp_path / "store", create=True)
    run(store, "one", [result(case(), 1.25e-3, reason="=1+1")])
    run(store, "two", [result(case(), 2.5e-3)], at=BEGIN + DAY)
    return store


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file by the names of its columns."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_csv_has_every_row_with_all_digits(full, tmp_path) -> None:
    """Numbers are as they were measured, nothing is nothing, and no cell is a formula."""
    path = tmp_path / "rows.csv"
    wanted = Wanted(("summaries",), ("metric=latency",))
    assert export_table(full, "summaries", path, CSV, wanted) == 2
    rows = rows_of(path)
    measured = frames.summaries(full)
    expected = measured[measured["metric"] == "latency"]["median"].tolist()
    assert [float(row["median"]) for row in rows] == expected == pytest.approx([1.25e-3, 2.5e-3])
    assert [row["absent"] for row in rows] == ["", ""]
    assert export_table(full, "results", tmp_path / "results.csv", CSV, Wanted(run="one")) == 1
    (only,) = rows_of(tmp_path / "results.csv")
    assert (only["run_id"], only["reason"]) == ("one", "'=1+1")


@pytest.mark.parametrize("table", ["results", "summaries", "samples", "environments"])
def test_parquet_is_what_the_frames_are(full, tmp_path, table) -> None:
    """The same rows and columns, with the types of the store."""
    path = tmp_path / "out" / f"{table}.parquet"
    rows = export_table(full, table, path, PARQUET, Wanted())
    expected = getattr(frames, table)(full)
    assert rows == len(expected) > 0
    found = pd.read_parquet(path)
    assert list(found.columns) == list(expected.columns)
    assert found["run_id"].tolist() == expected["run_id"].tolist()


def test_places_of_the_wrong_kind_are_refused(tmp_path) -> None:
    """Several tables in one file, conditions on several, a missing folder, and a file in the way."""
    (tmp_path / "words").touch()
    for out, wanted in (
        ("a.csv", Wanted(("results", "samples"))),
        ("d", Wanted(("results", "samples"), ("status=pass",))),
        ("missing/a.csv", Wanted()),
        ("words", Wanted()),
    ):
        with pytest.raises(UsageError):
            places(tmp_path / out, CSV, wanted)

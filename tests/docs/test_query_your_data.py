"""The recipes of ``docs/how-to/query-your-data.md`` over real stores: each says what torchgauge says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import duckdb
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import stored_runs as made

from torchgauge.records import Modifier, Status
from torchgauge.records.status import UNCOUNTED, UNTIMED
from torchgauge.results import frames
from torchgauge.results.compacted.compaction import compact
from torchgauge.results.publication import publish_again
from torchgauge.results.store import Store

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "query-your-data.md"
VIEWS, LATEST, SERIES, SPEEDUP, CSV = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
FRAMES, FILES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
EAGER, COMPILED = (
    made.case("mlp", configuration, "cpu", batch=32) for configuration in ("eager", "inductor")
)
CPU = made.environment("cpu")


def filled(path: Path) -> Store:
    """Three nights of the tutorial's model, eager and compiled; the last is unsteady, and has one of them."""
    store = Store.open(path, create=True)
    for number in range(3):
        last = number == 2
        eager = made.result(
            EAGER,
            1e-3 * (number + 2),
            started_at=made.BEGIN + number * made.DAY,
            modifiers=(Modifier.UNSTEADY,) if last else (),
        )
        compiled = made.result(COMPILED, 0.5e-3, started_at=made.BEGIN + number * made.DAY + 60)
        if last:
            compiled = made.result(COMPILED, status=Status.INFRA, started_at=made.BEGIN + 2 * made.DAY)
        made.run(store, f"night-{number}", [eager, compiled], CPU, at=made.BEGIN + number * made.DAY)
    return store


@pytest.fixture(params=["runs and a month", "a run that is in both"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store that is the current folder: three nights in a compacted month, and one after it."""
    store = filled(tmp_path / "store")
    compact(store)
    if request.param == "a run that is in both":
        publish_again(store, "night-1")
    later = made.result(EAGER, 9e-3, started_at=made.BEGIN + 60 * made.DAY)
    made.run(store, "night-9", [later], CPU, at=made.BEGIN + 60 * made.DAY)
    monkeypatch.chdir(store.path)
    return store


def asked(query: str) -> pd.DataFrame:
    """What DuckDB answers in the current folder."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(VIEWS)
        return connection.execute(query).df()


def test_the_latest_rows_are_those_of_torchgauge(store: Store) -> None:
    """Case by case, with the run that stands."""
    found = asked(LATEST)
    expected = frames.latest(store)
    assert found["case_id"].tolist() == expected["case_id"].tolist()
    assert found["run_id"].tolist() == expected["run_id"].tolist() == ["night-9", "night-1"]


def test_a_series_has_its_nights_in_order(store: Store) -> None:
    """Without the unsteady one."""
    found = asked(SERIES)
    assert found["median"].tolist() == pytest.approx([2e-3, 3e-3, 9e-3])
    assert found["moment"].is_monotonic_increasing


def test_the_ratio_is_of_one_run(store: Store) -> None:
    """Eager's time over inductor's."""
    assert asked(SPEEDUP)["speedup"].tolist() == pytest.approx([4.0, 6.0])


def test_the_csv_file_has_every_row_once(store: Store) -> None:
    """Also of a run that is in its month and beside it."""
    asked(CSV)
    assert len(pd.read_csv("results.csv")) == len(frames.results(store)) == 7


def test_frames_answer_the_same(store: Store) -> None:
    """Each line of the page runs."""
    found: dict[str, pd.DataFrame] = {}
    exec(compile(FRAMES, str(PAGE), "exec"), found)
    assert found["latest"]["status"].tolist() == ["pass", "pass"]
    assert found["series"]["median"].tolist() == pytest.approx([2e-3, 3e-3, 9e-3])
    assert found["speedup"].tolist() == pytest.approx([18.0])
    assert len(pd.read_csv("rows.csv")) == 7


def test_pandas_reads_a_folder_of_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without torchgauge."""
    monkeypatch.chdir(filled(tmp_path / "store").path)
    found: dict[str, pd.DataFrame] = {}
    exec(compile(FILES, str(PAGE), "exec"), found)
    assert found["median"].to_dict() == {
        ("cpu", "eager"): pytest.approx(2.5e-3),
        ("cpu", "inductor"): pytest.approx(0.5e-3),
    }


def test_no_example_has_a_time_of_a_busy_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tutorial on a busy machine makes only unsteady rows: every block runs, none has a time."""
    store = Store.open(tmp_path / "store", create=True)
    marked = [made.result(case, modifiers=(Modifier.UNSTEADY,)) for case in (EAGER, COMPILED)]
    made.run(store, "night", marked, CPU, at=made.BEGIN)
    monkeypatch.chdir(store.path)
    assert [len(asked(query)) for query in (LATEST, SERIES, SPEEDUP)] == [2, 0, 0]
    for block, name in ((FRAMES, "speedup"), (FRAMES, "series"), (FILES, "median")):
        found: dict[str, pd.DataFrame] = {}
        exec(compile(block, str(PAGE), "exec"), found)
        assert len(found[name]) == found[name].isna().sum().sum()


def test_the_examples_exclude_the_modifiers_that_pages_exclude() -> None:
    """SQL and pandas name them all."""
    for block in (VIEWS, FILES):
        assert {each for each in Modifier if each.value in re.findall(r"['\"](\w+)['\"]", block)} == (
            UNTIMED | UNCOUNTED
        )

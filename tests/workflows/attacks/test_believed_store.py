"""A store from elsewhere: only plan and journal count, and one bad run never ends the site of the others."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign_sets import journal_of, lines_of
from stored_runs import BEGIN, DAY, case, result, run

from torchgauge.cli.main import cli
from torchgauge.results.dataset import read_table
from torchgauge.results.store import Store

GOOD, BAD = "20260528T201000Z-00000001", "20260529T201000Z-00000002"
LONG = "9" * 400
Spoil = Callable[[Path], object]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two runs, never published by `dashboard publish`."""
    store = Store.open(tmp_path_factory.mktemp("made") / "store", create=True)
    for run_id, at in ((GOOD, BEGIN), (BAD, BEGIN + DAY)):
        run(store, run_id, [result(case(name), started_at=at) for name in ("linear", "conv")], at=at)
    return store.path


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "store"))


def invoke(*words: object) -> Any:
    return CliRunner().invoke(cli, [str(word) for word in words])


def publish(store: Path) -> dict[str, Any]:
    """What `dashboard publish` prints of ``store``; fails where it did not end well."""
    done = invoke("dashboard", "publish", "--store", store, "--site", store.parent / "site")
    assert done.exit_code == 0, done.output
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def rewritten(table: str, change: Callable[[pa.Table], pa.Table]) -> Spoil:
    """The table of the bad run as ``change`` leaves it, without a seal that would tell."""

    def spoil(store: Path) -> None:
        path = store / "tables" / table / f"{BAD}.parquet"
        before = pq.read_table(path)
        after = change(before)
        fields = [field.with_nullable(True) for field in after.schema]
        schema = pa.schema(fields, metadata=before.schema.metadata)
        pq.write_table(pa.Table.from_arrays(after.columns, schema=schema), path)
        (store / "runs" / BAD / "seal.json").unlink()

    return spoil


def column(name: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    """All of a column replaced by ``value``, which may be an array."""

    def change(table: pa.Table) -> pa.Table:
        place = table.schema.get_field_index(name)
        kind = table.schema.field(name)
        values = value if isinstance(value, pa.Array) else pa.array([value] * table.num_rows, kind.type)
        return table.set_column(place, kind.with_type(values.type), values)

    return change


def bomb(table: pa.Table) -> pa.Table:
    """Eight thousand rows with a text of a MiB: some ten KiB that unpack to 8 GB."""
    rows = 8000
    text = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array(["x" * (1 << 20)]))
    columns = {
        name: text
        if name == "unit"
        else pa.array([table[name][0].as_py()] * rows, table.schema.field(name).type)
        for name in table.column_names
    }
    return pa.table(columns)


NOT_TEXT = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff\xfe"] * 2, pa.binary()).buffers())
TABLES: dict[str, Spoil] = {
    "a hundred times as fast": rewritten("summaries", column("median", 1e-5)),
    "medians of minus one": rewritten("summaries", column("median", -1.0)),
    "medians without end": rewritten("summaries", column("median", float("inf"))),
    "text that is not UTF-8": rewritten("summaries", column("unit", NOT_TEXT)),
    "a bomb": rewritten("summaries", bomb),
    "half a table": lambda store: (path := store / "tables" / "results" / f"{BAD}.parquet").write_bytes(
        path.read_bytes()[:-200]
    ),
    "a date of 400 digits in run.json": lambda store: edited(
        store, "run.json", r'"created_at": [^,\n]*', LONG
    ),
}


def edited(store: Path, name: str, pattern: str, value: str) -> None:
    """Give the first field of ``pattern`` in a file of the bad run another ``value``."""
    path = store / "runs" / BAD / name
    text, count = re.subn(pattern, f'"created_at": {value}', path.read_text(), count=1)
    assert count == 1
    path.write_text(text)


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_made_from_the_journal(name: str, store: Path) -> None:
    """Whatever lies there instead: the numbers that are published are those of the journal."""
    TABLES[name](store)
    assert publish(store)["left_out"] == {}
    rows = read_table(Store.open(store), "summaries", BAD, ("metric", "median", "unit")).to_pylist()
    assert rows == [{"metric": "latency", "median": pytest.approx(1e-3), "unit": "s"}] * 2
    assert invoke("results", "fsck", "--store", store).exit_code == 0


@pytest.mark.parametrize("name", [name for name in TABLES if "run.json" not in name])
def test_a_check_finds_tables_that_are_not_of_the_journal(name: str, store: Path) -> None:
    """By the name of the file, in bounded memory."""
    TABLES[name](store)
    done = invoke("results", "fsck", "--store", store)
    assert (done.exit_code, f"{BAD}.parquet" in done.stdout) == (3, True)


@pytest.mark.parametrize("name", ["a bomb", "text that is not UTF-8", "half a table"])
def test_a_site_of_a_store_that_nobody_published_leaves_such_a_run_out(name: str, store: Path) -> None:
    """By its name, and shows the other one."""
    TABLES[name](store)
    done = invoke("dashboard", "build", store, "--out", store.parent / "site")
    assert done.exit_code == 0, done.output
    assert BAD in (store.parent / "site" / "index.html").read_text()


def journal(old: bytes, new: bytes) -> Spoil:
    """The journal of the bad run with right checksums, and without tables."""

    def spoil(store: Path) -> None:
        path = store / "runs" / BAD / "journal.jsonl"
        assert old in path.read_bytes()
        path.write_bytes(
            journal_of([(kind, body.replace(old, new)) for kind, body in lines_of(path.read_bytes())])
        )
        without_tables(store)

    return spoil


def without_tables(store: Path) -> None:
    for path in store.glob(f"tables/*/{BAD}.parquet"):
        path.unlink()
    for name in ("run.json", "seal.json"):
        (store / "runs" / BAD / name).unlink()


def planned(value: str) -> Spoil:
    return lambda store: (without_tables(store), edited(store, "plan.json", r'"created_at": [^,\n]*', value))


def linked(store: Path) -> None:
    """The folder of the run leads out of the store."""
    shutil.move(store / "runs" / BAD, store.parent / "outside")
    (store / "runs" / BAD).symlink_to(store.parent / "outside")


def linked_journal(store: Path) -> None:
    without_tables(store)
    path = store / "runs" / BAD / "journal.jsonl"
    shutil.move(path, store.parent / "journal.jsonl")
    path.symlink_to(store.parent / "journal.jsonl")


def folder_for(name: str) -> Spoil:
    """Put a folder in the place of a file of the run, which git carries too."""

    def spoil(store: Path) -> None:
        without_tables(store)
        (store / "runs" / BAD / name).unlink()
        (store / "runs" / BAD / name).mkdir()

    return spoil


JOURNALS: dict[str, Spoil] = {
    "a median of minus one": journal(b'"median":0.001', b'"median":-1.0'),
    "a median without end": journal(b'"median":0.001', b'"median":1e999'),
    "text that is not UTF-8": journal(b'"exit":""', b'"exit":"\xff"'),
    "no JSON": journal(b'"exit":""', b'"exit":'),
    "a record of something else": journal(b'"case":{', b'"case":[],"x":{'),
    "a row of a list": journal(b'"status":"pass"', b'"status":[]'),
    "a date of 400 digits": planned(LONG),
    "a date without end": planned("1e999"),
    "a date of the year 5000": planned("95617584000"),
    "a folder that is a link": linked,
    "a journal that is a link": linked_journal,
    "a journal that is a folder": folder_for("journal.jsonl"),
    "a plan that is a folder": folder_for("plan.json"),
    "tables without a run": lambda store: shutil.rmtree(store / "runs" / BAD),
}


@pytest.mark.parametrize("name", JOURNALS)
def test_one_damaged_run_is_left_out_by_its_name(name: str, store: Path) -> None:
    """The other one is published, and the next publication does not miss the one that never was."""
    JOURNALS[name](store)
    for _ in range(2):
        said = publish(store)
        assert (list(said["left_out"]), said["runs"]) == ([BAD], 1)
        assert "1/1" not in said["left_out"][BAD]
        assert "linear" in (store.parent / "site" / "compatibility.html").read_text()
    assert invoke("results", "fsck", "--store", store).exit_code == 3


def test_a_run_that_is_damaged_later_stays_in_the_history(store: Path) -> None:
    """It is left out of the site, its rows still count, and a whole copy brings it back."""
    assert publish(store)["rows"] == 4
    path = store / "runs" / BAD / "journal.jsonl"
    sound = path.read_bytes()
    path.write_bytes(b"x" + sound[1:])
    said = publish(store)
    assert (list(said["left_out"]), said["rows"]) == ([BAD], 4)
    path.write_bytes(sound)
    assert publish(store)["left_out"] == {}


@pytest.mark.parametrize("name", ["index.html", "99991231T235959Z-00000000", "run-1"])
def test_a_foreign_name_of_a_run_is_left_out(name: str, store: Path) -> None:
    """Order, files and links are made of names."""
    shutil.copytree(store / "runs" / BAD, store / "runs" / name)
    for path in store.glob(f"tables/*/{BAD}.parquet"):
        shutil.copy(path, path.with_name(f"{name}.parquet"))
    assert list(publish(store)["left_out"]) == [name]


@pytest.mark.parametrize(
    "text",
    [
        '{"attempt": 1, "shard": 1, "planned_at": ' + LONG + "}",
        '{"attempt": 1, "shard": "x", "supersedes": 5}',
        '{"attempt": 1, "shard": 1, "supersedes": ["../..", "' + GOOD + '"]}',
        "[]",
    ],
)
def test_what_a_run_says_of_its_origin_removes_nothing(text: str, store: Path) -> None:
    """It takes no other run's place, and ends nothing."""
    (store / "runs" / BAD / "provenance.json").write_text(text)
    said = publish(store)
    assert (said["left_out"], said["runs"]) == ({}, 2)


def test_a_table_that_is_replaced_later_is_not_read(store: Path) -> None:
    """The seal that the publication knows names its bytes."""
    publish(store)
    own = store / "tables" / "samples" / f"{BAD}.parquet"
    sound = own.read_bytes()
    shutil.copy(store / "tables" / "samples" / f"{GOOD}.parquet", own)
    publish(store)
    assert own.read_bytes() == sound


def test_what_was_made_before_is_not_made_again(store: Path) -> None:
    """A publication costs the runs that are new."""
    publish(store)
    tables = {path: path.stat().st_mtime_ns for path in store.glob("tables/*/*.parquet")}
    publish(store)
    assert {path: path.stat().st_mtime_ns for path in store.glob("tables/*/*.parquet")} == tables

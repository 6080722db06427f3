"""Stores of other schema versions: older ones read as today's, newer ones refused."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from torchgauge.errors import UsageError
from torchgauge.harness.planning.sharding import other_shardings
from torchgauge.records import SCHEMA_VERSION
from torchgauge.results import frames, migrations
from torchgauge.results.comparing.comparison_store import (
    comparison,
    comparison_ids,
    finish_comparison,
    read_comparisons,
)
from torchgauge.results.dataset import read_table
from torchgauge.results.store import Store
from torchgauge.results.tables import TABLES

V0 = Path(__file__).parent / "data" / "v0"


@pytest.fixture
def old(tmp_path) -> Store:
    shutil.copytree(V0, tmp_path / "v0")
    return Store.open(tmp_path / "v0")


def test_tables_of_version_0_have_the_columns_of_today(old, build):
    """A renamed column keeps its values, and columns that were unknown then are empty."""
    for name, table in TABLES.items():
        assert read_table(old, name).schema.names == list(table.names)
    rows = read_table(old, "results").to_pylist()
    assert [(row["device"], row["modifiers"]) for row in rows] == [("fake", []), ("fake", [])]
    assert rows[1]["missing_op"] == "aten::conv2d"
    assert rows[0]["case_key"] == build.case().key
    assert {row["device"] for row in read_table(old, "summaries").to_pylist()} == {"fake"}
    assert [row["block"] for row in read_table(old, "samples").to_pylist()] == [None] * 3
    assert frames.calibrations(old).empty


@pytest.mark.parametrize("version", ["v0", "v1", "v4", "v5"])
@pytest.mark.parametrize("name", TABLES)
def test_a_column_of_an_old_table_is_the_same_alone(tmp_path, version, name):
    """Also one that a step renames, adds or changes: builds of sites read a few columns of each run."""
    shutil.copytree(V0.with_name(version), tmp_path / version)
    store = Store.open(tmp_path / version)
    whole = read_table(store, name)
    for column in TABLES[name].names:
        assert read_table(store, name, columns=[column]).equals(whole.select([column])), column


def test_a_journal_of_version_0_is_published_as_today(old, build):
    """A run that an older torchgauge left unpublished becomes tables of today's schema."""
    assert {info.run_id: info.recorded for info in old.runs()} == {"old-published": 2, "old-unpublished": 2}
    old.finish("old-unpublished")
    rows = read_table(old, "results", "old-unpublished").to_pylist()
    assert [row["status"] for row in rows] == ["pass", "crash"]
    assert [row["error_type"] for row in rows] == [None, "RuntimeError"]
    assert {row["schema_version"] for row in rows} == {SCHEMA_VERSION}
    assert len(frames.latest(old)) == 2


def test_an_old_run_is_not_resumed_and_a_new_one_claims_the_store(old, build):
    """Versions do not mix in one journal, and the store says that newer files are in it."""
    with pytest.raises(UsageError, match="can be read but not resumed"):
        old.run("old-unpublished").open_journal()
    build.published(old, "new")
    assert json.loads((old.path / "store.json").read_text())["schema_version"] == SCHEMA_VERSION
    assert sorted(frames.results(old)["run_id"].unique()) == ["new", "old-published"]


def test_a_newer_version_is_refused_with_advice(tmp_path, build):
    """A store, a plan or a table of tomorrow is not guessed at."""
    store = Store.open(tmp_path / "s", create=True)
    build.published(store)
    plan = store.run("run-1").plan_path
    newer = {"schema_version": SCHEMA_VERSION + 1}
    plan.write_text(json.dumps(json.loads(plan.read_text()) | newer))
    with pytest.raises(UsageError, match="written by a newer torchgauge"):
        store.run("run-1").plan()
    (store.path / "store.json").write_text(json.dumps(newer))
    with pytest.raises(UsageError, match=r"written by a newer torchgauge[^$]*upgrade"):
        Store.open(store.path)


def test_every_older_version_has_its_steps():
    """A raised schema version without a migration does not pass the tests."""
    assert set(migrations.RECORD_STEPS) == set(migrations.TABLE_STEPS) == set(range(SCHEMA_VERSION))
    with pytest.raises(UsageError, match="is not a version"):
        migrations.check_version("1", "store.json")


def test_a_store_of_version_1_is_read_as_today(tmp_path):
    """A run written by the code of version 1: its plan, its tables and its journal, with unchanged keys."""
    shutil.copytree(Path(__file__).parent / "data" / "v1", tmp_path / "v1")
    store = Store.open(tmp_path / "v1")
    (run_id,) = store.run_ids()
    plan = store.run(run_id).plan()
    refused = {planned.case.key for planned in plan.cases if planned.refusal is not None}
    assert len(refused) == 12
    rows = read_table(store, "results").to_pylist()
    assert {row["case_key"] for row in rows if row["status"] == "unsupported"} == refused
    assert {(row["weights"], row["configuration_compile"]) for row in rows} == {("random", None)}
    shutil.rmtree(tmp_path / "v1" / "tables")
    store.finish(run_id)
    again = read_table(store, "results").to_pylist()
    assert [row["status"] for row in again] == [row["status"] for row in rows]
    assert {row["schema_version"] for row in again} == {SCHEMA_VERSION}


def test_private_words_of_version_4_are_read_as_those_of_today(tmp_path):
    """Settings, a schedule, a cause and ABBA blocks, from plans, journals and tables."""
    shutil.copytree(V0.with_name("v4"), tmp_path / "v4")
    store = Store.open(tmp_path / "v4")
    (run_id,), (ab_id,) = store.run_ids(), comparison_ids(store)
    plan = store.run(run_id).plan()
    assert (plan.settings.prefetch, plan.provenance[0].name) == (3, "prefetch")
    assert plan.schedule is not None
    assert plan.schedule.sharding == "bb"
    assert other_shardings(store, replace(plan, schedule=replace(plan.schedule, sharding="cc"))) == [run_id]
    assert other_shardings(store, plan) == []
    compared = comparison(store, ab_id)
    assert compared.plan().settings.prefetch == 1
    numbers = [block.abba_block for launch in compared.launches() for block in launch.blocks]
    assert numbers == [number for number in range(4) for _ in range(4)]
    assert [each.metric for each in compared.verdicts()] == ["latency"]
    for source in ("tables", "journal"):
        if source == "journal":
            shutil.rmtree(tmp_path / "v4" / "tables")
            store.finish(run_id)
            finish_comparison(store, compared, compared.plan())
        causes = [row["cause"] for row in read_table(store, "results", run_id).to_pylist()]
        assert causes == [None, "conflicting_package"], source
        steps = read_comparisons(store, "steps", columns=["abba_block"])
        assert steps["abba_block"].to_pylist() == numbers, source
        assert read_comparisons(store, "launches")["abba_blocks"].to_pylist() == [4], source


@pytest.mark.parametrize(("version", "few"), [("v0", 1), ("v1", 5)])
def test_intervals_of_fewer_than_six_samples_are_not_read(tmp_path, version, few):
    """Until version 2 a bootstrap gave them one: neither the tables nor the journal say it any more."""
    shutil.copytree(Path(__file__).parent / "data" / version, tmp_path / version)
    store = Store.open(tmp_path / version)
    run_id = store.published()[0]
    for source in ("tables", "journal"):
        if source == "journal":
            shutil.rmtree(tmp_path / version / "tables")
            store.finish(run_id)
        rows = [row for row in read_table(store, "summaries", run_id).to_pylist() if 1 < row["n"] < 6]
        assert len(rows) >= few, source
        assert {(row["low"], row["high"], row["method"]) for row in rows} == {(None, None, "too-few")}
        assert all(row["median"] is not None for row in rows)

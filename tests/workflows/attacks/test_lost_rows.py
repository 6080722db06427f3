"""Rows that the intake counted and the store no longer has: neither gate nor publication is green without."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign_sets import Night

from torchgauge.cli.main import cli
from torchgauge.errors import TorchgaugeError
from torchgauge.results.store import Store
from torchgauge.workflows.campaign import campaign_json


@pytest.fixture
def collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Store, str]:
    """A store into which a whole night was collected, and the id of one of its runs."""
    night = Night(tmp_path / "night")
    for shard in (1, 2):
        night.pack(shard)
    monkeypatch.chdir(tmp_path)
    Path("campaign.json").write_text(campaign_json(night.campaign))
    assert ci("collect", "night/artifacts", "--store", "store")[0] == 0
    assert ci("gate", "--store", "store")[0] == 0
    return Store.open("store"), night.run_id(1)


def ci(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["ci", *words])
    if isinstance(done.exception, TorchgaugeError):  # which the process tells in a line
        return done.exception.exit_code, str(done.exception)
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def cut_journal(store: Store, run: str) -> None:
    journal = store.path / "runs" / run / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:300])


def no_journal(store: Store, run: str) -> None:
    (store.path / "runs" / run / "journal.jsonl").unlink()


def no_table(store: Store, run: str) -> None:
    store.table_path("results", run).unlink()


def another_table(store: Store, run: str) -> None:
    import pyarrow.parquet as pq

    table = store.table_path("results", run)
    pq.write_table(pq.read_table(table).slice(0, 1), table)


LOSSES: dict[str, tuple[Callable[[Store, str], None], int]] = {
    "a journal that was cut off": (cut_journal, 0),
    "a journal that is gone": (no_journal, 0),
    "a table that is gone": (no_table, 0),
    "a table of fewer rows": (another_table, 1),
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_gate_misses_what_was_collected(name: str, collected: tuple[Store, str]) -> None:
    """An artifact and another job may lie between the collection and the gate."""
    store, run = collected
    lose, left = LOSSES[name]
    lose(store, run)
    code, told = ci("gate", "--store", "store")
    assert code == 3
    assert f"the store has only {left} of 2 results collected from run {run}" in told


@pytest.mark.parametrize("name", ["a table that is gone", "a table of fewer rows"])
def test_a_publication_makes_lost_rows_again(name: str, collected: tuple[Store, str]) -> None:
    """Of the journal."""
    store, run = collected
    LOSSES[name][0](store, run)
    code, told = ci("publish", "--store", "store", "--site", "site")
    assert (code, '"rows": 4,' in told, "left out" in told) == (0, True, False), told


def test_a_publication_names_what_came_in_and_is_gone(collected: tuple[Store, str]) -> None:
    """Its guard knows earlier publications alone; the provenance of a run says how many rows it brought."""
    store, run = collected
    for table in store.path.glob(f"tables/*/{run}.parquet"):
        table.unlink()
    cut_journal(store, run)
    code, told = ci("publish", "--store", "store", "--site", "site")
    assert (code, f"left out: {run}: the run has 0 of 2 imported rows" in told) == (0, True)


def test_a_run_that_is_gone_is_missed(collected: tuple[Store, str]) -> None:
    """Folder and tables: the gate names it."""
    store, run = collected
    no_table(store, run)
    shutil.rmtree(store.path / "runs" / run)
    code, told = ci("gate", "--store", "store")
    assert code != 0
    assert run in told

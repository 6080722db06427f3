"""The history that one job collected and another one writes: plain files are taken over, or nothing is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchgauge.cli.main import cli
from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.workflows.history_files import add_files


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """A history that was fetched, with git's own folder."""
    folder = tmp_path / "history"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text("ours")
    (folder / "store.json").write_text("old")
    (folder / "kept.json").write_text("kept")
    return folder


@pytest.fixture
def collected(tmp_path: Path) -> Path:
    """What another job made of it."""
    folder = tmp_path / "collected"
    (folder / "runs" / "a").mkdir(parents=True)
    (folder / "runs" / "a" / "plan.json").write_text("{}")
    (folder / "store.json").write_text("new")
    return folder


def test_what_was_collected_is_put_over_the_history(history: Path, collected: Path) -> None:
    """New and changed files come, and nothing goes."""
    done = CliRunner().invoke(cli, ["ci", "history", "add", str(collected), "--path", str(history)])
    assert (done.exit_code, done.output) == (0, "2 files\n")
    assert (history / "store.json").read_text() == "new"
    assert (history / "runs" / "a" / "plan.json").read_text() == "{}"
    assert (history / "kept.json").read_text() == "kept"
    assert (history / ".git" / "config").read_text() == "ours"


def test_tables_stay_behind(history: Path, collected: Path) -> None:
    """They are made from the journals, here: nobody hands on a table, a seal or what was published."""
    for name in ("tables/results/a.parquet", "compacted/2026-01/x.json", "history.json"):
        (collected / name).parent.mkdir(parents=True, exist_ok=True)
        (collected / name).write_text("theirs")
    for name in ("run.json", "seal.json"):
        (collected / "runs" / "a" / name).write_text("theirs")
    assert add_files(collected, history) == 2
    assert not [path for path in history.rglob("*") if path.is_file() and path.read_text() == "theirs"]


@pytest.mark.parametrize("place", ["runs", "runs/a", "runs/a/plan.json"])
def test_nothing_is_written_through_a_link(
    history: Path, collected: Path, tmp_path: Path, place: str
) -> None:
    """A link in the history leads out of it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (history / place).parent.mkdir(parents=True, exist_ok=True)
    (history / place).symlink_to(outside / "file" if place.endswith(".json") else outside)
    with pytest.raises(UsageError, match="is a link or a folder"):
        add_files(collected, history)
    assert list(outside.iterdir()) == []
    assert (history / "store.json").read_text() == "old"


def settings(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("[core] fsmonitor = touch pwned")


def attributes(folder: Path) -> None:
    (folder / "runs" / ".gitattributes").write_text("* filter=evil")


def ignored(folder: Path) -> None:
    (folder / ".gitignore").write_text("*")


def link(folder: Path) -> None:
    (folder / "runs" / "b").symlink_to("/etc")


def linked_file(folder: Path) -> None:
    (folder / "a.json").symlink_to("/etc/passwd")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / "a.json")


@pytest.mark.parametrize("spoil", [settings, attributes, ignored, link, linked_file, pipe])
def test_a_setting_a_link_or_a_pipe_is_taken_for_hostile(history: Path, collected: Path, spoil) -> None:
    """Before the first file is copied."""
    spoil(collected)
    with pytest.raises(UsageError, match="hidden or not a regular file"):
        add_files(collected, history)
    assert (history / "store.json").read_text() == "old"
    assert sorted(path.name for path in history.iterdir()) == [".git", "kept.json", "store.json"]


def test_lines_that_came_meanwhile_are_not_lost(history: Path, collected: Path) -> None:
    """A file that only grows is replaced by a longer one alone."""
    for folder in (history, collected):
        (folder / "trend").mkdir()
    kept, made = history / "trend" / "outcomes.jsonl", collected / "trend" / "outcomes.jsonl"
    kept.write_text("1\n2\n")
    for text in ("1\n", "1\n3\n"):
        made.write_text(text)
        with pytest.raises(InfrastructureError, match="would lose lines"):
            add_files(collected, history)
    assert (kept.read_text(), (history / "store.json").read_text()) == ("1\n2\n", "old")
    made.write_text("1\n2\n3\n")
    add_files(collected, history)
    assert kept.read_text() == "1\n2\n3\n"


def test_a_folder_that_is_missing_or_a_link_is_an_error(
    history: Path, collected: Path, tmp_path: Path
) -> None:
    """On either side."""
    (tmp_path / "link").symlink_to(collected)
    for source, target in (
        (tmp_path / "gone", history),
        (tmp_path / "link", history),
        (collected, tmp_path / "no"),
    ):
        with pytest.raises(UsageError, match="is not a folder"):
            add_files(source, target)

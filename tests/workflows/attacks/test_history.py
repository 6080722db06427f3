"""Files of the history that would change, hide or break what is published from it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))

import test_history_branch
import test_publish
from campaign_sets import Night
from git_server import GitServer
from test_history_branch import BRANCH

from torchgauge.cli.main import cli
from torchgauge.workflows.history_branch import HistoryBranch

history, server, waits = test_history_branch.history, test_history_branch.server, test_history_branch.waits
night = test_publish.night
ROW = b"a row\r\nwith $Id$ and a line feed\nand \xff\xfe bytes\n"
IGNORING: dict[str, tuple[str, str]] = {
    "everything": (".gitignore", "*\n"),
    "tables": (".gitignore", "*.parquet\n"),
    "a folder": (".gitignore", "/runs/\n"),
    "in a folder below": ("runs/.gitignore", "*\n"),
    "all but itself": (".gitignore", "*\n!.gitignore\n"),
    "by the clone's own list": (".git/info/exclude", "*\n"),
    "line ends of a text": (".gitattributes", "* text eol=crlf\n"),
    "line ends in the index": (".gitattributes", "* text=auto\n"),
    "a filter": (".gitattributes", "* filter=evil\n"),
    "an identity": (".gitattributes", "* ident\n"),
    "another encoding": (".gitattributes", "*.jsonl working-tree-encoding=UTF-16LE\n"),
    "large files elsewhere": (".gitattributes", "* filter=lfs diff=lfs merge=lfs -text\n"),
    "attributes of a folder below": ("runs/.gitattributes", "* text eol=crlf ident\n"),
}


@pytest.mark.parametrize("name", IGNORING)
def test_no_file_of_the_history_changes_what_is_saved(
    name: str,
    history: HistoryBranch,
    server: GitServer,
    tmp_path: Path,
) -> None:
    """Each byte of a night reaches the branch, and nobody is told that there is nothing new."""
    folder = tmp_path / "history"
    assert not history.fetch(folder)
    subprocess.run(["git", "-C", str(folder), "config", "filter.evil.clean", "echo evil"], check=True)
    file, text = IGNORING[name]
    (folder / file).parent.mkdir(exist_ok=True, parents=True)
    (folder / file).write_text(text)
    (folder / "runs").mkdir(exist_ok=True)
    for row in ("runs/journal.jsonl", "results.parquet"):
        (folder / row).write_bytes(ROW)
    assert history.save(folder, "a night")
    for row in ("runs/journal.jsonl", "results.parquet"):
        kept = subprocess.run(
            ["git", "show", f"{BRANCH}:{row}"], cwd=server.repository, capture_output=True, check=True
        )
        assert kept.stdout == ROW


def test_no_link_of_the_branch_is_a_link_here(
    history: HistoryBranch, server: GitServer, tmp_path: Path
) -> None:
    """It would be read, and written, as what it leads to."""
    work, git = tmp_path / "work", ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run([*git, "init", "-q", "-b", BRANCH, str(work)], check=True)
    (work / "runs").symlink_to("/etc")
    (work / "passwd").symlink_to("/etc/passwd")
    for words in (("add", "-A"), ("commit", "-qm", "links"), ("push", "-q", str(server.repository), BRANCH)):
        subprocess.run([*git, *words], cwd=work, check=True)
    folder = tmp_path / "history"
    assert history.fetch(folder)
    assert {path.name for path in folder.iterdir()} == {".git", "runs", "passwd"}
    assert [path for path in folder.rglob("*") if path.is_symlink()] == []
    assert (folder / "passwd").read_text() == "/etc/passwd"


BROKEN: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "cut off": lambda path: path.write_bytes(path.read_bytes()[:-40]),
    "without a beginning": lambda path: path.write_bytes(path.read_bytes()[100:]),
    "its ends alone": lambda path: path.write_bytes(b"PAR1PAR1"),
    "an absurd footer": lambda path: path.write_bytes(b"PAR1" + b"\xff" * 64 + b"\xff\xff\xff\x7fPAR1"),
    "a text": lambda path: path.write_text("version https://git-lfs.github.com/spec/v1\n"),
    "a page": lambda path: path.write_text("<html>" * 100),
    "zeros": lambda path: path.write_bytes(bytes(len(path.read_bytes()))),
    "damaged in the middle": lambda path: path.write_bytes(
        path.read_bytes()[:-300] + b"\x00" * 250 + path.read_bytes()[-50:]
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_table_is_made_again(name: str, night: Night, tmp_path: Path) -> None:
    """Whatever lies in its place, the journal has its rows."""
    words = ["dashboard", "publish", "--store", str(night.store.path), "--site", str(tmp_path / "site")]
    assert CliRunner().invoke(cli, words).exit_code == 0
    path = night.store.table_path("results", night.run_id())
    BROKEN[name](path)
    done = CliRunner().invoke(cli, words)
    assert (done.exit_code, json.loads(done.stdout)["left_out"]) == (0, {})
    assert pq.read_metadata(path).num_rows == 2


def test_a_folder_in_the_place_of_a_table_leaves_its_run_out(night: Night, tmp_path: Path) -> None:
    """It is named, and the others are published."""
    path = night.store.table_path("results", night.run_id())
    path.unlink()
    path.mkdir()
    words = ["dashboard", "publish", "--store", str(night.store.path), "--site", str(tmp_path / "site")]
    done = CliRunner().invoke(cli, words)
    assert (done.exit_code, list(json.loads(done.stdout)["left_out"])) == (0, [night.run_id()])

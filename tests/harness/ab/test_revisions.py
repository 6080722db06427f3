"""``torchgauge ab FILE --base-rev REVISION``: two revisions of a repository as the sides of a comparison."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from waiting import wait_until

from torchgauge.cli.main import cli
from torchgauge.errors import UsageError
from torchgauge.suites.own.revision import repository_page

pytestmark = pytest.mark.torch

FILE = """
import sys
import torch
from acme import LAYERS

def model():
    return torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(LAYERS)]), (torch.ones(64, 256),)

def outside():
    sys.path.insert(0, {lib!r})
    import helper
    return helper.module(), (torch.ones(2, 2),)
"""
QUICK = ("--device", "cpu", "--config", "eager", "--threads", "1", "--max-launches", "3", "--no-control")


def git(folder: Path, *words: str) -> str:
    """Run git in ``folder`` as a person with a name."""
    who = ("-c", "user.name=A", "-c", "user.email=a@b.c")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def command(folder: Path, *words: str) -> tuple[list[str], dict[str, Any]]:
    """Return the command line and its place; temporary files lie in a folder beside ``folder``."""
    temporary = folder.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    variables = {**os.environ, "TMPDIR": str(temporary)}
    return [sys.executable, "-m", "torchgauge.cli.main", "ab", *words], {"cwd": folder, "env": variables}


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose branch main has one layer; the folder has eight of them, not committed."""
    folder = tmp_path_factory.mktemp("revisions") / "ein Büro"
    files = {
        "bench/mine.py": FILE.format(lib=str(folder / "lib")),
        "src/acme/__init__.py": "LAYERS = 1\n",
        "lib/helper.py": "import torch\ndef module(): return torch.nn.Linear(2, 2)\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "remote", "add", "origin", "git@forge.example:acme/models.git")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    (folder / "src/acme/__init__.py").write_text("LAYERS = 8\n")
    (folder / "new.py").write_text("")
    return folder


@pytest.fixture(scope="session")
def slower(repository: Path) -> subprocess.CompletedProcess[str]:
    """The folder against main, beside the files of a comparison that runs, and of one that is gone."""
    words, where = command(repository, "bench/mine.py", "--base-rev", "main", *QUICK, "--json")
    gone, running = (repository.parent / "temporary" / f"torchgauge-revision-{name}" for name in "ab")
    for folder in (gone, running):
        folder.mkdir()
        os.utime(folder, (0, 0))
    held = os.open(running, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    done = subprocess.run(words, **where, capture_output=True, text=True, timeout=280, check=False)
    os.close(held)
    running.rmdir()  # it is there
    return done


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run the command in this process, in a folder."""

    def run(folder: Path, *words: str) -> Any:
        monkeypatch.chdir(folder)
        return CliRunner().invoke(cli, ["ab", *words, "--device", "cpu"])

    return run


def test_a_slower_branch_is_a_regression_and_its_model_is_told(slower: Any) -> None:
    """Each side imports its own modules of the repository; other numbers of parameters prevent no verdict."""
    assert slower.returncode == 1, slower.stderr
    verdicts = json.loads(slower.stdout)["verdicts"]
    (latency,) = [each for each in verdicts if each["metric"] == "latency" and "/model:" in each["pair_id"]]
    assert latency["verdict"] == "regression"
    assert latency["ratio"] > 3
    assert "the models differ: base 65,792, head 526,336 parameters" in latency["reason"]


def test_the_report_names_the_commit_and_branch_of_the_base(slower: Any, repository: Path) -> None:
    """With the page of its repository; the head, which no commit has, by its label alone."""
    commit = git(repository, "rev-parse", "main").strip()
    text = CliRunner().invoke(cli, ["report", "--store", str(repository / "torchgauge-results")]).stdout
    page = "https://forge.example/acme/models"
    base = f"[`{commit[:12]}`]({page}/commit/{commit}) of [`main`]({page}/tree/main)"
    assert f"Base `main` ({base}), head `the working tree`." in text, text[:2000]


@pytest.mark.parametrize(
    ("remote", "page"),
    [
        ("https://forge.example/acme/models.git", "https://forge.example/acme/models"),
        ("https://user:secret@forge.example/acme/models", "https://forge.example/acme/models"),
        ("git@forge.example:acme/models.git", "https://forge.example/acme/models"),
        ("ssh://git@forge.example:2222/acme/models.git", "https://forge.example/acme/models"),
        ("/srv/git/models.git", ""),
        ("file:///srv/git/models", ""),
    ],
)
def test_the_page_of_a_repository_is_that_of_its_remote(remote: str, page: str) -> None:
    """Without a user or a token; a folder has none."""
    assert repository_page(remote) == page


def test_what_the_folder_has_beside_its_commit_is_counted(slower: Any, repository: Path) -> None:
    """The head is measured as it is; nothing of the base stays, in the repository or beside it."""
    said = f"{repository} is measured with its uncommitted changes (1 changed file, 1 untracked file"
    assert said in " ".join(slower.stderr.split())
    assert "head: the working tree" in slower.stderr
    assert list((repository.parent / "temporary").glob("torchgauge-revision-*")) == []
    status = git(repository, "status", "--porcelain")
    assert status.splitlines()[0] == " M src/acme/__init__.py"
    assert not (repository / ".git" / "worktrees").exists()


def test_a_module_from_outside_the_revision_is_refused_by_name(slower: Any, repository: Path) -> None:
    """Both sides would run the same code; the pair beside it is measured."""
    verdicts = json.loads(slower.stdout)["verdicts"]
    told = {each["metric"]: each for each in verdicts if "/outside:" in each["pair_id"]}
    assert told["latency"]["verdict"] == told["status"]["verdict"] == "not_comparable"
    path = repository / "lib" / "helper.py"
    assert f"module helper is imported from {path}, not from the revision in " in told["status"]["reason"]


def test_a_killed_comparison_leaves_no_files_of_a_revision(repository: Path) -> None:
    """Whoever ends torchgauge: its keepers remove the folder."""
    store = repository.parent / "killed"
    words, where = command(
        repository, "bench/mine.py::model", "--base-rev", "main", *QUICK, "--store", str(store)
    )
    temporary = repository.parent / "temporary"
    with subprocess.Popen(words, **where, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        wait_until(lambda: list(store.glob("comparisons/*/logs/1-*.log")), "the first launch")
        assert list(temporary.glob("torchgauge-revision-*"))
        running.kill()
    wait_until(lambda: not list(temporary.glob("torchgauge-revision-*")), "the files to go")


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("bench/mine.py", "--base-rev", "nosuch"), "has no revision 'nosuch'", "branch --all"),
        (("bench/mine.py", "--base-rev=--all"), "has no revision '--all'", "branch --all"),
        (
            ("new.py::model", "--base-rev", "main"),
            "model is not a model: new.py does not define it",
            "def model",
        ),
        (
            ("toy", "--base-rev", "main"),
            "a revision requires a file in a git repository, but toy is not a file",
            "ab",
        ),
        (
            ("bench/mine.py", "--base-rev", "main", "--head-rev", "main"),
            "base and head are the same",
            "--base",
        ),
        (("later.py", "--base-rev", "main"), "later.py is not in revision ", "log --oneline -- later.py"),
    ],
)
def test_a_revision_that_cannot_be_measured_is_refused(
    repository: Path, typed: Any, words: tuple[str, ...], message: str, hint: str
) -> None:
    """With the reason and what to try, before anything runs."""
    (repository / "later.py").write_text("def model(): return 1")
    try:
        error = typed(repository, *words).exception
    finally:
        (repository / "later.py").unlink()
    assert isinstance(error, UsageError)
    assert message in error.message
    assert hint in error.hint


def test_without_a_repository_or_a_change_nothing_is_compared(tmp_path: Path, typed: Any) -> None:
    """A file outside a repository has no revisions, and a clean folder is its commit."""
    (tmp_path / "mine.py").write_text("def model(): return 1")
    outside = typed(tmp_path, "mine.py", "--base-rev", "main").exception
    assert isinstance(outside, UsageError)
    assert "not a git repository" in outside.message
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "one")
    clean = typed(tmp_path, "mine.py", "--base-rev", "main").exception
    assert isinstance(clean, UsageError)
    assert clean.message == f"base and head are the same: the files in {tmp_path} are unchanged"
    git(tmp_path, "update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},part")
    git(tmp_path, "commit", "-q", "-m", "two")
    absent = typed(tmp_path, "mine.py", "--base-rev", "main", "--head-rev", "main~1").exception
    assert isinstance(absent, UsageError)
    assert absent.message == f"submodule part of {tmp_path} is not initialised"
    assert absent.hint == f"git -C {tmp_path} submodule update --init part"

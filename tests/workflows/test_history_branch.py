"""The branch of the history: a first night or a broken server, one commit on top, a token nobody sees."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).parent))

from git_server import LOGIN, NAME, TOKEN, GitServer, serving

from torchgauge.cli.main import cli
from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.workflows.history_branch import WAITS_S, HistoryBranch

BRANCH = "results"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitServer]:
    for name in [name for name in os.environ if name.startswith(("GIT_", "GITHUB_"))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("TOKEN", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with serving(tmp_path / "served") as found:
        monkeypatch.setenv("GITHUB_SERVER_URL", found.base)
        monkeypatch.setenv("GITHUB_REPOSITORY", NAME)
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        yield found


@pytest.fixture
def waits() -> list[float]:
    """The seconds that were waited for between attempts."""
    return []


@pytest.fixture
def history(server: GitServer, waits: list[float]) -> HistoryBranch:
    return replace(HistoryBranch.from_environment(BRANCH), sleep=waits.append)


def ci(*words: str) -> Result:
    return CliRunner().invoke(cli, ["ci", "history", *words])


def add(folder: Path, text: str, name: str = "file.txt") -> None:
    (folder / name).write_text(text)


def commits(server: GitServer) -> int:
    return int(server.git("rev-list", "--count", f"refs/heads/{BRANCH}"))


def test_a_first_night_and_a_second_one(server: GitServer, tmp_path: Path) -> None:
    """The first begins the branch, the second finds it and puts one commit on top of it."""
    output = tmp_path / "output"
    first = CliRunner().invoke(
        cli, ["ci", "history", "fetch", "--path", "one", "--github"], env={"GITHUB_OUTPUT": str(output)}
    )
    assert (first.exit_code, "existed=false" in first.output) == (0, True), first.output
    assert "\nfalse\n" in output.read_text()
    add(tmp_path / "one", "one")
    assert ci("save", "--path", "one", "--message", "the first night").exit_code == 0
    second = ci("fetch", "--path", "two")
    assert (second.exit_code, second.output) == (0, "existed=true\n")
    assert (tmp_path / "two" / "file.txt").read_text() == "one"
    add(tmp_path / "two", "two")
    assert ci("save", "--path", "two", "--message", "-the second").exit_code == 0
    assert server.git("log", "--format=%s", BRANCH).splitlines() == ["-the second", "the first night"]
    assert server.git("show", f"{BRANCH}:file.txt") == "two"


def test_nothing_new_is_no_error_and_no_commit(
    history: HistoryBranch, server: GitServer, tmp_path: Path
) -> None:
    """Of an empty history, of one as it was fetched and of one that was just saved."""
    folder = tmp_path / "history"
    assert not history.fetch(folder)
    assert not history.save(folder, "nothing")
    assert not server.git("for-each-ref")
    add(folder, "one")
    assert history.save(folder, "one")
    assert not history.save(folder, "one")
    assert commits(server) == 1


def test_a_call_that_was_killed_behind_its_push_is_repeated(
    history: HistoryBranch, server: GitServer, tmp_path: Path
) -> None:
    """The second one finds its own commit there, and locks that nobody holds: nothing is doubled."""
    folder = tmp_path / "history"
    assert not history.fetch(folder)
    add(folder, "ours")
    first = history.save(folder, "ours")
    for ref in (f"refs/remotes/origin/{BRANCH}", f"refs/heads/{BRANCH}"):
        subprocess.run(["git", "-C", str(folder), "update-ref", "-d", ref], check=True)
    locks = ("index", f"refs/heads/{BRANCH}", f"refs/remotes/origin/{BRANCH}", "packed-refs")
    for held in locks:
        lock = folder / ".git" / f"{held}.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        lock.touch()
    assert history.save(folder, "ours") == first
    assert commits(server) == 1
    add(folder, "more")
    assert history.save(folder, "more") != first
    assert commits(server) == 2


def test_what_somebody_else_pushed_is_never_lost(
    history: HistoryBranch, server: GitServer, waits: list[float], tmp_path: Path
) -> None:
    """The push is refused at once and stays refused; their commit is there as it was."""
    server.push(BRANCH, "before")
    folder = tmp_path / "history"
    assert history.fetch(folder)
    theirs = server.push(BRANCH, "theirs")
    add(folder, "ours")
    for _ in range(2):
        with pytest.raises(InfrastructureError, match=r"rejected(?s:.*)run the workflow again"):
            history.save(folder, "ours")
    assert server.git("rev-parse", BRANCH) == theirs
    assert waits == []


def test_a_branch_that_appears_after_a_first_fetch_is_not_lost_either(
    history: HistoryBranch, server: GitServer, tmp_path: Path
) -> None:
    """Two first nights at once: the later one has nothing in common with the other."""
    assert not history.fetch(tmp_path / "history")
    theirs = server.push(BRANCH, "theirs")
    add(tmp_path / "history", "ours")
    with pytest.raises(InfrastructureError, match="rejected"):
        history.save(tmp_path / "history", "ours")
    assert server.git("rev-parse", BRANCH) == theirs


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_server_that_breaks_is_asked_again(
    history: HistoryBranch, server: GitServer, waits: list[float], tmp_path: Path, status: int
) -> None:
    """As often as is said, and the push that went through after all makes one commit."""
    assert not history.fetch(tmp_path / "history")
    add(tmp_path / "history", "ours")
    server.broken, server.statuses = "git-receive-pack", [status] * len(WAITS_S)
    assert history.save(tmp_path / "history", "ours")
    assert waits == list(WAITS_S)
    assert commits(server) == 1


def test_a_server_that_stays_broken_ends_with_3_and_the_night_can_be_saved_later(
    history: HistoryBranch, server: GitServer, waits: list[float], tmp_path: Path
) -> None:
    """Three attempts, then words; the next call pushes one commit and not two."""
    assert not history.fetch(tmp_path / "history")
    add(tmp_path / "history", "ours")
    server.broken, server.statuses = "git-receive-pack", [503] * (len(WAITS_S) + 1)
    with pytest.raises(InfrastructureError, match="could not be pushed") as raised:
        history.save(tmp_path / "history", "ours")
    assert raised.value.exit_code == 3
    assert (server.statuses, len(waits)) == ([], len(WAITS_S))
    add(tmp_path / "history", "more", "more.txt")
    assert history.save(tmp_path / "history", "ours")
    assert commits(server) == 1


@pytest.mark.parametrize(("status", "asked"), [(503, 3), (403, 1), (404, 1)])
def test_a_branch_that_cannot_be_read_is_no_first_night(
    history: HistoryBranch, server: GitServer, tmp_path: Path, status: int, asked: int
) -> None:
    """An empty history in its place would be published as the whole; only the network is tried again."""
    server.push(BRANCH, "there")
    server.statuses = [status] * 9
    with pytest.raises(InfrastructureError, match="could not be read") as raised:
        history.fetch(tmp_path / "history")
    assert raised.value.exit_code == 3
    assert 9 - len(server.statuses) == asked
    assert not (tmp_path / "history").exists()


def test_the_token_is_sent_once_and_stands_nowhere(server: GitServer, tmp_path: Path) -> None:
    """One header to the server, whatever a checkout left; none in a file, on a command line or in output."""
    seen = tmp_path / "seen"
    wrapper = tmp_path / "bin" / "git"
    wrapper.parent.mkdir()
    real = next(path for path in os.environ["PATH"].split(":") if Path(path, "git").is_file())
    wrapper.write_text(f'#!/bin/sh\necho "$@" >>{seen}\nexec {real}/git "$@"\n')
    wrapper.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f'[http "{server.base}/"]\n  extraHeader = AUTHORIZATION: basic old\n')
    environment = {"PATH": f"{wrapper.parent}:{os.environ['PATH']}", "GIT_TRACE_CURL": "1", "GIT_TRACE": "1"}
    server.push(BRANCH, "there")
    said = ""
    for words in (("fetch",), ("save", "--message", "ours"), ("fetch", "--path", "history")):
        done = CliRunner().invoke(cli, ["ci", "history", *words], env=environment)
        said += f"{done.output}{done.exception}"
        if words == ("fetch",):
            add(tmp_path / "history", "ours")
    assert "ls-remote" in seen.read_text()
    assert " push " in seen.read_text()
    assert all(logins == [f"basic {LOGIN}"] for logins in server.logins)
    files = [path.read_bytes() for path in (tmp_path / "history").rglob("*") if path.is_file()]
    assert len(files) > 5
    for data in [*files, seen.read_bytes(), said.encode()]:
        assert TOKEN.encode() not in data
        assert LOGIN.encode() not in data


def test_a_wrong_token_is_an_answer_and_asks_nobody(
    history: HistoryBranch, server: GitServer, waits: list[float], tmp_path: Path
) -> None:
    """Nor does the message hold it, whatever the server said."""
    server.push(BRANCH, "there")
    wrong = replace(history, token="ghs_wrong")
    with pytest.raises(InfrastructureError, match="could not be read") as raised:
        wrong.fetch(tmp_path / "history")
    assert waits == []
    assert "ghs_wrong" not in str(raised.value) + repr(wrong)


def test_a_folder_that_was_not_fetched_is_not_committed(
    history: HistoryBranch, server: GitServer, tmp_path: Path
) -> None:
    """Git would climb up to the checkout around it, and push that."""
    server.git("clone", "-q", str(server.repository), str(tmp_path / "checkout"))
    (tmp_path / "checkout" / "history").mkdir()
    with pytest.raises(UsageError, match="ci history fetch"):
        history.save(tmp_path / "checkout" / "history", "ours")
    assert not server.git("for-each-ref")


def test_a_folder_with_something_in_it_is_not_fetched_into(history: HistoryBranch, tmp_path: Path) -> None:
    """What lies there could be taken for the history."""
    add(tmp_path, "mine")
    with pytest.raises(UsageError, match="not empty"):
        history.fetch(tmp_path)


def test_no_setting_of_the_machine_changes_the_results(
    history: HistoryBranch, server: GitServer, tmp_path: Path
) -> None:
    """Ignored names are saved, line ends stay, and no hook runs."""
    home = tmp_path / "home"
    (home / "hooks").mkdir(parents=True)
    (home / "hooks" / "pre-push").write_text("#!/bin/sh\nexit 1\n")
    (home / "hooks" / "pre-push").chmod(0o755)
    (home / "ignore").write_text("*.log\n")
    (home / ".gitconfig").write_text(
        f"[core]\n hooksPath = {home}/hooks\n excludesFile = {home}/ignore\n autocrlf = input\n"
        "[commit]\n gpgSign = true\n"
    )
    history.fetch(tmp_path / "history")
    (tmp_path / "history" / "run.log").write_bytes(b"one\r\n")
    assert history.save(tmp_path / "history", "ours")
    assert server.git("cat-file", "-s", f"{BRANCH}:run.log") == "5"


@pytest.mark.parametrize("said", ["git version 2.30.2", "a git of my own"])
def test_a_git_that_is_too_old_is_said(
    history: HistoryBranch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    """It would leave the token out without a word."""
    old = tmp_path / "bin" / "git"
    old.parent.mkdir()
    old.write_text(f"#!/bin/sh\necho {said}\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(old.parent))
    with pytest.raises(InfrastructureError, match=r"cannot read a token from the (?s:.*)2\.31 or later"):
        history.fetch(tmp_path / "history")


def test_a_missing_git_is_said(
    history: HistoryBranch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may have none."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InfrastructureError, match=r"git is not installed, or not on PATH(?s:.*)install git"):
        history.fetch(tmp_path / "history")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"GITHUB_REPOSITORY": "../other"}, "GITHUB_REPOSITORY"),
        ({"GITHUB_SERVER_URL": "https://someone:secret@host"}, "GITHUB_SERVER_URL"),
        ({"GITHUB_SERVER_URL": "--upload-pack=touch"}, "GITHUB_SERVER_URL"),
        ({"GITHUB_SERVER_URL": "http://example.org"}, "GITHUB_SERVER_URL"),
        ({"GITHUB_TOKEN": "two\nlines"}, "GITHUB_TOKEN"),
    ],
)
def test_an_environment_of_no_runner_is_refused(changes: dict[str, str], words: str) -> None:
    """And what it holds that may be secret is not repeated."""
    good = {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": NAME, "GITHUB_TOKEN": TOKEN}
    assert HistoryBranch.from_environment(BRANCH, good).url == f"https://github.com/{NAME}"
    with pytest.raises(UsageError, match=words) as raised:
        HistoryBranch.from_environment(BRANCH, {**good, **changes})
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    "branch", ["", "-f", "a..b", "a b", "a:b", "+a", "a/", "a.lock", "/a", "a//b", "a\nb"]
)
def test_a_name_that_is_no_branch_s_is_refused(branch: str) -> None:
    """It would be an option, or more than one branch."""
    with pytest.raises(UsageError, match="is not a valid name of a branch"):
        HistoryBranch.from_environment(branch, {"GITHUB_REPOSITORY": NAME})

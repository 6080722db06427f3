"""``suites fetch torchbench`` against a local git remote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.suites.torchbench import checkout as torchbench_checkout
from torchgauge.suites.torchbench.checkout import COMMIT, commit_of, default_folder, fetch


@pytest.fixture
def remote(tmp_path: Path, fake_torchbench: Any) -> tuple[str, str]:
    """A repository with two commits: its address, and the older of the two."""
    folder = tmp_path / "remote"
    folder.mkdir()
    older = fake_torchbench.write(folder)
    (folder / "README").write_text("newer\n", encoding="utf-8")
    fake_torchbench.commit(folder)
    return folder.as_uri(), older


def test_one_commit_is_fetched_once(tmp_path: Path, remote: tuple[str, str], fake_torchbench: Any) -> None:
    """The pinned commit and nothing of its history arrives; a second time changes nothing."""
    url, older = remote
    folder, fetched = fetch(tmp_path / "into", url, older)
    assert fetched
    assert commit_of(folder) == older
    assert not (folder / "README").exists()
    assert fake_torchbench.git(folder, "rev-list", "--count", "HEAD") == "1"
    assert fetch(tmp_path / "into", url, older) == (folder, False)


def test_an_interrupted_fetch_goes_on(tmp_path: Path, remote: tuple[str, str], fake_torchbench: Any) -> None:
    """A folder that holds only git's own files is filled."""
    url, older = remote
    (tmp_path / "into").mkdir()
    fake_torchbench.git(tmp_path / "into", "init", "--quiet")
    assert fetch(tmp_path / "into", url, older) == (tmp_path / "into", True)


def test_what_was_fetched_is_used_without_the_variable(
    tmp_path: Path, remote: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder that it fills by default is the checkout where none is named."""
    url, older = remote
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(torchbench_checkout.VARIABLE, raising=False)
    assert torchbench_checkout.checkout() is None
    folder, _ = fetch(None, url, older)
    assert folder == default_folder() == torchbench_checkout.checkout()
    assert COMMIT[:12] in folder.name
    assert torchbench_checkout.unavailable() is None


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path, remote: tuple[str, str]) -> None:
    """Nothing of a person's is overwritten."""
    url, older = remote
    (tmp_path / "notes.txt").write_text("mine\n", encoding="utf-8")
    with pytest.raises(UsageError, match="not empty") as caught:
        fetch(tmp_path, url, older)
    assert "--into" in caught.value.hint
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine\n"


def test_a_remote_that_is_not_there_or_lacks_the_commit_is_said(
    tmp_path: Path, remote: tuple[str, str]
) -> None:
    """Git's last line is in the message, and the address that failed is never taken for a success."""
    url, _ = remote
    with pytest.raises(InfrastructureError, match="git fetch failed") as caught:
        fetch(tmp_path / "a", (tmp_path / "nowhere").as_uri())
    assert "--from" in caught.value.hint
    with pytest.raises(InfrastructureError, match="git fetch failed"):
        fetch(tmp_path / "b", url, "0" * 40)


def test_a_repository_without_models_is_refused(tmp_path: Path, fake_torchbench: Any) -> None:
    """A commit that is no TorchBench is named after it was fetched."""
    other = tmp_path / "other"
    other.mkdir()
    fake_torchbench.git(other, "init", "--quiet")
    fake_torchbench.git(other, "config", "uploadpack.allowAnySHA1InWant", "true")
    (other / "README").write_text("not a benchmark\n", encoding="utf-8")
    commit = fake_torchbench.commit(other)
    with pytest.raises(UsageError, match="torchbenchmark/__init__"):
        fetch(tmp_path / "into", other.as_uri(), commit)

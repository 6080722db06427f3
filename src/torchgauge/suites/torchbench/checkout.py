"""A checkout of TorchBench: where it is, whether it is one, at which commit, and how to get it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.processes.kept_process import run
from torchgauge.processes.passed_variables import Purpose, passed
from torchgauge.records import digest
from torchgauge.suites.suite import Unavailable
from torchgauge.user_cache import user_cache

VARIABLE = "TORCHGAUGE_TORCHBENCH"
"""Environment variable that names the checkout; ``--torchbench`` sets it."""

URL = "https://github.com/pytorch/benchmark"
COMMIT = "0e83c440a51cd63464fee34724d01b7c814ce39b"
"""The commit that our data describes (August 2026)."""

_PARTS = (
    "torchbenchmark/__init__.py",
    "torchbenchmark/models",
    "torchbenchmark/util/model.py",
    "utils/__init__.py",
)
FETCH = "torchgauge suites fetch torchbench"
_FETCH_TIMEOUT_S = 1800.0


def default_folder() -> Path:
    """Where ``suites fetch`` puts the checkout unless it is told otherwise."""
    return user_cache() / f"torchbench-{COMMIT[:12]}"


def checkout() -> Path | None:
    """The checkout to use: the one named by the variable, else the one that was fetched; None without."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).expanduser().absolute()
    fetched = default_folder()
    return fetched if (fetched / _PARTS[0]).is_file() else None


def unavailable() -> Unavailable | None:
    """Why no model can be built; None where there is a checkout."""
    path = checkout()
    hint = f"{FETCH}, or set {VARIABLE} to a clone of {URL}"
    if path is None:
        return Unavailable("there is no checkout of pytorch/benchmark", hint)
    missing = missing_parts(path)
    if missing:
        what = "does not exist" if not path.exists() else f"has no {missing[0]}"
        return Unavailable(f"{path} is not a checkout of pytorch/benchmark: it {what}", hint)
    return None


def missing_parts(path: Path) -> list[str]:
    """The parts of a checkout that ``path`` lacks."""
    return [part for part in _PARTS if not (path / part).exists()]


def model_folders(path: Path) -> Iterator[Path]:
    """Yield the folders of models in the checkout at ``path``, those that upstream's runner finds."""
    for room in ("models", "models/fb", "canary_models"):
        parent = path / "torchbenchmark" / room
        for folder in sorted(parent.iterdir()) if parent.is_dir() else ():
            if folder.name != "fb" and (folder / "__init__.py").is_file():
                yield folder


def commit_of(path: Path) -> str:
    """The commit of the checkout at ``path``; empty where it has no history of its own."""
    top = _git(path, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != path.resolve():
        return ""
    return _git(path, "rev-parse", "HEAD")


def is_changed(path: Path) -> bool:
    """Whether tracked files of the checkout at ``path`` differ from its commit."""
    return bool(_git(path, "status", "--porcelain", "--untracked-files=no"))


@cache  # git is started once in the life of a run
def revision(path: Path) -> str:
    """Return the commit of the checkout at ``path`` in short, with ``dirty`` and a digest of any changes."""
    commit = commit_of(path)[:12] or "no commit"
    return f"{commit} dirty {digest([_git(path, 'diff', 'HEAD')])}" if is_changed(path) else commit


def note(path: Path) -> str:
    """What a reader must know of a checkout that is not the one that our data describes; else empty."""
    found = commit_of(path)
    if not found:
        return f"TorchBench at {path} has no commit; torchgauge's data is for commit {COMMIT[:12]}"
    if found != COMMIT:
        return f"TorchBench at {path} is at commit {found[:12]}; torchgauge's data is for {COMMIT[:12]}"
    if is_changed(path):
        return f"TorchBench at {path} has changes; torchgauge's data is for the unchanged {COMMIT[:12]}"
    return ""


def fetch(into: Path | None = None, url: str = URL, commit: str = COMMIT) -> tuple[Path, bool]:
    """The folder with ``commit`` of ``url``, and whether anything had to be fetched.

    Only that commit is fetched. Raises :class:`UsageError` for a folder that holds something else and
    :class:`InfrastructureError` where git fails.
    """
    folder = (into or default_folder()).expanduser().absolute()
    if commit_of(folder) == commit and not missing_parts(folder):
        return folder, False
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", hint="pass an empty folder with --into")
    if folder.exists() and any(folder.iterdir()) and not _is_unfinished(folder):
        raise UsageError(
            f"{folder} is not empty and not a checkout at {commit[:12]}",
            hint="pass an empty folder with --into, or this folder with --torchbench",
        )
    folder.mkdir(parents=True, exist_ok=True)
    _run(folder, "init", "--quiet")
    _run(folder, "fetch", "--quiet", "--depth", "1", url, commit)
    _run(folder, "checkout", "--quiet", "--force", commit)
    missing = missing_parts(folder)
    if missing:
        raise UsageError(f"commit {commit[:12]} of {url} has no {missing[0]}", hint=f"--from {URL}")
    return folder, True


def _is_unfinished(folder: Path) -> bool:
    """Whether ``folder`` holds a fetch of ours that was interrupted before its checkout."""
    return [item.name for item in folder.iterdir()] == [".git"]


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = run(["git", "-C", str(folder), *arguments], passed(Purpose.GIT), timeout=60)
        done.check_returncode()
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def _run(folder: Path, *arguments: str) -> None:
    command = ["git", "-C", str(folder), *arguments]
    try:
        run(command, passed(Purpose.GIT), timeout=_FETCH_TIMEOUT_S).check_returncode()
    except FileNotFoundError as error:
        raise InfrastructureError(
            "git is not installed", hint="install git, or pass a copied checkout with --torchbench PATH"
        ) from error
    except subprocess.TimeoutExpired as error:
        raise InfrastructureError(f"git {arguments[0]} took too long", hint="try again") from error
    except subprocess.CalledProcessError as error:
        said = (error.stderr or "").strip().splitlines()
        raise InfrastructureError(
            f"git {arguments[0]} failed: {said[-1] if said else error.returncode}",
            hint=f"check the network and the address; --from URL replaces {URL}",
        ) from error

"""A git revision of the repository that holds a user's file, as a folder for one side of a comparison.

Files are written from git's objects by an index of their own, so that the repository keeps no trace: not even
after a kill: keepers remove the folder (:func:`torchgauge.processes.kept_process.new_scratch`), or the next
comparison.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.counted import counted
from torchgauge.errors import UsageError
from torchgauge.processes.kept_process import new_scratch, remove_scratch, run
from torchgauge.processes.passed_variables import Purpose, passed
from torchgauge.records.comparison import CodeSource

_REMOTE = re.compile(
    r"(?:https://(?:[^@/\s]*@)?(?P<web>[A-Za-z0-9.:-]+)/|(?:ssh://)?[^@/:\s]+@(?P<ssh>[A-Za-z0-9.-]+)(?::\d+/|[:/]))"
    r"(?P<path>[A-Za-z0-9._~/-]+?)(?:\.git)?/?"
)
"""An address of git on a Git host, by HTTPS or SSH; a user name or a token in it is no part of the page."""
ABANDONED_S = 60.0
"""A younger folder may belong to a process that has not locked it yet."""
SUBMODULE = "160000"
"""The mode of a submodule in an index of git."""


def repository_of(file: Path) -> Path:
    """Return the root of the git repository that holds ``file``; raises :class:`UsageError` for none."""
    hint = f"git init {file.parent} and commit the file; or --base PYTHON, which compares interpreters"
    return Path(_git(file.parent, "rev-parse", "--show-toplevel", hint=hint).strip()).resolve()


def commit_of(repository: Path, revision: str) -> str:
    """Return the commit that ``revision`` names; raises :class:`UsageError` where it names none."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    try:
        return _git(repository, *words).strip()
    except UsageError as error:
        raise UsageError(
            f"{repository} has no revision {revision!r}",
            hint=f"git -C {repository} branch --all; for a remote branch, first git fetch",
        ) from error


def commits_of(words: Sequence[str], *revisions: str) -> list[str]:
    """Return the commit of each of ``revisions`` in the repository that holds the files ``words``.

    An empty one stays so: files as they are. Raises :class:`UsageError` where a suite is not a file, and for
    files of several repositories.
    """
    if not any(revisions):
        return [*revisions]
    if others := [word for word in words if not word.endswith(".py")]:
        hint = "torchgauge ab mine.py --base-rev REVISION"
        raise UsageError(
            f"a revision requires a file in a git repository, but {others[0]} is not a file", hint=hint
        )
    root, *more = dict.fromkeys(repository_of(Path(word)) for word in words)
    if more:
        raise UsageError(
            f"the files lie in two repositories: {root} and {more[0]}", hint="use files of one repository"
        )
    commits = [commit_of(root, revision) if revision else "" for revision in revisions]
    if "" in commits and not state_of(root) and commit_of(root, "HEAD") in commits:
        hint = "pass an older revision as --base-rev; or --control to measure an A/A run"
        raise UsageError(f"base and head are the same: the files in {root} are unchanged", hint=hint)
    return commits


def sources_of(words: Sequence[str], *revisions: str) -> list[CodeSource | None]:
    """Return the code of each of ``revisions`` in the repository that holds the files ``words``.

    An empty one is the checkout: None where files of it differ from its commit.
    """
    if not any(revisions):
        return [None for _ in revisions]
    root = repository_of(Path(words[0]))
    return [
        None if not revision and state_of(root) else source_of(root, revision or "HEAD")
        for revision in revisions
    ]


def source_of(repository: Path, revision: str = "HEAD") -> CodeSource:
    """Return commit and branch of ``revision``, and the address of the remote that it was fetched from.

    Raises :class:`UsageError` for a folder that git does not read.
    """
    commit = commit_of(repository, revision)
    name = _git(repository, "rev-parse", "--symbolic-full-name", "--end-of-options", revision).strip()
    branch = re.match(r"refs/(?:heads|remotes/[^/]+)/(.+)", name.splitlines()[-1] if name else "")
    remotes = _git(repository, "remote").split()
    chosen = next((remote for remote in ("origin", *remotes) if remote in remotes), "")
    address = _git(repository, "remote", "get-url", chosen).strip() if chosen else ""
    return CodeSource(commit, branch[1] if branch else "", repository_page(address))


def repository_page(remote: str) -> str:
    """Return the page of the repository at the address ``remote`` of git; empty where it has none."""
    match = _REMOTE.fullmatch(remote)
    return f"https://{match['web'] or match['ssh']}/{match['path']}" if match else ""


def state_of(repository: Path) -> str:
    """Return how many files of ``repository`` are changed or untracked, without results and bytecode."""
    left_out = (f":(exclude,glob)**/{folder}/**" for folder in ("torchgauge-results", "__pycache__"))
    words = ("status", "--porcelain", "--untracked-files=all", "--", ".", *left_out)
    lines = _git(repository, *words).splitlines()
    untracked = sum(line.startswith("??") for line in lines)
    parts = [(len(lines) - untracked, "changed file"), (untracked, "untracked file")]
    return ", ".join(counted(count, what) for count, what in parts if count)


@cache
def tree_of(repository: Path, commit: str) -> Path:
    """Return a temporary folder with the files of ``commit``, which goes with this process.

    Folders of processes that were killed before a keeper knew them are removed.
    """
    for folder in Path(tempfile.gettempdir()).glob("torchgauge-revision-*"):
        with contextlib.suppress(OSError):  # another user's
            if SYSTEM_CLOCK.now() - folder.stat().st_mtime > ABANDONED_S and _locked(folder):
                shutil.rmtree(folder, ignore_errors=True)
    scratch = new_scratch("revision")
    _locked(Path(scratch))
    atexit.register(remove_scratch, scratch)
    tree = Path(scratch).resolve() / commit[:12]
    _write(repository, commit, tree, Path(scratch, "index"))
    return tree


def _locked(folder: Path) -> bool:
    """Lock ``folder`` until this process ends; return whether no other process has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return False
    return True


def _write(repository: Path, commit: str, tree: Path, index: Path) -> None:
    """Write the files of ``commit`` and of its submodules to ``tree``."""
    _git(repository, "read-tree", "--reset", commit, index=index)
    _git(repository, "checkout-index", "--all", f"--prefix={tree}/", index=index)
    for line in _git(repository, "ls-files", "--stage", "-z", index=index).split("\0"):
        facts, _, path = line.partition("\t")
        if not facts.startswith(SUBMODULE):
            continue
        if not (repository / path / ".git").exists():
            command = f"git -C {repository} submodule update --init {path}"
            raise UsageError(f"submodule {path} of {repository} is not initialised", hint=command)
        _write(repository / path, facts.split()[1], tree / path, index)


def _git(folder: Path, *words: str, index: Path | None = None, hint: str = "git status") -> str:
    environment = passed(Purpose.GIT) | ({"GIT_INDEX_FILE": str(index)} if index else {})
    try:
        done = run(["git", "-C", str(folder), *words], environment)
    except OSError as error:
        raise UsageError("git cannot be started", hint="install git") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        raise UsageError(f"git {words[0]} in {folder}: {lines[-1] if lines else 'it failed'}", hint=hint)
    return done.stdout

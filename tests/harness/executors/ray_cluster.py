"""A real Ray cluster of this machine for the time of a test session: a head without devices, and nodes.

Each node is what ``ray start`` begins there. Where its machine is to die, all of its processes are killed.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from waiting import wait_until

from torchgauge.processes.process_tree import children, descendants, signal_one

TESTS = Path(__file__).resolve().parents[2]
PYTHONPATH = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS / "faults_plugin")])
RAY = Path(sys.executable).with_name("ray")
COMMON = ("--block", "--disable-usage-stats", "--num-cpus=0", "--object-store-memory=80000000")
ATTEMPTS = 6
"""Starts of a node on a machine that does other things."""
NODES = {"one": {"fake": 1, "cpu": 1, "mixed": 1}, "two": {"fake": 1, "cpu": 1, "npu": 1}}
"""Two nodes that can measure, by what each has."""


class RayCluster:
    """A head, and the nodes that were started; all want the token, unless the cluster has none."""

    def __init__(self, folder: Path, *, token: bool = True) -> None:
        self.folder = folder
        self.port = _free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
        self.token = secrets.token_hex(32) if token else ""
        access = (
            {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": self.token}
            if token
            else {"RAY_AUTH_MODE": "disabled"}
        )
        patience = {"RAY_raylet_start_wait_time_s": "20"}
        self.environment = {
            **kept,
            **access,
            **patience,
            "TMPDIR": str(self.temporary),
            "OMP_NUM_THREADS": "1",
        }

    @property
    def address(self) -> str:
        """Where the head is."""
        return f"127.0.0.1:{self.port}"

    def begin(self, nodes: Mapping[str, Mapping[str, int]], pythonpath: str) -> None:
        """Start the head and ``nodes``; returns when all are there."""
        self.environment["PYTHONPATH"] = pythonpath
        words = (
            "--head",
            f"--port={self.port}",
            "--include-dashboard=false",
            f"--temp-dir={self.folder}/ray",
        )
        self.start("head", *words)
        for name, resources in nodes.items():
            self.start_node(name, resources)

    def start_node(self, name: str, resources: Mapping[str, int], **variables: str) -> None:
        """Start a node; returns when it is there."""
        words = (f"--address={self.address}", f"--resources={json.dumps(resources)}", f"--node-name={name}")
        self.start(name, *words, **variables)

    def start(self, name: str, *words: str, **variables: str) -> None:
        """``ray start`` in the foreground; returns when it says that it runs.

        Once more where it does not: a raylet gives its helpers 15 s, whatever else the machine does.
        """
        for _ in range(ATTEMPTS):
            with self._output(name).open("wb") as output:
                self.processes[name] = subprocess.Popen(
                    [str(RAY), "start", *words, *COMMON],
                    env=self.environment | variables,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            if self._runs(name):
                return
            self.kill(name)
        raise AssertionError(self.words(name))

    def _runs(self, name: str) -> bool:
        def settled() -> bool:
            return "Ray runtime started" in self.words(name) or self.processes[name].poll() is not None

        wait_until(settled, lambda: f"the start of Ray on {name}:\n{self.words(name)}")
        return self.processes[name].poll() is None

    def words(self, name: str) -> str:
        """The end of what a node said, for a test that fails."""
        return self._output(name).read_text(errors="replace")[-3000:]

    def _output(self, name: str) -> Path:
        return self.folder / f"{name}.out"

    def node_of(self, pid: int) -> str:
        """The node on which the process ``pid`` runs."""
        (name,) = (name for name, each in self.processes.items() if pid in descendants(each.pid))
        return name

    def kill(self, name: str) -> None:
        """Its machine dies: all of its processes at once."""
        process = self.processes.pop(name)
        for pid in [process.pid, *descendants(process.pid)]:
            signal_one(pid, signal.SIGKILL)
        process.wait()

    def of_ray(self, name: str) -> list[int]:
        """Process ids of a node, but for what an agent has started."""
        found = [self.processes[name].pid]
        for pid in found:
            if not _title(pid).startswith("ray::Agent"):
                found += children(pid)
        return found

    def agents(self) -> list[int]:
        """Process ids of agents on all nodes."""
        pids = [pid for process in self.processes.values() for pid in descendants(process.pid)]
        return [pid for pid in pids if _title(pid).startswith("ray::Agent")]

    def wait_until_empty(self) -> None:
        """Return when no agent is left."""
        wait_until(lambda: not self.agents(), lambda: f"the end of the agents {self.agents()}")

    def end(self) -> None:
        """Kill everything."""
        for name in list(self.processes):
            self.kill(name)


@contextmanager
def ray_cluster(
    folder: Path, nodes: Mapping[str, Mapping[str, int]], pythonpath: str, *, token: bool = True
) -> Iterator[RayCluster]:
    """A cluster in ``folder``, whose path must be short: it holds sockets."""
    cluster = RayCluster(folder, token=token)
    try:
        cluster.begin(nodes, pythonpath)
        yield cluster
    finally:
        cluster.end()


def _title(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])

"""A real Slurm of this machine for the time of a test session: two nodes, a key of its own, no root needed.

``make slurm`` installs Debian's programs. Controller and nodes run as whoever runs the tests, accounting is
off, and nothing outside of a temporary folder is written.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from waiting import wait_until

DAEMONS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("sbatch", "squeue", "scancel", "scontrol")
FOLDERS = ("/usr/sbin", "/usr/local/sbin")
NODES = ("one", "two")
CONFIGURATION = """
ClusterName=torchgauge
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmctldPort={controller}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
ReturnToService=2
KillWait=3
MinJobAge=300
GresTypes=npu
NodeName={nodes} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports} CPUs=2 Gres=npu:1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """The programs that are not on this machine."""
    return [name for name in (*DAEMONS, *CLIENTS) if program(name) is None]


def program(name: str) -> str | None:
    """Where ``name`` is; daemons are not on everybody's path."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *FOLDERS]))


class SlurmCluster:
    """Two nodes, ``one`` and ``two``, of one processor and one ``npu`` each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.configuration = folder / "slurm.conf"
        self.daemons: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {**os.environ, "SLURM_CONF": str(self.configuration)}

    def run(self, *command: str) -> str:
        """What a command of Slurm answers; it may complain."""
        done = subprocess.run(
            [program(command[0]) or command[0], *command[1:]],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.stdout + done.stderr

    def begin(self) -> None:
        """Start all daemons; returns when both nodes are idle."""
        ports = free_ports(1 + len(NODES))
        host = socket.gethostname().partition(".")[0]
        self.configuration.write_text(
            CONFIGURATION.format(
                host=host,
                user=getpass.getuser(),
                folder=self.folder,
                controller=ports[0],
                nodes=",".join(NODES),
                ports=",".join(map(str, ports[1:])),
            )
        )
        (self.folder / "gres.conf").write_text("Name=npu Count=1\n")
        (self.folder / "state").mkdir()
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        self.folder.chmod(0o755)
        places = {"key-file": key, "socket": "munge.socket", "pid-file": "munged.pid"}
        places |= {"log-file": "munged.log", "seed-file": "munged.seed"}
        words = [f"--{name}={self.folder / value}" for name, value in places.items()]
        self.start("munged", "--foreground", "--force", "--num-threads=1", *words)
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        states = ("sinfo", "--noheader", "--Node", "--format=%T")
        self.wait(lambda: self.run(*states).split() == ["idle"] * 2, "two idle nodes")

    def start_controller(self) -> None:
        """Start the daemon that knows the jobs."""
        self.start("slurmctld", "-D", "-f", str(self.configuration))

    def start_node(self, node: str) -> None:
        """Start the daemon of ``node``."""
        self.start("slurmd", "-D", "-N", node, "-f", str(self.configuration), name=node)

    def start(self, command: str, *words: str, name: str = "") -> None:
        """Start a daemon that stays in the foreground."""
        with (self.folder / f"{name or command}.out").open("ab") as output:
            self.daemons[name or command] = subprocess.Popen(
                [program(command) or command, *words], env=self.environment, stdout=output, stderr=output
            )

    def stop(self, name: str) -> None:
        """End a daemon in order: a controller that is killed has forgotten what was cancelled just before."""
        daemon = self.daemons.pop(name)
        daemon.terminate()
        daemon.wait(120)

    def wait(self, ready, waiting_for: str) -> None:
        """Return when ``ready()`` is true; fail with the logs."""
        wait_until(ready, lambda: f"{waiting_for}:\n{self.words()}")

    def wait_until_empty(self) -> None:
        """Return when no job is listed: what was cancelled is, until the node has said that it ended."""
        self.wait(lambda: self.run("squeue", "--noheader") == "", "an empty queue")

    def words(self) -> str:
        """The ends of the logs, for a test that fails."""
        found = sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")])
        return "\n".join(f"--- {each.name}\n{each.read_text(errors='replace')[-2000:]}" for each in found)

    def end(self) -> None:
        """Cancel what runs, then end the daemons."""
        self.run("scancel", "--user", getpass.getuser())
        for daemon in reversed(list(self.daemons.values())):
            daemon.terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(120)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[SlurmCluster]:
    """A cluster in ``folder``, whose path must be short: it holds a socket."""
    cluster = SlurmCluster(folder)
    with ExitStack() as stack:
        stack.callback(cluster.end)
        cluster.begin()
        yield cluster


def free_ports(count: int) -> list[int]:
    """Ports of this machine on which nobody listens."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]

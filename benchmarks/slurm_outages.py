"""A real Slurm whose controller is away for 30, 75 and 200 s at three moments of a run: nothing may be lost.

For each it prints one line: the exit code, the rows by status, how many tasks Slurm was given beyond those
that were needed (a case measured twice), and the seconds of the run. It ends with 1 where a line is wrong.

    python benchmarks/slurm_outages.py [SECONDS...]
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests/harness/executors"))

from slurm_cluster import SlurmCluster, slurm_cluster
from waiting import wait_until

from torchgauge.records import Status
from torchgauge.results import journal
from torchgauge.results.store import Store

PROJECT = Path(__file__).resolve().parents[1]
MODELS = 6
QUICK = ("--measure-seconds", "0.1", "--no-calibration", "--no-memory-probe", "--threads", "1")
PATH = [PROJECT / "src", PROJECT / "tests/faults_plugin"]


class Night:
    """A run of six jobs on two nodes; its models wait at a gate until it is opened."""

    def __init__(self, cluster: SlurmCluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.gate = folder / "gate"
        self.gate.mkdir(parents=True)
        words = ("slow", "--device", "fake", "--config", "eager", *QUICK, "--store", str(folder / "store"))
        jobs = ("--executor", "slurm", "--executor-option", "groups_per_job=1", "--prefetch", "1")
        self.began = time.monotonic()
        with (folder / "said").open("wb") as said:
            self.command = subprocess.Popen(
                [sys.executable, "-m", "torchgauge", "run", *words, *jobs],
                env={
                    **cluster.environment,
                    "PYTHONPATH": os.pathsep.join(map(str, PATH)),
                    "TORCHGAUGE_FAULTS_GATE": str(self.gate),
                },
                stdout=said,
                stderr=said,
            )

    def rows(self) -> int:
        """How many cases have their row."""
        found = list((self.folder / "store").glob("runs/[!.]*/journal.jsonl"))
        return sum(1 for _ in journal.results(found[0])) if found else 0

    def open(self) -> None:
        """Let all models be measured."""
        (self.gate / "open").touch()

    def away(self, seconds: float) -> None:
        """Stop the controller for so long."""
        self.cluster.stop("slurmctld")
        time.sleep(seconds)
        self.cluster.start_controller()

    def line(self, spare: int) -> tuple[str, bool]:
        """What became of it, and whether that is right; ``spare`` tasks are more than the jobs."""
        code = self.command.wait(3600)
        took = time.monotonic() - self.began
        store = Store.open(self.folder / "store")
        (run,) = store.run_ids()
        rows = list(journal.results(store.run(run).journal_path))
        counts = Counter(row.status for row in rows)
        tasks = self.cluster.run(
            "squeue",
            "--noheader",
            "--array",
            "--states=all",
            f"--name=torchgauge-{run}",
            "--Format=JobArrayID:",
        ).split()
        twice = len(tasks) - MODELS - spare
        said = f"exit {code}, {counts[Status.PASS]} pass, {counts[Status.INFRA]} infra"
        fine = (code, counts[Status.PASS], len(rows), twice) == (0, MODELS, MODELS, 0)
        return f"{said}, {MODELS - len(rows)} lost, {twice} measured twice, {took:.0f} s", fine


def submitting(night: Night, seconds: float) -> int:
    """The controller goes as soon as the run is planned, about when its jobs are submitted."""
    night.open()
    wait_until(lambda: list((night.folder / "store").glob("runs/[!.]*/journal.jsonl")), "a plan")
    night.away(seconds)
    return 0


def waiting(night: Night, seconds: float) -> int:
    """One job has ended, two measure and three wait for a node; those end while it is away."""
    (night.gate / "ticket-0").touch()
    wait_until(lambda: night.rows() == 1, "a row")
    night.cluster.stop("slurmctld")
    night.open()
    time.sleep(seconds)
    night.cluster.start_controller()
    return 0


def dying(night: Night, seconds: float) -> int:
    """A job's worker is killed while it is away, so that another job must be submitted for it."""
    (night.gate / "ticket-0").touch()
    wait_until(lambda: night.rows() == 1, "a row")
    night.cluster.stop("slurmctld")
    os.kill(worker(night.folder), signal.SIGKILL)
    night.open()
    time.sleep(seconds)
    night.cluster.start_controller()
    return 1


def worker(folder: Path) -> int:
    """The process of a `torchgauge worker` of the run in ``folder`` that has no row yet."""

    def found() -> int:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"worker" in words[:5] and str(folder) in (into := words[words.index(b"--into") + 1].decode()):
                file = Path(into, "journal.jsonl")
                if file.is_file() and '"kind":"result"' not in file.read_text():
                    return int(process.name)
        return 0

    return wait_until(found, "a worker")


def main() -> int:
    """Exit code: 0 where every line is as it must be."""
    code = 0
    for seconds in map(float, sys.argv[1:] or ("30", "75", "200")):
        for moment in (submitting, waiting, dying):
            folder = Path(tempfile.mkdtemp(prefix="tg-away-", dir="/tmp"))
            with slurm_cluster(folder) as cluster:
                night = Night(cluster, folder / "night")
                spare = moment(night, seconds)
                text, fine = night.line(spare)
                print(f"{seconds:g} s, {moment.__name__}: {text}{'' if fine else '  WRONG'}", flush=True)
                if not fine:
                    code = 1
                    print((folder / "night/said").read_text(errors="replace")[-4000:], flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    return code


if __name__ == "__main__":
    sys.exit(main())

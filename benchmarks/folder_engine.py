"""An engine that is a folder, so that the driver loop of parts can be watched and killed without a cluster.

Jobs wait in ``queue``, whoever renames one to ``taken`` has it, ``cancelled`` names those that are to end,
and ``ended`` says how they went. An agent is a process that takes one job after the other; unless told
otherwise it starts ``torchgauge worker`` for each, as a job of Slurm does.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from torchgauge.harness.executors.executor import Submission, Yield
from torchgauge.harness.executors.part_jobs import JobState, PartJob, PartJobs, PartOptions, Stage
from torchgauge.processes.process_tree import die_with_parent
from torchgauge.results.store import read_plan

LOOK_S = 0.025
"""Seconds between looks at the folders."""
END_S = 30.0
"""Seconds that cancelled jobs may take."""


@dataclass(frozen=True)
class FolderOptions(PartOptions):
    """Those of the driver, for a fleet that answers fast; ``place`` is the folder."""

    groups_per_job: int = 2
    attempts: int = 3
    lost_s: float = 1.0
    poll_s: float = 0.5
    place: str = ""


@dataclass(frozen=True)
class Place:
    """The folder that is the engine, and the moves in it; a rename decides who has a job."""

    path: Path

    def folder(self, name: str) -> Path:
        """One of its folders, which is made."""
        found = self.path / name
        found.mkdir(parents=True, exist_ok=True)
        return found

    def names(self, folder: str) -> list[str]:
        """What lies in ``folder``, in order."""
        return sorted(each.name for each in self.folder(folder).iterdir() if not each.name.startswith("."))

    def taken(self) -> dict[str, str]:
        """Job to agent."""
        return dict(each.rsplit("@", 1) for each in self.names("taken"))

    def claim(self, agent: str) -> Path | None:
        """The next job, which is now that of ``agent``."""
        for name in self.names("queue"):
            mine = self.folder("taken") / f"{name}@{agent}"
            with suppress(FileNotFoundError):
                (self.folder("queue") / name).rename(mine)
                return mine
        return None

    def leave(self, agent: str, words: str) -> None:
        """Say how the job that ``agent`` has, if it has one, went."""
        for job, its in self.taken().items():
            if its == agent:
                (self.folder("ended") / job).write_text(words)
                (self.folder("taken") / f"{job}@{agent}").unlink()
                (self.folder("cancelled") / job).unlink(missing_ok=True)


@dataclass(frozen=True)
class FolderEngine:
    """The engine of one driver."""

    submission: Submission
    place: Place
    ended: dict[str, JobState] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where the folders of the parts lie."""
        return self.submission.folder.absolute() / "work"

    def called(self, job: PartJob) -> str:
        """Its name."""
        return job.name

    def log(self, job: PartJob) -> Path:
        """There is none."""
        return self.folder / "none"

    def clear(self) -> None:
        """End what a driver that was killed left."""
        self._end([*self.place.names("queue"), *self.place.taken()])
        for name in self.place.names("ended"):
            (self.place.folder("ended") / name).unlink()

    def start(self, jobs: Sequence[PartJob]) -> Mapping[str, str]:
        """Put ``jobs`` into the queue."""
        queue = self.place.folder("queue")
        for job in jobs:
            (self.place.folder("ended") / job.name).unlink(missing_ok=True)
            aside = queue / f".{job.name}"
            aside.write_text(str(self.folder))
            aside.rename(queue / job.name)
        return {}

    def look(self) -> Mapping[str, JobState]:
        """What the folders say; a job that moves meanwhile is seen where it goes."""
        found = {name: JobState(Stage.WAITING, "no agent is free") for name in self.place.names("queue")}
        found |= {name: JobState(Stage.RUNNING, f"on {agent}") for name, agent in self.place.taken().items()}
        for name in self.place.names("ended"):
            if name not in self.ended:
                words = (self.place.folder("ended") / name).read_text()
                self.ended[name] = JobState(Stage.ENDED, words)
        return found | self.ended

    def end(self, jobs: Sequence[PartJob]) -> None:
        """End ``jobs``."""
        self._end([job.name for job in jobs])

    def notes(self) -> Sequence[str]:
        """Nothing beside its states."""
        return ()

    def close(self) -> None:
        """Nothing of it runs in the driver."""

    def _end(self, names: Sequence[str]) -> None:
        for name in names:
            (self.place.folder("queue") / name).unlink(missing_ok=True)
        clock = self.submission.clock
        until = clock.steady() + END_S
        while (mine := set(names) & self.place.taken().keys()) and clock.steady() < until:
            for name in mine:
                (self.place.folder("cancelled") / name).touch()
            time.sleep(LOOK_S)


@dataclass(frozen=True)
class FleetExecutor:
    """What the driver loads: the real loop over the engine of folders."""

    name: str = "fleet"
    options: type = FolderOptions
    elsewhere: bool = True

    def submit(self, submission: Submission) -> Iterator[Yield]:
        """Put the groups into the queue, and yield what agents write."""
        options = submission.options
        yield from PartJobs(submission, FolderEngine(submission, Place(Path(options.place))), options).run()


FLEET = FleetExecutor()


@dataclass(frozen=True)
class Taken:
    """A job that an agent has: its name, the folder of all parts, and the file that cancels it."""

    name: str
    folder: Path
    cancelled: Path
    agent: str


def run_worker(job: Taken) -> str:
    """Measure the job by a command of its own, which is told to stop where the job is cancelled."""
    plan = job.folder / f"{job.name}.json"
    groups = [group.id for group in read_plan(plan).groups]
    words = ("worker", str(plan), *groups, "--into", str(job.folder / job.name), "--node", job.agent)
    started = subprocess.Popen(
        [sys.executable, "-m", "torchgauge.cli.main", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=die_with_parent,  # noqa: PLW1509  there are no threads
    )
    while started.poll() is None:
        if job.cancelled.exists():
            started.terminate()
            started.wait(END_S)
        time.sleep(LOOK_S)
    return f"ended with {started.returncode} on {job.agent}"


def serve(agent: str, place: Place, measure: Callable[[Taken], str] = run_worker) -> None:
    """Take one job after the other, as long as whoever started this lives."""
    die_with_parent()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        claimed = place.claim(agent)
        if claimed is None:
            time.sleep(LOOK_S)
            continue
        name = claimed.name.rsplit("@", 1)[0]
        job = Taken(name, Path(claimed.read_text()), place.folder("cancelled") / name, agent)
        try:
            words = measure(job)
        except Exception as error:  # noqa: BLE001  as an engine whose command ended badly
            words = f"{type(error).__name__}: {error} on {agent}"
        place.leave(agent, words)

"""Executor ``slurm``: parts of the plan as array jobs, each alone on its node; results come back as files.

Nothing is asked of Slurm's accounting, which may be off: a job is over when its folder says so, and what
``squeue`` says ends the wait for one that cannot say so any more.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from torchgauge.errors import InfrastructureError
from torchgauge.harness.executors.executor import Submission, Yield
from torchgauge.harness.executors.fleet import FleetDevice
from torchgauge.harness.executors.part_jobs import JobState, PartJob, PartJobs, PartOptions, Stage
from torchgauge.harness.executors.slurm_fleet import slurm_fleet
from torchgauge.processes.kept_process import run
from torchgauge.processes.passed_variables import passed
from torchgauge.results.atomic_file import write_atomically

COMMANDS = ("sbatch", "squeue", "scancel")
ANSWER_S = 90.0
"""Seconds that a command of Slurm may take; for a minute it tries again by itself."""
END_S = 90.0
"""Seconds that cancelled jobs may take: longer than a usual KillWait, with what follows it."""
MOST_TASKS = 1000
"""Tasks of an array: Slurm's own default for MaxArraySize is 1001."""
FIELDS = ("JobArrayID", "State", "RestartCnt", "exit_code", "NodeList", "Reason")
QUEUED = frozenset({"PENDING", "CONFIGURING"})
CANCELLED = frozenset({"CANCELLED", "REVOKED"})
OVER = CANCELLED | {
    *("BOOT_FAIL", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT"),
}
SCRIPT = """#!/bin/sh
# Measures one part of run {run_id}: the task's line of the list names it and its groups.
if [ "${{SLURM_RESTART_COUNT:-0}}" != 0 ]; then
    echo "Slurm started this job again: torchgauge starts what is left in a job of its own"
    exit 75
fi
set -- $(sed -n "$((SLURM_ARRAY_TASK_ID + 1))p" {list})
name=$1
shift
exec {command} worker {folder}/"$name".json "$@" --into {folder}/"$name" --node "$SLURMD_NODENAME"
"""


@dataclass(frozen=True)
class SlurmOptions(PartOptions):
    """What ``--executor-option`` may say beside what all executors of jobs take.

    ``sbatch`` are further words for sbatch, in which ``{device}`` is the device's name. ``folder`` is one
    that all nodes see (default: the run's own), ``torchgauge`` the command there (default: that of this
    process).
    """

    sbatch: str = ""
    folder: str = ""
    torchgauge: str = ""


@dataclass
class Slurm:
    """The jobs of one run; ``over`` are tasks that hold no node any more."""

    submission: Submission
    options: SlurmOptions
    tasks: dict[str, str] = field(default_factory=dict)
    logs: dict[str, Path] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)
    arrays: int = 0

    @property
    def folder(self) -> Path:
        """Where the folders of the parts lie; every node must see it."""
        if self.options.folder:
            return Path(self.options.folder).absolute() / self.submission.plan.run_id
        return self.submission.folder.absolute() / "work"

    @property
    def job_name(self) -> str:
        """What Slurm calls all jobs of the run."""
        return f"torchgauge-{self.submission.plan.run_id}"

    def notes(self) -> Sequence[str]:
        """Nothing: what Slurm says is said of its jobs."""
        return ()

    def called(self, job: PartJob) -> str:
        """``slurm job 12_3``."""
        return f"slurm job {self.tasks[job.name]}" if job.name in self.tasks else job.name

    def log(self, job: PartJob) -> Path:
        """What the job wrote to its output, and Slurm beside it."""
        return self.logs.get(job.name, self.folder / "none")

    def clear(self) -> None:
        """Cancel the jobs of a command that was killed, or left by a second Ctrl-C."""
        if any(active for _, active in (self._states() or {}).values()):
            ask("scancel", f"--name={self.job_name}")
            self._wait_until(lambda states: not any(active for _, active in states.values()))

    def start(self, jobs: Sequence[PartJob]) -> Mapping[str, str]:
        """Submit an array for the jobs of each device; sbatch's own words for those that it refuses."""
        refused: dict[str, str] = {}
        for device, of_device in groupby(jobs, key=lambda job: job.groups[0].device.name):
            chosen = list(of_device)
            for first in range(0, len(chosen), MOST_TASKS):
                refused.update(self._submit(device, chosen[first : first + MOST_TASKS]))
        return refused

    def _submit(self, device: str, jobs: Sequence[PartJob]) -> dict[str, str]:
        self.arrays += 1
        array = self.folder / f"array-{self.arrays}"
        lines = [" ".join([job.name, *(group.id for group in job.groups)]) for job in jobs]
        listed, script = array.with_suffix(".txt"), array.with_suffix(".sh")
        write_atomically(listed, "\n".join([*lines, ""]).encode())
        text = SCRIPT.format(
            run_id=self.submission.plan.run_id,
            list=shlex.quote(str(listed)),
            folder=shlex.quote(str(self.folder)),
            command=self.options.torchgauge or shlex.join([sys.executable, "-m", "torchgauge.cli.main"]),
        )
        write_atomically(script, text.encode())
        words = [
            *("--parsable", "--exclusive", "--no-requeue", f"--job-name={self.job_name}"),
            *(f"--array=0-{len(jobs) - 1}", f"--output={array}-%a.out"),
            *shlex.split(self.options.sbatch.replace("{device}", device)),
        ]
        done = ask("sbatch", *words, str(script))
        if done.returncode:
            return {job.name: _in_a_line(done) for job in jobs}
        number = done.stdout.split()[-1].partition(";")[0]
        for task, job in enumerate(jobs):
            self.tasks[job.name] = f"{number}_{task}"
            self.logs[job.name] = Path(f"{array}-{task}.out")
        return {}

    def look(self) -> Mapping[str, JobState]:
        """What squeue says of each job; nothing where it does not answer."""
        states = self._states()
        if states is None:
            return {}
        gone = (JobState(Stage.UNKNOWN, "Slurm no longer knows it"), False)
        return {name: states.get(task, gone)[0] for name, task in self.tasks.items()}

    def end(self, jobs: Sequence[PartJob]) -> None:
        """Cancel ``jobs``; returns when Slurm says that they are over, or a deadline has passed."""
        tasks = {self.tasks[job.name] for job in jobs if job.name in self.tasks} - self.over
        if tasks:
            ask("scancel", *sorted(tasks))
            self._wait_until(lambda states: not any(states[task][1] for task in tasks & states.keys()))
            self.over |= tasks

    def close(self) -> None:
        """Nothing of it runs here."""

    def _states(self) -> dict[str, tuple[JobState, bool]] | None:
        """State by array task, and whether it may still hold a node; None where squeue does not answer."""
        layout = ",".join(f"{name}:|" for name in FIELDS)
        words = ("--noheader", "--array", "--states=all", f"--name={self.job_name}", f"--Format={layout}")
        done = ask("squeue", *words)
        if done.returncode:
            return None
        lines = [
            [word.strip() for word in line.split("|")] for line in done.stdout.splitlines() if line.strip()
        ]
        found = {line[0]: (state_of(*line[1:6]), line[1] not in OVER) for line in lines}
        self.over |= {task for task, (_, active) in found.items() if not active}
        return found

    def _wait_until(self, over: Callable[[dict[str, tuple[JobState, bool]]], bool]) -> None:
        clock = self.submission.clock
        until = clock.steady() + END_S
        while clock.steady() < until:
            states = self._states()
            if states is not None and over(states):
                return
            self.submission.cancelled()  # who asks is alive
            time.sleep(min(0.5, self.options.poll_s))


def state_of(state: str, restarts: str, code: str, nodes: str, reason: str) -> JobState:
    """A line of squeue in torchgauge's terms, with Slurm's words.

    ``code`` is a wait status. A job that Slurm has started again has ended: what is left of it is started as
    a job of its own.
    """
    words = f"{state} ({reason})" if reason not in ("", "None") else state
    if nodes:
        words += f" on {nodes}"
    if restarts not in ("", "0"):
        return JobState(Stage.ENDED, f"Slurm requeued it: {words}")
    if state in QUEUED:
        return JobState(Stage.WAITING, words)
    if state not in OVER:
        return JobState(Stage.RUNNING, words)
    if code.isdecimal() and int(code):
        ended = os.waitstatus_to_exitcode(int(code))
        words += f", signal {-ended}" if ended < 0 else f", exit status {ended}"
    return JobState(Stage.ENDED, words, again=state not in CANCELLED)


def ask(*command: str) -> subprocess.CompletedProcess[str]:
    """What a command of Slurm answers; one that cannot be asked has failed, with the reason as its words."""
    try:
        return run(command, passed(declared=("SLURM_CONF", "SBATCH_*")), timeout=ANSWER_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 127, "", str(error))


def _in_a_line(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join((done.stderr or done.stdout).split()) or f"exit status {done.returncode}"


@dataclass(frozen=True)
class SlurmExecutor:
    """Array jobs of a Slurm cluster."""

    name: str = "slurm"
    options: type = SlurmOptions
    elsewhere: bool = True

    def ready(self, options: SlurmOptions) -> None:
        """Raise :class:`InfrastructureError` where no Slurm answers here."""
        if missing := [name for name in COMMANDS if shutil.which(name) is None]:
            raise InfrastructureError(
                f"Slurm's {', '.join(missing)} cannot be found",
                hint="log in to a node that submits jobs, or apt-get install slurm-client",
            )
        done = ask("squeue", "--noheader", "--name=torchgauge-none")
        if done.returncode:
            raise InfrastructureError(f"Slurm does not answer: {_in_a_line(done)}", hint="sinfo says more")

    def fleet(self, options: SlurmOptions) -> list[FleetDevice]:
        """The nodes, and the jobs of torchgauge on them."""
        return slurm_fleet(ask)

    def submit(self, submission: Submission) -> Iterator[Yield]:
        """Submit the groups, and yield what their jobs write."""
        options = submission.options or SlurmOptions()
        yield from PartJobs(submission, Slurm(submission, options), options).run()


EXECUTOR = SlurmExecutor()

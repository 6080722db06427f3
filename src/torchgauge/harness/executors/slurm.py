"""Executor ``slurm``: parts of the plan as array jobs, each alone on its node; results come back as files.

Nothing is asked of Slurm's accounting, which may be off: a job is over when its folder says so, and what
``squeue`` says ends the wait for one that cannot say so any more. While the controller does not answer,
nothing is decided: a restart of it costs no job.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from secrets import token_hex
from textwrap import shorten

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.counted import counted
from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.harness.executors.executor import Submission, Yield
from torchgauge.harness.executors.fleet import FleetDevice
from torchgauge.harness.executors.part_jobs import (
    EngineAwayError,
    JobState,
    PartJob,
    PartJobs,
    PartOptions,
    Stage,
    cut,
)
from torchgauge.harness.executors.slurm_fleet import JOBS, answered, in_a_line, slurm_fleet
from torchgauge.harness.run.versions import MIXED
from torchgauge.processes.kept_process import run, scratch
from torchgauge.processes.passed_variables import passed
from torchgauge.records import Plan
from torchgauge.results.atomic_file import write_atomically

COMMANDS = ("sbatch", "squeue", "scancel")
ANSWER_S = 90.0
"""Seconds that a command of Slurm may take; for a minute it tries again by itself."""
END_S = 90.0
"""Seconds that cancelled jobs may take: longer than a usual KillWait, with what follows it."""
AWAY_S = 600.0
"""Seconds that they wait for a controller that does not answer: else two jobs would measure one group."""
UNASKED = 127
"""The exit status of a command of Slurm that was not started, or did not end in its time."""
PROBE_MINUTES = 10
"""After so long a job of a command that was killed while it tried the words would begin: it does nothing."""
NEVER = re.compile(
    r"BadConstraints|DependencyNeverSatisfied|Invalid|Partition(Config|TimeLimit)|\w+PerJob|\w+NotAllowed"
)
"""Reasons for which a job waits until somebody changes it; PartitionNodeLimit may be of drained nodes."""
HINT = "--executor-option sbatch=... passes options to sbatch; man sbatch lists them"
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
set -- {command} worker {folder}/"$name".json "$@" --into {folder}/"$name" --node "$SLURMD_NODENAME"{more}
exec sh -c 'exec "$@"' torchgauge "$@" # a shell of one name prints one error for all jobs
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

    def words_for(self, device: str, name: str, tasks: int, output: str) -> list[str]:
        """Return the words of sbatch before the script, for an array of ``tasks`` on ``device``.

        Of words that are there twice the last one counts: jobs are found by their name. Raises
        :class:`UsageError`.
        """
        try:
            words = shlex.split(self.sbatch.replace("{device}", device))
        except ValueError as error:
            raise UsageError(f"executor option sbatch={self.sbatch!r}: {error}", hint=HINT) from None
        own = (f"--job-name={name}", f"--array=0-{tasks - 1}", f"--output={output}", f"--error={output}")
        return ["--exclusive", "--no-requeue", *words, "--open-mode=append", *own]

    def folder_of(self, run_id: str) -> Path:
        """Return the run's folder below the option ``folder``."""
        return Path(self.folder).expanduser().absolute() / run_id


@dataclass
class Slurm:
    """The jobs of one run; ``over`` are tasks that hold no node any more, ``nodes`` where each is or was.

    The ``mark`` of this command is in the names of its scripts. ``news`` are for :meth:`notes`.
    """

    submission: Submission
    options: SlurmOptions
    tasks: dict[str, str] = field(default_factory=dict)
    logs: dict[str, Path] = field(default_factory=dict)
    over: set[str] = field(default_factory=set)
    nodes: dict[str, str] = field(default_factory=dict)
    news: list[str] = field(default_factory=list)
    mark: str = field(default_factory=partial(token_hex, 4))

    @property
    def folder(self) -> Path:
        """Where the folders of the parts lie; every node must see it."""
        if self.options.folder:
            return self.options.folder_of(self.submission.plan.run_id)
        return self.submission.folder.absolute() / "work"

    @property
    def job_name(self) -> str:
        """What Slurm calls all jobs of the run."""
        return f"{JOBS}{self.submission.plan.run_id}"

    def notes(self) -> Sequence[str]:
        """Jobs that could not be cancelled: what else Slurm says is said of its jobs."""
        news, self.news = self.news, []
        return news

    def called(self, job: PartJob) -> str:
        """``slurm job 12_3``."""
        return f"slurm job {self.tasks[job.name]}" if job.name in self.tasks else job.name

    def log(self, job: PartJob) -> Path:
        """What the job wrote to its output, and Slurm beside it."""
        return self.logs.get(job.name, self.folder / "none")

    def clear(self) -> None:
        """Cancel the jobs of a command that was killed, or left by a second Ctrl-C."""
        self._cancel(None)

    def start(self, jobs: Sequence[PartJob]) -> Mapping[str, str]:
        """Submit an array for the jobs of each device; sbatch's own words for those that it refuses.

        What a job on some node has lost is measured on another one, if there is any.
        """
        refused: dict[str, str] = {}
        left = [job for job in jobs if job.name not in self.tasks]
        for (_, nodes), alike in groupby(left, key=self._kind):
            chosen = list(alike)
            for first in range(0, len(chosen), MOST_TASKS):
                refused.update(self._submit(chosen[first : first + MOST_TASKS], nodes))
        return refused

    def _kind(self, job: PartJob) -> tuple[str, str]:
        """Return the device of ``job``, and the nodes that lost earlier jobs of its groups, for sbatch."""
        tasks = (self.tasks.get(name, "") for name in job.before)
        nodes = sorted({self.nodes[task] for task in tasks if task in self.nodes})
        return job.groups[0].device.name, ",".join(nodes)

    def _submit(self, jobs: Sequence[PartJob], nodes: str) -> dict[str, str]:
        """Submit one array, not on ``nodes`` where others are up; one that Slurm has already is taken."""
        words, text = self.submitted(jobs)
        script = Path(words[-1])
        listed = "".join(" ".join([job.name, *(group.id for group in job.groups)]) + "\n" for job in jobs)
        write_atomically(script.with_suffix(".txt"), listed.encode())
        write_atomically(script, text.encode())
        number, refusal = self._number(script), ""
        elsewhere = [f"--exclude={nodes}", *words]
        if nodes and not self._ask("sbatch", "--test-only", *elsewhere).returncode:
            words = elsewhere
        for _ in range(2):  # a controller that answers between two refusals means them
            if not number:
                refusal = in_a_line(self._ask("sbatch", *words))
                number = self._number(script)
        if not number:
            return dict.fromkeys((job.name for job in jobs), refusal)
        for task, job in enumerate(jobs):
            self.tasks[job.name] = f"{number}_{task}"
            self.logs[job.name] = script.with_name(f"{script.stem}-{task}.out")
        return {}

    def submitted(self, jobs: Sequence[PartJob]) -> tuple[list[str], str]:
        """Return the words of sbatch for an array of ``jobs``, which end with a script, and its text."""
        script = self.folder / f"array-{jobs[0].name}-{self.mark}.sh"
        text = SCRIPT.format(
            run_id=self.submission.plan.run_id,
            list=shlex.quote(str(script.with_suffix(".txt"))),
            folder=shlex.quote(str(self.folder)),
            command=self.options.torchgauge or shlex.join([sys.executable, "-m", "torchgauge.cli.main"]),
            more=f" {MIXED}" if self.submission.mixed else "",
        )
        output = f"{script.with_suffix('')}".replace("%", "%%") + "-%a.out"
        words = self.options.words_for(jobs[0].groups[0].device.name, self.job_name, len(jobs), output)
        return [*words, str(script)], text

    def _number(self, script: Path) -> str:
        """Return the number of the array that runs ``script``; empty where Slurm has none."""
        lines = self._queue("ArrayJobID", "Command")
        return next((number for number, command in lines if command == str(script)), "")

    def look(self) -> Mapping[str, JobState]:
        """Return what squeue prints of each job; raises :class:`EngineAwayError` where it does not answer."""
        states = self._states()
        gone = (JobState(Stage.UNKNOWN, "Slurm no longer lists the job"), False)
        return {name: states.get(task, gone)[0] for name, task in self.tasks.items()}

    def end(self, jobs: Sequence[PartJob]) -> None:
        """Cancel ``jobs``; returns when Slurm says that they are over, or a deadline has passed."""
        tasks = {self.tasks[job.name] for job in jobs if job.name in self.tasks} - self.over
        if tasks:
            self._cancel(tasks)
            self.over |= tasks

    def _cancel(self, tasks: set[str] | None) -> None:
        """Cancel ``tasks``, or all of the run, as soon as Slurm answers, and wait until they are over."""
        clock, sent = self.submission.clock, set[str]()
        began = answered = clock.steady()
        while clock.steady() - answered < END_S:
            try:
                found = {task for task, (_, active) in self._states().items() if active}
                active = found if tasks is None else found & tasks
                if not active:
                    return
                if active - sent and not self._ask("scancel", *sorted(active - sent)).returncode:
                    sent |= active
            except EngineAwayError:
                if not self.submission.cancelled() and clock.steady() - began < AWAY_S:
                    answered = clock.steady()
            time.sleep(min(0.5, self.options.poll_s))
        self.news.append(f"jobs may still run: Slurm did not end them. Try: scancel --name={self.job_name}")

    def _states(self) -> dict[str, tuple[JobState, bool]]:
        """State by array task, and whether it may still hold a node; raises as :meth:`_queue` does."""
        lines = self._queue(*FIELDS)
        found = {line[0]: (state_of(*line[1:6]), line[1] not in OVER) for line in lines}
        self.over |= {task for task, (_, active) in found.items() if not active}
        self.nodes |= {line[0]: line[4] for line in lines if line[4]}
        return found

    def _queue(self, *fields: str) -> list[list[str]]:
        """Return the ``fields`` of each task of the run; raises :class:`EngineAwayError` if squeue fails."""
        layout = ",".join(f"{name}:|" for name in fields)
        words = ("--noheader", "--array", "--states=all", f"--name={self.job_name}", f"--Format={layout}")
        done = self._ask("squeue", *words)
        if done.returncode:
            raise EngineAwayError(f"Slurm's controller does not respond: {in_a_line(done)}")
        return [line[: len(fields)] for line in answered(done)]

    def _ask(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command like :func:`ask`, and report the run as alive while it tries for its minute."""
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(ask, *command)
            while wait([answer], timeout=0.5).not_done:
                self.submission.cancelled()
        return answer.result()


def state_of(state: str, restarts: str, code: str, nodes: str, reason: str) -> JobState:
    """A line of squeue in torchgauge's terms, with Slurm's words.

    ``code`` is a wait status. A job that Slurm has started again has ended: what is left of it is started as
    a job of its own.
    """
    words = f"{state} ({reason})" if reason not in ("", "None") else state
    if restarts not in ("", "0"):
        return JobState(Stage.ENDED, f"Slurm requeued it: {words}", node=nodes)
    if state in QUEUED and NEVER.match(reason):
        return JobState(Stage.ENDED, f"Slurm will never start the job: {words}", again=False, final=True)
    if state in QUEUED:
        return JobState(Stage.WAITING, words)
    if state not in OVER:
        return JobState(Stage.RUNNING, words, node=nodes)
    if code.isdecimal() and int(code):
        ended = os.waitstatus_to_exitcode(int(code))
        words += f", signal {-ended}" if ended < 0 else f", exit status {ended}"
    return JobState(Stage.ENDED, words, again=state not in CANCELLED, node=nodes)


def ask(*command: str) -> subprocess.CompletedProcess[str]:
    """What a command of Slurm answers; one that cannot be asked has failed, with the reason as its words."""
    try:
        return run(command, passed(declared=("SLURM_CONF", "SBATCH_*")), timeout=ANSWER_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, UNASKED, "", str(error))


def _refusal(options: SlurmOptions, device: str) -> str:
    """Return why no job for ``device`` would ever start; empty where one would.

    A job of the words that a run submits is submitted and cancelled: ``sbatch --test-only`` refuses nodes
    that are drained for now, and accepts words that the controller refuses. The reason of a job that waits
    is that of its words until the scheduler finds that it begins later. Raises :class:`InfrastructureError`
    where Slurm does not answer.
    """
    name = f"{JOBS}words-{token_hex(4)}"
    words = (*options.words_for(device, name, 1, os.devnull), f"--begin=now+{PROBE_MINUTES}minutes")
    with scratch("words") as folder:
        script = folder / "job.sh"
        script.write_text("#!/bin/sh\n")
        try:
            done = ask("sbatch", *words, str(script))
            listed = ("--noheader", "--states=PENDING", f"--name={name}", "--Format=Reason:|")
            reasons = [line[0] for line in answered(ask("squeue", *listed))]
        finally:
            ask("scancel", f"--name={name}")
    if done.returncode == UNASKED:
        if not reasons:
            answered(done)  # raises: Slurm did not answer
        return f"sbatch submitted a test job, but does not return ({done.stderr})"
    if not reasons:
        said = shorten(in_a_line(done), 300)
        return said if done.returncode else f"sbatch refuses these options ({said})"
    return f"a job would stay PENDING ({reasons[0]})" if NEVER.match(reasons[0]) else ""


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
        answered(ask("squeue", "--noheader", "--name=torchgauge-none"))

    def refuse(self, options: SlurmOptions, devices: Sequence[str]) -> None:
        """Raise :class:`UsageError` for a folder that cannot be written, and where no job would start."""
        if options.folder:
            folder = options.folder_of("")
            try:
                folder.mkdir(parents=True, exist_ok=True)
                with scratch("words", str(folder)):
                    pass
            except OSError as error:
                raise UsageError(
                    f"executor option folder={options.folder!r} cannot be written: {error.strerror}",
                    hint="--executor-option folder=DIR with a folder that you and all nodes can write to",
                ) from None
        for device in devices:
            if said := _refusal(options, device):
                raise UsageError(f"no job would start for {device}: {said}", hint=HINT)

    def jobs(self, options: SlurmOptions, plan: Plan) -> Iterator[str]:
        """Yield a line for each job, then the words and the script that submit the first array."""
        folder = Path("STORE", "runs", plan.run_id)
        nothing = Submission(plan, (), folder, {}, {}, "", SYSTEM_CLOCK, lambda: False, lambda *_: None)
        jobs = [
            PartJob(f"part-{n}", each) for n, each in enumerate(cut(plan.groups, options.groups_per_job), 1)
        ]
        for job in jobs:
            cases = sum(len(group.cases) for group in job.groups)
            of = f"{counted(len(job.groups), 'group')}, {counted(cases, 'case')}"
            yield f"job {job.name} on {job.groups[0].device}: {of}"
        device = jobs[0].groups[0].device.name
        first = [job for job in jobs if job.groups[0].device.name == device][:MOST_TASKS]
        words, text = Slurm(nothing, options).submitted(first)
        yield from ("", shlex.join(["sbatch", *words]), "", *text.splitlines())

    def fleet(self, options: SlurmOptions) -> list[FleetDevice]:
        """The nodes, and the jobs of torchgauge on them."""
        return slurm_fleet(ask)

    def submit(self, submission: Submission) -> Iterator[Yield]:
        """Submit the groups, and yield what their jobs write."""
        options = submission.options or SlurmOptions()
        yield from PartJobs(submission, Slurm(submission, options), options).run()


EXECUTOR = SlurmExecutor()

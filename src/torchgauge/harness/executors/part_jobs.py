"""Parts of a plan as jobs of an engine: each is watched to a deadline, read as it grows, and none is lost.

The engine only starts commands. What a job measures lies in the folder of a part (``torchgauge worker``), and
that folder alone says what is done: an engine's word ends a wait, and never makes a row. A job that is lost
is started again as a new attempt in a folder of its own, so that a late row of it can replace nothing. While
the engine does not answer, no clock of a job runs.
"""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Protocol

from torchgauge.counted import counted
from torchgauge.errors import DamagedJournalError, TorchgaugeError
from torchgauge.harness.executors.executor import Attempted, BudgetSpent, RunNote, Submission, Yield
from torchgauge.harness.parts.part_folder import PartFolder, log_below
from torchgauge.harness.run.rows import RowContext, excerpt, row
from torchgauge.harness.run.versions import Versions
from torchgauge.records import Again, Cause, Group, Outcome, Phase, Plan, Result, Status, to_plain
from torchgauge.results.atomic_file import storage_errors
from torchgauge.results.hostile_text import first_line
from torchgauge.results.journal import (
    EarlierAttempt,
    JournalRecord,
    Kind,
    RunState,
    is_being_written,
    read_with_ends,
)

READ_S = 0.5
"""Seconds between looks at the folders of parts."""
WELL = (RunState.COMPLETE, RunState.OUT_OF_BUDGET)
"""Ends of a part after which its job has nothing more to say."""
JOB_LOG = "job.log"
"""What a job itself said, beside the logs of its workers."""


@dataclass(frozen=True)
class PartOptions:
    """Options of every executor of this kind; times are seconds.

    A job waits at most ``queue_s`` for its place, and the run as long for an engine that does not answer. A
    job of which neither the engine nor its folder tells for ``lost_s`` is lost. A group may cost ``attempts``
    jobs their life. The engine is asked every ``poll_s``.
    """

    groups_per_job: int = 10
    attempts: int = 2
    queue_s: float = 86_400.0
    lost_s: float = 60.0
    poll_s: float = 5.0


class EngineAwayError(Exception):
    """Raised with the words of an engine that does not answer: until it does, no state of a job is known."""


class Stage(Enum):
    """How far a job is, as its engine knows."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class JobState:
    """Holds the state that an engine reports of a job, in its ``words``, and the ``node`` of the job.

    ``again`` is false where it is not to be tried once more: somebody cancelled it. ``final`` is true where
    its folder cannot grow any more, so that nothing is to be waited for.
    """

    stage: Stage
    words: str = ""
    again: bool = True
    final: bool = False
    node: str = ""


@dataclass(frozen=True)
class PartJob:
    """Groups of one device that one job measures; its folder has its name, its plan stands beside that.

    ``before`` are the names of jobs of these groups that were lost.
    """

    name: str
    groups: tuple[Group, ...]
    attempt: int = 1
    before: tuple[str, ...] = ()


class Engine(Protocol):
    """What starts commands on other machines."""

    @property
    def folder(self) -> Path:
        """Where the folders of the parts lie."""

    def clear(self) -> None:
        """End what an earlier command left of this run."""

    def start(self, jobs: Sequence[PartJob]) -> Mapping[str, str]:
        """Start ``jobs``, whose plans are written; the names of those that were refused, with why.

        Raises :class:`EngineAwayError`, after which it is asked once more and starts those that are left.
        """

    def look(self) -> Mapping[str, JobState]:
        """Return the state of each job by its name; a job that is left out is unknown.

        Raises :class:`EngineAwayError`.
        """

    def notes(self) -> Sequence[str]:
        """What it has to say of itself since it was last asked."""

    def called(self, job: PartJob) -> str:
        """What people know the job as."""

    def log(self, job: PartJob) -> Path:
        """The file, which need not be there, of what the job itself said."""

    def end(self, jobs: Sequence[PartJob]) -> None:
        """End ``jobs``; returns when they are gone, or a deadline has passed."""


@dataclass
class Watched:
    """A job that runs, or is to: what its folder has told, and since when its state is unknown.

    ``line`` is the last line of the journal that was taken. Reading goes on behind line ``number``, which
    ends at byte ``end``: reading all of it at each look would cost the square of its length. ``versions`` are
    those of the run, and ``differs`` says how its own differ.
    """

    job: PartJob
    folder: PartFolder
    since: float
    left: set[str]
    heard: float = 0.0
    running: float | None = None
    size: int = -1
    line: int = 0
    number: int = 0
    end: int = 0
    started: bool = False
    versions: Versions = field(default_factory=Versions)
    differs: str = ""
    ended: RunState | None = None
    killed: dict[str, Result] = field(default_factory=dict)

    def news(self) -> Iterator[Yield]:
        """What the journal has that it had not before; nothing where it cannot be read yet.

        Rows of processes that were killed are held back until the job has ended well: an engine that ends a
        job kills the process that measures, too, and that is not the last word on its case.
        """
        path = self.folder.journal_path
        try:
            size = path.stat().st_size
        except OSError:
            return
        if size == self.size:
            return
        rows: list[Result] = []
        before = self.end
        try:
            for record, end in read_with_ends(path, self.end, self.number):
                self.number, self.end = record.n, end
                if record.n > self.line:
                    self.line = record.n
                    yield from self._take(record, rows)
            self.size = size
            if before and self.end == before:  # its writer cut it back meanwhile: read from the start
                self.number, self.end, self.size = 0, 0, -1
        except DamagedJournalError as error:
            self.size = size
            yield RunNote(f"{self.job.name}: {error.message}")
        except (TorchgaugeError, OSError):  # a shared folder that does not answer: asked again
            pass
        if self.ended in WELL and self.killed:
            rows += self.killed.values()
            self.left.difference_update(self.killed)
            self.killed = {}
        if rows:
            yield rows

    def _take(self, record: JournalRecord, rows: list[Result]) -> Iterator[Yield]:
        """What a line of the journal is; a row of a case that is left goes to ``rows``."""
        self.ended = record.payload().state if record.kind is Kind.END else None
        if record.kind is Kind.PART:
            self.started = True
        elif record.kind in (Kind.ENVIRONMENT, Kind.CALIBRATION):
            payload = record.payload()
            if record.kind is Kind.ENVIRONMENT and (differs := self.versions.differ(payload)):
                self.differs = differs
            else:
                yield payload
        elif self.differs:
            return  # nothing that it measures is of this run
        elif record.kind is Kind.ATTEMPT and record.case_key in self.left:
            said: EarlierAttempt = record.payload()
            yield Attempted((log_below(said.result, self.job.name),), said.again)
        elif record.kind is Kind.RESULT and record.case_key in self.left:
            result: Result = log_below(record.payload(), self.job.name)
            # A case that SIGTERM ended, or whose environment failed, may be measured by another job.
            terminated = result.exit.startswith(f"signal {signal.SIGTERM.value} ")
            if result.status is Status.INFRA or (result.status is Status.CRASH and terminated):
                self.killed[record.case_key] = result
            else:
                self.left.remove(record.case_key)
                rows.append(result)

    @property
    def left_groups(self) -> tuple[Group, ...]:
        """The groups that have cases without a row, with these alone."""
        return tuple(cut for group in self.job.groups if (cut := group.only(self.left)).cases)


@dataclass
class PartJobs:
    """All jobs of one submission."""

    submission: Submission
    engine: Engine
    options: PartOptions
    jobs: dict[str, Watched] = field(default_factory=dict)
    unsent: list[PartJob] = field(default_factory=list)
    number: int = 0
    due: float = 0.0
    asked: float = 0.0
    away_since: float | None = None
    away_s: float = 0.0
    states: Mapping[str, JobState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.versions = Versions(self.submission.mixed)

    def run(self) -> Iterator[Yield]:
        """Run every group; one row of each case, unless the run is cancelled or its budget spent."""
        self.engine.clear()
        self.asked = self.submission.clock.steady()
        groups = list(self.submission.groups)
        logs = self.submission.folder / "logs"
        self.number = max((int(each.name.removeprefix("part-")) for each in logs.glob("part-*")), default=0)
        try:
            for left in self.left_behind():
                yield from self.told(left)
                groups = [cut for each in groups if (cut := each.only(left.left)).cases]
            shutil.rmtree(self.engine.folder, ignore_errors=True)
            self.engine.folder.mkdir(parents=True)
            yield from self.begin(self.cut(groups))
            yield from self.watch()
            self.engine.end(self.open_jobs)
            yield from map(RunNote, self.engine.notes())
            for watched in list(self.jobs.values()):
                yield from self.told(watched)
        finally:
            self.engine.end(self.open_jobs)
            shutil.rmtree(self.engine.folder, ignore_errors=True)

    @property
    def now(self) -> float:
        """Steady seconds of the jobs' clocks, which stand while the engine does not answer."""
        return self.submission.clock.steady() - self.away_s

    @property
    def open_jobs(self) -> list[PartJob]:
        """Jobs of which nobody knows yet that they ended."""
        return [watched.job for watched in self.jobs.values()]

    def left_behind(self) -> Iterator[Watched]:
        """What jobs of a command that was killed had measured: a resumed run need not do it again."""
        keys = {planned.case.key for group in self.submission.groups for planned in group.cases}
        for path in sorted(self.engine.folder.glob("part-*/")):
            folder = PartFolder(path)
            if folder.journal_path.is_file() and not is_being_written(folder.journal_path):
                job = PartJob(path.name, self.submission.groups)
                yield Watched(job, folder, self.now, keys, versions=self.versions)

    def cut(self, groups: Iterable[Group], attempt: int = 1, before: tuple[str, ...] = ()) -> list[PartJob]:
        """Jobs of ``groups``, in their order, each of one device."""
        found = [
            PartJob(f"part-{number}", chosen, attempt, before)
            for number, chosen in enumerate(cut(groups, self.options.groups_per_job), self.number + 1)
        ]
        self.number += len(found)
        return found

    def begin(self, jobs: Sequence[PartJob]) -> Iterator[Yield]:
        """Start ``jobs``; rows of those that the engine refuses."""
        if not jobs:
            return
        for job in jobs:
            write_part_plan(self.engine.folder, self.submission.plan, job)
            keys = {planned.case.key for group in job.groups for planned in group.cases}
            folder = PartFolder(self.engine.folder / job.name)
            watched = Watched(job, folder, self.now, keys, heard=self.now, versions=self.versions)
            self.jobs[job.name] = watched
        self.unsent += jobs
        self.due = 0.0
        with suppress(EngineAwayError):  # which the next question says
            yield from self.send()

    def send(self) -> Iterator[Yield]:
        """Start the jobs that are not; rows of those that the engine refuses."""
        refused = self.engine.start(self.unsent)
        jobs, self.unsent = self.unsent, []
        for name, why in refused.items():
            yield self.infra(self.jobs.pop(name), f"it was refused: {why}")
        for watched in (self.jobs[job.name] for job in jobs if job.name not in refused):
            watched.since = watched.heard = self.now  # to start it may have taken longer than lost_s
        names = [self.engine.called(each) for each in jobs if each.name not in refused]
        if names:  # one note: each costs as much as a row, and nothing is watched meanwhile
            yield RunNote(f"submitted {names[0]}" + (f" to {names[-1]}" if len(names) > 1 else ""))

    def ask(self) -> Iterator[Yield]:
        """Ask the engine how far jobs are; the time in which it does not answer is on no job's clock."""
        words, clock = "", self.submission.clock
        try:
            self.states = self.engine.look()
            yield from self.send() if self.unsent else ()
        except EngineAwayError as error:
            words = str(error)
            self.states, self.away_s = {}, self.away_s + clock.steady() - self.asked
        if words and self.away_since is None:
            self.away_since = self.asked
            yield RunNote(
                f"{words}; jobs continue, and are given up if it does not respond "
                f"within {self.options.queue_s:g} s"
            )
        elif not words and self.away_since is not None:
            yield RunNote(f"the job engine responds again after {clock.steady() - self.away_since:.0f} s")
            self.away_since = None
        self.asked = clock.steady()
        self.due = self.asked + self.options.poll_s
        if self.away_since is not None and self.asked - self.away_since > self.options.queue_s:
            self.engine.end(self.open_jobs)
            for watched in list(self.jobs.values()):
                yield from self.told(watched)
                self.jobs.pop(watched.job.name)
                yield self.infra(watched, f"{words}, for {self.options.queue_s:g} s")

    def watch(self) -> Iterator[Yield]:
        """What the jobs measure, until none is left, the run is cancelled or its budget is spent."""
        budget, clock = self.submission.plan.settings.budget_s, self.submission.clock
        began, waits = clock.steady(), ""
        while self.jobs and not self.submission.cancelled():
            time.sleep(min(READ_S, self.options.poll_s))
            if clock.steady() >= self.due:
                yield from self.ask()
            yield from map(RunNote, self.engine.notes())
            for watched in list(self.jobs.values()):
                yield from self.looked_at(watched, self.states.get(watched.job.name))
            waiting = {each.words for each in self.states.values() if each.stage is Stage.WAITING}
            if waiting and (said := f"waiting: {'; '.join(sorted(waiting))}") != waits:
                waits = said
                yield RunNote(said)
            if budget is not None and clock.steady() - began > budget:
                yield RunNote(f"the budget is spent: {counted(len(self.jobs), 'job is', 'jobs are')} left")
                yield BudgetSpent()
                return

    def told(self, watched: Watched) -> Iterator[Yield]:
        """The news of a job, with rows that say which attempt they are of; its logs are kept."""
        for item in watched.news():
            watched.heard = self.now
            if isinstance(item, list):
                watched.folder.copy_logs(self.submission.folder / "logs" / watched.job.name)
                yield [self.marked(each, watched.job) for each in item]
            elif isinstance(item, Attempted):
                yield replace(item, rows=tuple(self.marked(each, watched.job) for each in item.rows))
            else:
                yield item

    def marked(self, result: Result, job: PartJob) -> Result:
        """``result`` as one of ``job``."""
        facts = {**dict(result.facts), "job": self.engine.called(job), "attempt": job.attempt}
        before = job.attempt - 1
        attempts = tuple(replace(each, number=before + each.number) for each in result.attempts)
        result = replace(result, attempt=before + result.attempt, attempts=attempts)
        return replace(result, facts=tuple(sorted(facts.items())))

    def placed(self, job: PartJob) -> str:
        """Return the name that the engine shows for ``job``, with its node."""
        state = self.states.get(job.name)
        return self.engine.called(job) + (f" on {state.node}" if state and state.node else "")

    def looked_at(self, watched: Watched, state: JobState | None) -> Iterator[Yield]:
        """Take what the job has measured, and decide whether it has ended or is lost."""
        state = state or JobState(Stage.UNKNOWN, "its state is unknown")
        yield from self.told(watched)
        well = watched.ended in WELL and not watched.differs
        if not well and (over := self.lost(watched, state)):
            self.engine.end([watched.job])
            yield from self.told(watched)  # until it was gone it measured
            if watched.ended not in WELL or watched.differs:
                yield from self.again(watched, *over)
                return
        if watched.ended in WELL:
            watched.folder.copy_logs(self.submission.folder / "logs" / watched.job.name)
            self.jobs.pop(watched.job.name)
            if watched.ended is RunState.OUT_OF_BUDGET:
                yield BudgetSpent()
            elif watched.left:
                yield self.infra(watched, "the job ended without a result for this case")

    def lost(self, watched: Watched, state: JobState) -> tuple[str, bool] | None:
        """Return why the job is lost, and whether another may be started; None if it is not lost."""
        if watched.differs:
            return f"its node has {watched.differs}", True
        if self.away_since is not None:
            return None
        if state.stage is Stage.WAITING:
            watched.heard = self.now
            if self.now - watched.since > self.options.queue_s:
                return f"it waited longer than {self.options.queue_s:g} s: {state.words}", False
        elif state.stage is Stage.RUNNING:
            watched.heard = self.now
            watched.running = self.now if watched.running is None else watched.running
            longest = longest_s(self.submission.plan, watched.job.groups)
            if self.now - watched.running > longest:
                return f"it exceeded the sum of all deadlines of its cases, {longest:g} s", state.again
        elif (
            state.final
            or self.now - watched.heard > self.options.lost_s
            or (state.stage is Stage.ENDED and watched.ended is RunState.INTERRUPTED)
        ):
            log = "" if watched.started else excerpt(self.engine.log(watched.job))
            own = first_line(log[max(0, log.find("error: ")) :])  # behind a traceback, if there is one
            return ": ".join(filter(None, (state.words, own))), state.again
        return None

    def again(self, watched: Watched, words: str, again: bool) -> Iterator[Yield]:
        """Start what a lost job left once more, and end as infrastructure what has cost enough jobs.

        Groups that it cannot have begun are not charged for it.
        """
        self.jobs.pop(watched.job.name)
        left, job = watched.left_groups, watched.job
        may_be_spared = watched.started and again and not watched.differs
        begun = max(1, self.submission.plan.settings.prefetch) if may_be_spared else len(left)
        charged, spared = left[:begun], left[begun:]
        may_again = again and job.attempt < self.options.attempts
        if charged and not may_again:
            yield self.infra(replace(watched, job=replace(job, groups=charged)), words)
        if may_again and watched.killed:
            lost = f"{self.placed(job)} was lost: {words}"
            held = tuple(self.marked(_as_lost(each, lost), job) for each in watched.killed.values())
            yield Attempted(held, Again.INFRASTRUCTURE)
        before = (*job.before, job.name)
        jobs = self.cut(charged, job.attempt + 1, before) if may_again else []
        jobs += self.cut(spared, job.attempt, before)
        if jobs:
            count = sum(len(each.groups) for each in jobs)
            yield RunNote(
                f"{self.placed(job)} was lost: {words}; "
                f"{counted(count, 'group is', 'groups are')} started again"
            )
        yield from self.begin(jobs)

    def infra(self, watched: Watched, words: str) -> list[Result]:
        """Rows of the cases that a job left."""
        name, plan = watched.job.name, self.submission.plan
        to = self.submission.folder / "logs" / name
        watched.folder.copy_logs(to)
        log, context = self.engine.log(watched.job), RowContext()
        if log.is_file():
            shutil.copyfile(log, to / JOB_LOG)
            context = RowContext(log=f"logs/{name}/{JOB_LOG}", log_excerpt=excerpt(log))
        reason = f"{self.placed(watched.job)}: {words}"
        return [
            self.marked(
                row(
                    plan,
                    each,
                    Outcome(each.case.key, Status.INFRA, Phase.START, Cause.LOST_WORKER, reason),
                    context,
                ),
                watched.job,
            )
            for group in watched.left_groups
            for each in group.cases
        ]


def cut(groups: Iterable[Group], size: int) -> list[tuple[Group, ...]]:
    """Return the groups of each job, all of one device: at most ``size``, or one group of checks."""
    jobs: dict[str, list[list[Group]]] = {}
    for group in groups:
        of_device = jobs.setdefault(str(group.device), [])
        if not of_device or len(of_device[-1]) >= size or group.checks or of_device[-1][0].checks:
            of_device.append([])
        of_device[-1].append(group)
    return [tuple(job) for of_device in jobs.values() for job in of_device]


def longest_s(plan: Plan, groups: Iterable[Group]) -> float:
    """Seconds that ``groups`` may take where each case takes all that ``plan`` lets it."""
    deadlines = plan.settings.deadlines
    once = sum(astuple(deadlines))
    limit: float = 2 * once  # calibration at both ends
    for each in groups:
        limit += len(each.cases) * (deadlines.check_s if each.checks else once)
    return limit


def write_part_plan(folder: Path, plan: Plan, job: PartJob) -> None:
    """The plan file of ``job`` in ``folder``: what `torchgauge worker` is given.

    It need not be durable, as a resumed run writes others; devices would wait for a thousand of them.
    """
    text = json.dumps(to_plain(replace(plan, groups=job.groups)), allow_nan=False)
    path = folder / f"{job.name}.json"
    with storage_errors(path):
        path.write_text(text, encoding="utf-8")


def _as_lost(result: Result, words: str) -> Result:
    """Return ``result`` without the crash that the end of its job caused: it is not the model's."""
    if result.status is Status.INFRA:
        return result
    reason = f"{words}; {result.reason}"
    return replace(result, status=Status.INFRA, cause=Cause.KILLED, reason=reason, failure=None)

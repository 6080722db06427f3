"""One device of this machine: its host process, and the jobs that its workers run one after another."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchgauge.devices.declared_variables import variables_of
from torchgauge.devices.device import Device
from torchgauge.harness.events import EventReader
from torchgauge.harness.executors.code_caches import CodeCaches
from torchgauge.harness.executors.executor import BudgetSpent, Remark, Submission, Yield
from torchgauge.harness.executors.pace import Pace
from torchgauge.harness.executors.turns import Member, Pipes, Turns
from torchgauge.harness.fold import Folded, fold, no_device
from torchgauge.harness.host_process import HostOptions, HostProcess
from torchgauge.harness.job import CALIBRATE, CHECKS, FRESH, MEASURE, Job
from torchgauge.harness.metrics import absent
from torchgauge.harness.packages import suspects_in
from torchgauge.harness.rows import RowContext, excerpt, row, unattempted
from torchgauge.harness.staging import tree_for
from torchgauge.harness.watch import TICK_S, Ending, Place, Watcher, default_memory_limit, kernel_oom_kills
from torchgauge.harness.worker_log import WorkerLog
from torchgauge.records import (
    PRETRAINED,
    Calibration,
    Cause,
    DeviceTarget,
    Environment,
    Failure,
    Group,
    Measurement,
    Outcome,
    PlannedCase,
    Result,
    Status,
    from_plain,
    to_json,
)
from torchgauge.records.placement import Placement, placement_of
from torchgauge.registry import load
from torchgauge.results.atomic_file import storage_errors

READY_TIMEOUT_S = 300.0
MAX_HOSTS = 2
"""Hosts kept alive at once: each holds the imported libraries in memory."""
Variables = tuple[tuple[str, str], ...]
"""Environment variables by name, sorted: what tells the hosts of a station apart."""
TORCH_MODULES = (
    "torch",
    "torch._dynamo",
    "torch._inductor.compile_fx",
    "torchgauge.suites.torchvision_schemas:define_missing_schemas",
)
WORKER_MODULES = (
    "torchgauge.harness.worker.group_run",
    "torchgauge.harness.worker.check_run",
    "torchgauge.harness.worker.fresh_process",
    "torchgauge.harness.worker.python_checks",
    "torchgauge.harness.scenarios.inference_steps",
    "torchgauge.harness.scenarios.training_steps",
    "torchgauge.devices.fingerprint",
    "torchgauge.devices.calibrate",
    "torchgauge.harness.worker.entry:warm_up_host",
    "torchgauge.registry:preload",
)
TORCH_WORKER_MODULES = ("torchgauge.harness.worker.torch_checks", "torch.utils.flop_counter")
"""What every worker of a device imports: imported once, in the host, where workers are forked."""


@dataclass
class Station:
    """One device of this machine with its host processes.

    Where ``turns`` is given, other stations of this run work beside this one: it does what takes time on the
    machine's cores between the turns of their workers, and its own workers take turns.

    No group but the first is started that would probably end after ``until`` (steady seconds), as ``pace``
    judges: a run with any budget gets on, and so does each of its resumptions.
    """

    submission: Submission
    target: DeviceTarget
    work: Path
    groups: list[Group]
    until: float | None = None
    turns: Turns | None = None
    pace: Pace = field(default_factory=lambda: Pace({}))
    hosts: dict[Variables, HostProcess] = field(default_factory=dict)
    environment_id: str = ""
    jobs: int = 0
    oom_kills: int = field(default_factory=kernel_oom_kills)
    remarks: list[str] = field(default_factory=list)
    absent: Failure | None = None
    dead: set[Variables] = field(default_factory=set)
    caches: CodeCaches | None = None
    shared: Path | None = None
    """Where the copy of the package for a foreign interpreter lies; None: in ``work``."""

    def __post_init__(self) -> None:
        self.code = self.caches or CodeCaches(self.submission.plan, self.work / "purse")

    @property
    def device(self) -> Device:
        """The descriptor of the device under test."""
        return self.submission.devices[self.target.name]

    def run(self) -> Iterator[Yield]:
        """Run every group for which there is time; what is to be kept, in lists that belong together."""
        try:
            runnable = [group for group in self.groups if any(p.declined is None for p in group.cases)]
            if runnable:
                yield from self.calibrate("start")
            left = list(self.groups)
            while left and not self.submission.cancelled():
                number = self.pace.next_to_start(left, self.seconds_left())
                if number is None:
                    yield from budget_spent(self.target, len(left))
                    break
                yield self.run_group(left.pop(number))
                yield from self.said()
            measures = any(not group.checks for group in runnable)
            if measures and self.absent is None and not self.submission.cancelled():
                yield from self.calibrate("end")
        finally:
            self.close()

    def seconds_left(self) -> float | None:
        """Seconds until no group may be under way any more; None where there is no deadline."""
        if self.until is None:
            return None
        return self.until - self.submission.clock.steady() - self.pace.closing_s

    def said(self) -> Iterator[Yield]:
        """What was remarked since this was last asked."""
        while self.remarks:
            yield Remark(self.remarks.pop(0))

    # --- host --------------------------------------------------------------------------------

    def try_open(self) -> None:
        """Start the host that most groups need; where it does not come up, the first worker says so."""
        with suppress(_HostLostError):
            self.open(self.variables(next(g for g in self.groups if g.cases)))

    def open(self, variables: Variables) -> HostProcess:
        """The host whose workers have ``variables``.

        One that dies of its imports is started anew without them: a worker may die of them.
        """
        if variables in self.hosts:
            self.hosts[variables] = self.hosts.pop(variables)  # the last one used stands last
            return self.hosts[variables]
        if variables in self.dead:  # it did not come up before: do not wait again for every case
            raise _HostLostError
        while len(self.hosts) >= MAX_HOSTS:
            self.hosts.pop(next(iter(self.hosts))).close()
        options = self.options(variables)
        host = self.start(options)
        if host is None and options.warm and not self.submission.cancelled():
            host = self.start(replace(options, warm=False))
        if host is None:
            if not self.submission.cancelled():
                self.remarks.append(f"the host of {self.target} did not come up; see logs/host.log")
                self.dead.add(variables)
            raise _HostLostError
        self.hosts[variables] = host
        return host

    def options(self, variables: Variables) -> HostOptions:
        """What the host imports, and whether its workers may be forked."""
        suites = {group.workload.suite for group in self.submission.groups}
        torch = self.device.torch_type is not None
        preload = list(TORCH_MODULES) if torch else []
        if torch:
            preload += [m for name in sorted(suites) for m in self.submission.suites[name].preload]
        if torch and any(p.case.configuration.backend == "inductor" for g in self.groups for p in g.cases):
            preload.append("torchgauge.harness.worker.compilation:prepare_machine")
        preload += [*WORKER_MODULES, *(TORCH_WORKER_MODULES if torch else ())]
        preload.append(self.device.session.partition(":")[0])
        preload += sorted({self.submission.suites[name].builder.partition(":")[0] for name in suites})
        environment = dict(self.device.environment(()))
        for name in sorted(suites):
            environment.update(self.submission.suites[name].environment)
        if any(group.workload.weights == PRETRAINED for group in self.submission.groups):
            environment["HF_HUB_OFFLINE"] = os.environ.get("HF_HUB_OFFLINE", "0")
        environment.update(variables)
        return HostOptions(
            python=self.submission.python,
            environment=tuple(sorted(environment.items())),
            preload=tuple(preload),
            warm=self.device.fork_safe,
            tree=tree_for(self.submission.python, self.shared or self.work),
            passes=variables_of(self.device),
        )

    def start(self, options: HostOptions) -> HostProcess | None:
        """A host that is ready; None where it did not come up."""
        host = HostProcess(options, self.submission.folder / "logs" / "host.log", self.submission.clock)
        place = (
            None if self.turns is None else Beside(self.turns, Member(host.pid, self.submission.clock, True))
        )
        try:
            ready = self.wait_for(host)
        finally:
            if place is not None:
                place.leave()
        if not ready:
            if options.warm and not self.submission.cancelled():
                self.remarks.append(
                    f"the host of {self.target} {host.fate()}, see logs/host.log; "
                    "every worker is a fresh process"
                )
            host.close()
            return None
        self.remarks += [f"host of {self.target}: {note}" for note in ready["notes"]]
        return host

    def wait_for(self, host: HostProcess) -> dict[str, Any] | None:
        """The first reply of ``host``; nothing where it is gone, too late or no longer wanted."""
        deadline = self.submission.clock.steady() + READY_TIMEOUT_S
        while not self.submission.cancelled() and self.submission.clock.steady() < deadline:
            reply = host.receive(TICK_S)
            if reply is None or reply:
                return reply
        return None

    def close(self) -> None:
        """End the hosts, and leave kept caches that are ours alone to other runs."""
        if self.caches is None:
            self.code.close()
        for host in self.hosts.values():
            host.close()
        self.hosts.clear()

    def process(self, job: Job, log: Path, group: Group | None = None) -> Ending:
        """Run one worker process from start to end."""
        self.jobs += 1
        files = [self.work / f"{self.jobs}.{name}" for name in ("job", "events", "cursor", "log")]
        job = replace(job, events=str(files[1]), cursor=str(files[2]))
        settings = self.submission.plan.settings
        variables = self.variables(job.group)
        try:
            host = self.open(variables)
        except _HostLostError:
            if self.submission.cancelled():
                return Ending(killed="cancelled", limit="interrupted")
            return Ending(lost=True)
        watcher = Watcher(
            host,
            settings,
            settings.memory_limit_bytes or default_memory_limit(),
            self.submission.clock,
            self.submission.cancelled,
            lambda event: self.submission.on_event(group, event) if group else None,
        )
        with self.place(host, job) as (job, watcher.place):
            with storage_errors(files[0]):
                files[0].write_text(to_json(job), encoding="utf-8")
            host.send(cmd="run", job=str(files[0]), log=str(files[3]), log_limit=settings.log_limit_bytes)
            ending = watcher.follow(EventReader(files[1], files[2]), WorkerLog(files[3], log))
        if ending.lost:
            self.hosts.pop(variables).close()
        for file in files:
            file.unlink(missing_ok=True)
        return ending

    @contextmanager
    def place(self, host: HostProcess, job: Job) -> Iterator[tuple[Job, Place]]:
        """``job`` and its worker's place among those of the other stations, until the worker has ended."""
        if self.turns is None:
            yield job, Place()
            return
        with storage_errors(self.work):
            pipes = Pipes.make(self.work / f"{self.jobs}")
        host.wake_on(pipes.asks)
        self.turns.wait_for_quiet(self.submission.cancelled)
        place = Beside(self.turns, Member(host.pid, self.submission.clock, grant=pipes.grant))
        try:
            yield replace(job, turn=pipes.path), place
        finally:
            place.leave()
            host.sleep_through(pipes.asks)
            pipes.close()
            self.turns.wait_for_quiet(self.submission.cancelled)

    def variables(self, group: Group | None) -> Variables:
        """The environment variables that the cases of ``group`` ask for beside those of all suites."""
        return () if group is None else group.cases[0].case.configuration.env

    def job(self, kind: str, **more: object) -> Job:
        """A job of this device, with the paths still open."""
        base = Job(
            kind=kind,
            device=self.target,
            session=self.device.session,
            settings=self.submission.plan.settings,
            events="",
            cursor="",
            runs_torch=self.device.torch_type is not None,
        )
        return replace(base, **more)  # type: ignore[arg-type]

    def kernel_killed(self) -> bool:
        """Whether the kernel has killed for memory since this was last asked (or since the start)."""
        before, self.oom_kills = self.oom_kills, kernel_oom_kills()
        return self.oom_kills > before

    # --- jobs --------------------------------------------------------------------------------

    def calibrate(self, at: str) -> Iterator[Yield]:
        """Environment and calibration of the machine, from a worker of their own."""
        name = f"calibrate-{_slug(str(self.target))}-{at}.log"
        settings = self.submission.plan.settings
        if all(group.checks for group in self.groups):  # nothing is timed: who it is will do
            settings = replace(settings, calibrate=False)
        job = self.job(CALIBRATE, at=at, settings=settings)
        ending = self.process(job, self.submission.folder / "logs" / name)
        yield from self.said()
        for event in ending.events:
            if event["ev"] == "no_device" and at == "start":
                self.absent = from_plain(Failure, event["failure"])
            if event["ev"] == "environment":
                environment = from_plain(Environment, event["environment"])
                notes = (*environment.notes, *event["notes"])
                environment = replace(environment, notes=notes)
                self.environment_id = self.environment_id or environment.id
                if at == "start":
                    yield environment
                    remark = self.code.open(environment, self.submission.clock.now())
                    if remark:
                        yield Remark(remark)
            if event["ev"] == "calibration":
                yield from_plain(Calibration, event["calibration"])
        known = any(event["ev"] == "environment" for event in ending.events)
        if not known and ending.killed != "cancelled":
            yield Remark(f"calibration of {self.target} at the {at} failed; see logs/{name}")

    def run_group(self, group: Group) -> list[Result]:
        """Run one group to its end; rows of all its cases, fewer where the run was cancelled."""
        began = self.submission.clock.steady()
        try:
            return self.rows_of(group)
        finally:
            self.pace.learn(group, self.submission.clock.steady() - began)

    def rows_of(self, group: Group) -> list[Result]:
        """The rows of all cases of ``group``, from as many processes as that takes."""
        plan = self.submission.plan
        rows = [
            unattempted(plan, p, why.status, why.cause, why.reason)
            for p in group.cases
            if (why := p.declined) is not None
        ]
        parts: dict[Placement, list[PlannedCase]] = {}
        for planned in group.cases:
            if planned.declined is None:
                parts.setdefault(placement_of(planned.case.configuration), []).append(planned)
        if self.absent is not None:  # it was not there at the start: no need to ask for every group
            return rows + [self.no_device_row(p, self.absent) for cases in parts.values() for p in cases]
        for cases in parts.values():
            rows += self.run_part(group, cases)
        return rows

    def no_device_row(self, planned: PlannedCase, failure: Failure) -> Result:
        """The row of a case whose device could not be opened when the run began."""
        outcome = no_device(planned.case.key, failure)
        return row(self.submission.plan, planned, outcome, RowContext(environment_id=self.environment_id))

    def run_part(self, group: Group, pending: list[PlannedCase]) -> list[Result]:
        """Run cases of ``group`` that can share a process."""
        plan, clock = self.submission.plan, self.submission.clock
        rows: list[Result] = []
        found: list[tuple[PlannedCase, Outcome, RowContext]] = []
        caches: dict[str, Path] = {}
        attempt = 0
        while pending and not self.submission.cancelled():
            attempt += 1
            started, cases = clock.now(), pending
            name = f"{_slug(cases[0].case.id)}-{group.id[:8]}-{cases[0].case.key[:4]}-{attempt}.log"
            log = self.submission.folder / "logs" / name
            cache = self.work / f"cache-{group.id}-{self.jobs}"
            caches.update({planned.case.key: cache for planned in cases})
            kind = CHECKS if group.checks else MEASURE
            job = self.group_job(kind, replace(group, cases=tuple(cases)), cache)
            ending = self.process(replace(job, **self.code.of_group(group)), log, group)
            folded = fold(cases, ending, self.kernel_killed)
            self.code.take_back(cases, folded, group)
            found += self.contexts(cases, folded, ending, started, log)
            pending = folded.again
        for planned, outcome, context in found:
            outcome = self.code.said(outcome)  # noqa: PLW2901
            if outcome.status is Status.NOT_RUN and outcome.cause is Cause.CANCELLED:
                continue
            if outcome.status is Status.PASS and not group.checks:
                more = self.run_afresh(group, planned, caches[planned.case.key], self.code.of_fresh(outcome))
                outcome = replace(outcome, measurements=(*outcome.measurements, *more))  # noqa: PLW2901
            rows.append(row(plan, planned, outcome, context))
        for folder in set(caches.values()):
            self.code.keep([(p, o) for p, o, _ in found if caches[p.case.key] == folder], folder)
            shutil.rmtree(folder, ignore_errors=True)
        return rows

    def contexts(
        self, cases: list[PlannedCase], folded: Folded, ending: Ending, started: float, log: Path
    ) -> list[tuple[PlannedCase, Outcome, RowContext]]:
        """Each finished case of one process with what its row shares with the others.

        What went wrong after the last result belongs to the last case that wrote one.
        """
        done = [p for p in cases if p.case.key in folded.outcomes]
        text = excerpt(log)
        shared = RowContext(
            environment_id=self.environment_id,
            started_at=started,
            duration_s=ending.duration_s / max(1, len(done)),
            exit=folded.exit,
            log=str(log.relative_to(self.submission.folder)),
            log_excerpt=text,
        )
        last = folded.charged or (done[-1].case.key if done else "")
        return [
            (
                planned,
                folded.outcomes[planned.case.key],
                replace(shared, teardown=folded.teardown) if planned.case.key == last else shared,
            )
            for planned in done
        ]

    def group_job(self, kind: str, group: Group, cache: Path) -> Job:
        """A job that builds the model of ``group``."""
        suite = self.submission.suites[group.workload.suite]
        return self.job(
            kind,
            group=group,
            cache=str(cache),
            builder=suite.builder,
            scenario="" if group.checks else load("torchgauge.scenarios", group.workload.mode).implementation,
            install_hint=suite.install_hint,
            suspects=suspects_in(self.submission.python),
            preload=suite.preload,
        )

    def run_afresh(
        self, group: Group, planned: PlannedCase, cache: Path, code: dict[str, Any]
    ) -> list[Measurement]:
        """Warm compilation and peak memory of one case, from a process of its own."""
        settings, compiled = self.submission.plan.settings, planned.case.configuration.compiled
        wanted = ["compile_warm"] if compiled and settings.warm_compile else []
        wanted += ["peak_memory"] if settings.memory_probe else []
        switched_off = (
            [absent("compile_warm", "switched off")] if compiled and not settings.warm_compile else []
        )
        if not wanted:
            return switched_off
        if self.submission.cancelled():
            return switched_off + [absent(name, "interrupted before its fresh process") for name in wanted]
        log = self.submission.folder / "logs" / f"{_slug(planned.case.id)}-{group.id[:8]}-fresh.log"
        job = replace(self.group_job(FRESH, replace(group, cases=(planned,)), cache), **code)
        ending = self.process(job, log, group)
        for event in ending.events:
            if event["ev"] == "fresh":
                return switched_off + [from_plain(Measurement, each) for each in event["measurements"]]
        how = fold([planned], ending, self.kernel_killed).outcomes[planned.case.key].reason
        return switched_off + [absent(name, f"its fresh process failed: {how}") for name in wanted]


def budget_spent(target: DeviceTarget, left: int) -> tuple[Remark, BudgetSpent]:
    """What is said where the time of ``target`` is over and ``left`` groups were not started."""
    return Remark(f"the budget of {target} is spent: {left} groups are left"), BudgetSpent()


class Beside(Place):
    """A worker's place where others run beside it: it is a member of their turns until it leaves."""

    def __init__(self, turns: Turns, member: Member) -> None:
        self._turns, self._member = turns, member
        turns.join(member)

    @property
    def idle(self) -> bool:
        """Whether the worker stands still or waits now."""
        return self._member.idle

    @property
    def idle_s(self) -> float:
        """Seconds in which it stood still or waited."""
        return self._member.idle_s

    def started(self) -> None:
        """The worker's process is there: stop it where another one times."""
        self._turns.look_again(self._member)

    def turn(self, *, wanted: bool) -> None:
        """The worker wants to time, or has timed."""
        (self._turns.want if wanted else self._turns.give_back)(self._member)

    def leave(self) -> None:
        """The worker has ended."""
        self._turns.leave(self._member)


class _HostLostError(Exception):
    """The host did not come up."""


def _slug(text: str) -> str:
    kept = "".join(c if c.isalnum() or c in "._-" else "-" for c in text)
    return kept[:80]

"""From a group to the rows of its cases, in as many workers as that takes."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchgauge.harness.backends.backend import compiler_of
from torchgauge.harness.executors.executor import RunNote, Submission, Yield
from torchgauge.harness.job import CALIBRATE, CHECKS, FRESH, MEASURE, Job
from torchgauge.harness.pool.code_caches import CodeCaches
from torchgauge.harness.pool.derived_status import DerivedStatuses, derive_statuses, no_device
from torchgauge.harness.pool.device_health import DeviceHealth
from torchgauge.harness.pool.found_afresh import FoundAfresh
from torchgauge.harness.pool.pace import Pace
from torchgauge.harness.pool.rank_run import RankEnding, derive_rank_status, run_ranks
from torchgauge.harness.pool.timing_lock import TimingLock
from torchgauge.harness.pool.watch import Ending, OomKills
from torchgauge.harness.pool.worker_host import WorkerHost
from torchgauge.harness.pool.worker_setup import Variables, WorkerSetup, environment_in, variables_of
from torchgauge.harness.run.rows import RowContext, excerpt, row, unattempted
from torchgauge.records import (
    Calibration,
    Cause,
    Failure,
    Group,
    Outcome,
    PlannedCase,
    Result,
    Status,
    absent,
    from_plain,
)
from torchgauge.records.attempt import MEASURED_ON
from torchgauge.records.placement import Placement, placement_of
from torchgauge.suites.model_code import code_of
from torchgauge.suites.suite import HOST

MAX_HOSTS = 2
"""Hosts kept alive at once: each holds the imported libraries in memory."""


@dataclass
class GroupRunner:
    """The hosts of one device, with the workers that they start one after another.

    Where ``lock`` is given, others of this run work beside it: its workers and theirs time one at a time.
    """

    setup: WorkerSetup
    pace: Pace
    code: CodeCaches
    health: DeviceHealth
    lock: TimingLock | None = None
    hosts: dict[Variables, WorkerHost] = field(default_factory=dict)
    environment_id: str = ""
    absent: Failure | None = None
    notes: list[str] = field(default_factory=list)
    oom_kills: OomKills = field(default_factory=OomKills)

    @property
    def submission(self) -> Submission:
        """What the executor was given."""
        return self.setup.submission

    def said(self) -> Iterator[RunNote]:
        """What was remarked since this was last asked."""
        while self.notes:
            yield RunNote(self.notes.pop(0))

    def host(self, variables: Variables) -> WorkerHost:
        """The host whose workers have ``variables``; one that was not used for long may end."""
        host = self.hosts.pop(variables, None)
        if host is None:
            options, name = self.setup.host_options(variables), str(self.setup.target)
            host = WorkerHost(self.submission, self.setup.work, name, options, self.lock, self.notes)
        running = [each for each in self.hosts.values() if each.runs]
        for idle in running[: max(0, len(running) + 1 - MAX_HOSTS)]:
            idle.close()
        self.hosts[variables] = host  # the last one used stands last
        return host

    def close(self) -> None:
        """End the hosts."""
        for host in self.hosts.values():
            host.close()

    def calibrate(self, at: str) -> Iterator[Yield]:
        """Environment and calibration of the machine, from a worker of their own."""
        name = f"calibrate-{_slug(str(self.setup.target))}-{at}.log"
        settings = self.submission.plan.settings
        if self.setup.brief or all(
            group.checks for group in self.setup.groups
        ):  # nothing is timed: who it is will do
            settings = replace(settings, calibrate=False)
        job = self.setup.job(CALIBRATE, at=at, settings=settings)
        ending = self.process(job, self.submission.folder / "logs" / name)
        yield from self.said()
        environment = environment_in(ending.events)
        if environment is not None:
            self.environment_id = self.environment_id or environment.id
            if at == "start":
                yield environment
                note = self.code.open(environment, self.submission.clock.now())
                if note:
                    yield RunNote(note)
        elif ending.killed != "cancelled":
            yield RunNote(f"calibration of {self.setup.target} at the {at} failed; see logs/{name}")
        for event in ending.events:
            if event["ev"] == "no_device" and at == "start":
                self.absent = from_plain(Failure, event["failure"])
            if event["ev"] == "calibration":
                yield from_plain(Calibration, event["calibration"])

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
        parts: dict[tuple[Placement, str], list[PlannedCase]] = {}
        for planned in group.cases:
            if planned.declined is None:
                alone = planned.case.key if group.workload.processes > 1 else ""
                parts.setdefault((placement_of(planned.case.configuration), alone), []).append(planned)
        if self.absent is not None:  # it was not there at the start: no need to ask for every group
            return rows + [self.no_device_row(p, self.absent) for cases in parts.values() for p in cases]
        for cases in parts.values():
            rows += self.run_part(group, cases)
        return rows

    def process(self, job: Job, log: Path, group: Group | None = None) -> Ending:
        """Run one worker process from start to end; its job holds a part of ``group``, or all of it."""
        host = self.host(variables_of(job.group))
        ending = host.run(job, log, lambda event: self.submission.on_event(group, event) if group else None)
        if ending.lost and ending.killed:
            self.health.look_for_strays()
        return ending

    def processes(self, job: Job, log: Path, group: Group) -> list[RankEnding]:
        """Run the worker processes of one group that step together, each in a host of its own."""
        submission, count, target = self.submission, group.workload.processes, self.setup.target
        options = self.setup.host_options(variables_of(job.group))
        return run_ranks(
            [
                WorkerHost(submission, self.setup.work, str(target), options, notes=self.notes)
                for _ in range(count)
            ],
            replace(job, rendezvous=str(self.setup.work / f"meet-{secrets.token_hex(8)}")),
            log,
            lambda event: submission.on_event(group, event),
            shared=self.setup.device.torch_type == HOST,
        )

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
        code_facts = code_of(self.submission.suites[group.workload.suite], group)
        while pending and not self.submission.cancelled():
            attempt += 1
            started, cases = clock.now(), pending
            name = f"{_slug(cases[0].case.id)}-{group.id[:8]}-{cases[0].case.key[:4]}-{attempt}.log"
            log = self.submission.folder / "logs" / name
            cache = self.setup.work / f"cache-{secrets.token_hex(8)}"  # no earlier model can fill it
            caches.update({planned.case.key: cache for planned in cases})
            kind = CHECKS if group.checks else MEASURE
            job = self.setup.group_job(kind, replace(group, cases=tuple(cases)), cache)
            job = replace(job, **self.code.of_group(group))
            if group.workload.processes > 1:
                derived, rank = derive_rank_status(
                    cases[0], self.processes(job, log, group), self.oom_kills.more
                )
                ending, log = rank.ending, rank.log
            else:
                ending = self.process(job, log, group)
                derived = derive_statuses(cases, ending, self.oom_kills.more)
            self.code.take_back(cases, derived, group)
            found += self.contexts(cases, derived, ending, started, log)
            pending = derived.again
        for planned, outcome, context in found:
            outcome = self.placed(self.code.said(outcome), planned, code_facts)  # noqa: PLW2901
            if outcome.status is Status.NOT_RUN and outcome.cause is Cause.CANCELLED:
                continue
            if outcome.status is Status.PASS and not group.checks:
                code = self.code.of_fresh(outcome)
                found_afresh = self.run_afresh(group, planned, caches[planned.case.key], code)
                outcome = found_afresh.added_to(outcome)  # noqa: PLW2901
            rows.append(row(plan, planned, outcome, context))
        for folder in set(caches.values()):
            self.code.keep([(p, o) for p, o, _ in found if caches[p.case.key] == folder], folder)
            shutil.rmtree(folder, ignore_errors=True)
        return rows

    def placed(self, outcome: Outcome, planned: PlannedCase, code: Mapping[str, str]) -> Outcome:
        """Return ``outcome`` with the facts of the ``code``, and of a device that is not that of its case."""
        facts = {**dict(outcome.facts), **code}
        if planned.case.device != self.setup.target:
            facts[MEASURED_ON] = str(self.setup.target)
        return replace(outcome, facts=tuple(sorted(facts.items())))

    def contexts(
        self, cases: list[PlannedCase], derived: DerivedStatuses, ending: Ending, started: float, log: Path
    ) -> list[tuple[PlannedCase, Outcome, RowContext]]:
        """Each finished case of one process with what its row shares with the others.

        What went wrong after the last result belongs to the last case that wrote one.
        """
        done = [p for p in cases if p.case.key in derived.outcomes]
        text = excerpt(log)
        shared = RowContext(
            environment_id=self.environment_id,
            started_at=started,
            duration_s=ending.duration_s / max(1, len(done)),
            exit=derived.exit,
            log=str(log.relative_to(self.submission.folder)),
            log_excerpt=text,
        )
        last = derived.charged or (done[-1].case.key if done else "")
        return [
            (
                planned,
                derived.outcomes[planned.case.key],
                replace(shared, teardown=derived.teardown) if planned.case.key == last else shared,
            )
            for planned in done
        ]

    def run_afresh(
        self, group: Group, planned: PlannedCase, cache: Path, code: dict[str, Any]
    ) -> FoundAfresh:
        """Warm compilation and peak memory of one case, from a process of its own."""
        settings, compiled = self.submission.plan.settings, compiler_of(planned.case.configuration)
        wanted = ["compile_warm"] if compiled and settings.warm_compile else []
        wanted += ["peak_memory"] if settings.memory_probe else []
        switched_off = (
            [absent("compile_warm", "switched off")] if compiled and not settings.warm_compile else []
        )
        if not wanted:
            return FoundAfresh(switched_off)
        if group.workload.processes > 1:
            return FoundAfresh.nothing(switched_off, wanted, "not measured for models of several processes")
        if self.submission.cancelled():
            return FoundAfresh.nothing(switched_off, wanted, "interrupted before the fresh process started")
        log = self.submission.folder / "logs" / f"{_slug(planned.case.id)}-{group.id[:8]}-fresh.log"
        job = replace(self.setup.group_job(FRESH, replace(group, cases=(planned,)), cache), **code)
        ending = self.process(job, log, group)
        for event in ending.events:
            if event["ev"] == "fresh":
                return FoundAfresh.of(switched_off, event)
        how = derive_statuses([planned], ending, self.oom_kills.more).outcomes[planned.case.key].reason
        return FoundAfresh.nothing(switched_off, wanted, f"the fresh process failed: {how}")


def _slug(text: str) -> str:
    kept = "".join(c if c.isalnum() or c in "._-" else "-" for c in text)
    return kept[:80]

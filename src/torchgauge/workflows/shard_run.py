"""One job of a campaign: exactly the cases of its shard, through the harness, and the result set at the end.

A job that ran anything submits what it has, whatever ended it: that is worth more than its exit code.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchgauge.devices.device import Device
from torchgauge.devices.discover import parse_target
from torchgauge.errors import NothingSelectedError, TorchgaugeError, UsageError
from torchgauge.harness.executors.executor import executor_options, is_elsewhere, require_devices
from torchgauge.harness.interpreter.foreign_plugins import refuse, suites_of
from torchgauge.harness.interpreter.interpreter import interpreter
from torchgauge.harness.planning.configurations import configuration
from torchgauge.harness.planning.order import ordered
from torchgauge.harness.planning.plan import (
    check_groups,
    checks_together,
    make_group,
    named_workload,
    planned_check,
)
from torchgauge.harness.planning.plan_inputs import gather
from torchgauge.harness.planning.refusals import missing_suite
from torchgauge.harness.planning.selection import CaseName, parse_case_id
from torchgauge.harness.run.campaigns import find_devices, placed, plan_of
from torchgauge.harness.run.progress import Progress
from torchgauge.harness.run.run_report import RunReport
from torchgauge.harness.run.runner import Campaign
from torchgauge.records import Group, PlannedCase, Provenance, RunSettings
from torchgauge.results.store import RunFolder, Store
from torchgauge.suites.check import CHECK
from torchgauge.suites.own.library import word_of_case
from torchgauge.suites.suite import Suite
from torchgauge.workflows.campaign import terms_of
from torchgauge.workflows.result_set import Job, Manifest, pack

DEADLINE_MARGIN = 0.1
"""The part of a job's time that is kept for stopping, packing and the upload."""
LEAST_MARGIN_S = 5.0


@dataclass(frozen=True)
class ShardReport:
    """How a job went: its manifest, the counts of its run (None where an error ended it) and that error."""

    manifest: Manifest
    run: RunReport | None
    trouble: str = ""


def shard_campaign(
    job: Job,
    settings: RunSettings,
    provenance: tuple[Provenance, ...] = (),
    *,
    store: str,
    progress: Progress,
    python: str | None = None,
    executor: str = "local",
    executor_words: Mapping[str, str] | None = None,
) -> Campaign:
    """The harness's campaign of the cases in the shard of ``job``, no more and no fewer.

    Raises :class:`UsageError` for a case whose suite, model, configuration or device this installation does
    not know, and for one that is on another device than the pool's; and what :func:`executor_options` and
    :func:`require_devices` raise.
    """
    options = executor_options(executor, executor_words or {})
    elsewhere = is_elsewhere(executor)
    if not job.shard.cases:
        raise NothingSelectedError(f"{job.artifact}: the shard has no cases", hint="torchgauge ci plan")
    names = [_case_of(job, text) for text in job.shard.cases]
    there = interpreter(python)
    suites = suites_of(there, list(dict.fromkeys(word_of_case(name.suite, name.model) for name in names)))
    devices = find_devices([name.device for name in names], there)
    made = _groups(names, devices, suites, settings.configuration_file, elsewhere)
    groups = refuse(there, made, devices)
    _check_exact(job, groups)
    if elsewhere:
        require_devices(executor, options, groups)
    known = gather(groups, suites, durations=None, store=store)
    in_order, schedule = ordered(groups, known, settings.budget_s)
    plan = plan_of(in_order, settings, suites.values(), f"{job.shard.index}/{job.shard.of}", provenance)
    plan = replace(placed(plan, there), schedule=schedule)
    where = Store.open(store, create=True)
    return Campaign(plan, where, devices, suites, progress, there.path, executor, options=options)


def run_shard(campaign: Campaign, job: Job, out: Path, deadline_s: float | None = None) -> ShardReport:
    """Run ``campaign`` and write its result set to ``out``, also of a run that did not reach its end.

    After ``deadline_s`` seconds, less a margin, the run is stopped as Ctrl-C would stop it. Raises what the
    run raised where not even its journal was begun.
    """
    if out.exists():
        raise UsageError(f"{out} exists", hint="pass a new folder: a result set is not overwritten")
    report, trouble = None, ""
    try:
        with _stopped_in_time(deadline_s):
            report = campaign.run()
    except (TorchgaugeError, KeyboardInterrupt) as error:
        if not _begun(campaign):
            raise
        trouble = str(error) or "interrupted"
    with _signals(signal.SIG_IGN):  # a cancelled job gets some more seconds: they are for this
        return ShardReport(pack(campaign.store.run(campaign.plan.run_id), job, out), report, trouble)


def time_left(deadline_s: float) -> float:
    """Seconds that a run may take in a job that is killed in ``deadline_s`` seconds."""
    return max(deadline_s - max(LEAST_MARGIN_S, DEADLINE_MARGIN * deadline_s), deadline_s / 2)


def _case_of(job: Job, text: str) -> CaseName:
    name = parse_case_id(text)
    if parse_target(name.device).name != job.pool.device:
        raise UsageError(
            f"case {text} requires device {name.device}, but pool {job.pool.name!r} has {job.pool.device}",
            hint="plan the campaign again: torchgauge ci plan",
        )
    return name


def _groups(
    names: Sequence[CaseName],
    devices: Mapping[str, Device],
    suites: Mapping[str, Suite],
    file: str | None,
    elsewhere: bool,
) -> list[Group]:
    """The groups of ``names``: configurations of a workload share theirs, checks of a suite share some."""
    workloads: dict[CaseName, list[str]] = {}
    for name in names:
        workloads.setdefault(replace(name, configuration=""), []).append(name.configuration)
    groups: list[Group] = []
    checks: dict[tuple[str, str], list[PlannedCase]] = {}
    for name, wanted in workloads.items():
        suite, target = suites[name.suite], parse_target(name.device)
        missing, device = missing_suite(suite), devices[target.name]
        workload, entry = named_workload(name, suite)
        if entry.framework == CHECK:
            declined = missing or entry.declined_in(workload.mode)
            planned = planned_check(workload, target, device, missing=declined)
            checks.setdefault((name.suite, str(target)), []).append(planned)
            continue
        configurations = [configuration(each, file) for each in wanted]
        groups.append(make_group(workload, entry, configurations, target, device, missing=missing))
    for (suite_name, _), cases in checks.items():
        groups += check_groups(cases, checks_together(suites[suite_name], elsewhere))
    return groups


def _check_exact(job: Job, groups: Sequence[Group]) -> None:
    """Raise where the groups are not the cases that were asked for, whose ids may be from another version."""
    hint = "run the job with the torchgauge version that planned the campaign"
    made = {planned.case.id: planned for group in groups for planned in group.cases}
    other = made.keys() ^ set(job.shard.cases)
    if other:
        raise UsageError(
            f"{job.artifact}: this torchgauge makes other cases than the campaign contains: "
            f"{len(other)} differ, for example {min(other)}",
            hint=hint,
        )
    if terms_of(made) != job.shard.terms:
        raise UsageError(
            f"{job.artifact}: cases, tolerances or models of this torchgauge differ from the campaign's",
            hint=hint,
        )


def _begun(campaign: Campaign) -> bool:
    folder = RunFolder(campaign.store.path / "runs" / campaign.plan.run_id)
    return folder.plan_path.is_file() and folder.journal_path.is_file()


@contextmanager
def _stopped_in_time(deadline_s: float | None) -> Iterator[None]:
    """Send this process the signal of a cancelled job when its time is nearly over."""
    if deadline_s is None:
        with _signals(signal.default_int_handler):
            yield
        return
    timer = threading.Timer(time_left(deadline_s), os.kill, (os.getpid(), signal.SIGTERM))
    timer.daemon = True
    with _signals(signal.default_int_handler):  # until the run listens itself
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


@contextmanager
def _signals(handler: Any) -> Iterator[None]:
    """Meet Ctrl-C and the signal of a cancelled job with ``handler``, in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)

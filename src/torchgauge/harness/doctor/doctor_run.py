"""A run of the full calibration of one device, each number compared with the device's history."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchgauge.devices.calibration_conditions import Conditions, ConditionWatch
from torchgauge.devices.discover import parse_target
from torchgauge.errors import InfrastructureError
from torchgauge.harness.executors.executor import Yield
from torchgauge.harness.interpreter.foreign_plugins import refuse
from torchgauge.harness.interpreter.interpreter import interpreter
from torchgauge.harness.planning.plan import check_groups, select_groups
from torchgauge.harness.planning.selection import Selection
from torchgauge.harness.run.campaigns import find_devices, placed, plan_of
from torchgauge.harness.run.defaults import check_settings
from torchgauge.harness.run.progress import Progress
from torchgauge.harness.run.rows import unattempted
from torchgauge.harness.run.runner import Campaign
from torchgauge.records import (
    Cause,
    Environment,
    Group,
    Status,
    Summary,
)
from torchgauge.results.calibration_history import Comparison, Machine, Series, compare, read_history
from torchgauge.results.dataset import read_table
from torchgauge.results.environments import environments_of
from torchgauge.results.lookup import results_of
from torchgauge.results.store import Store
from torchgauge.suites.calibration import ANSWER, NAME, PARTS, QUICK_SAMPLES, SAMPLES, CalibrationSuite

DEADLINE_S = 30.0
"""Seconds that one part may take: a hundred times what it needs."""


@dataclass(frozen=True)
class Reading:
    """One number of the calibration with what its history says of it."""

    series: Series
    summary: Summary
    comparison: Comparison


@dataclass(frozen=True)
class Gap:
    """A part without a number: the device has it not, or it failed."""

    part: str
    dtype: str
    status: Status
    reason: str


@dataclass(frozen=True)
class Calibrated:
    """A calibration of one device as it ended."""

    run_id: str
    device: str
    environment: Environment | None
    readings: tuple[Reading, ...]
    gaps: tuple[Gap, ...]
    conditions: Conditions
    earlier: int
    interrupted: bool = False


@dataclass(frozen=True)
class CalibrationCampaign(Campaign):
    """A campaign that gives a device up which does not answer: each further part would only hang as well."""

    def _execute(self, *arguments: object) -> Iterator[Yield]:
        items = super()._execute(*arguments)  # type: ignore[arg-type]
        left = {planned.case.key: planned for planned in self.plan.cases}
        for item in items:
            yield item
            rows = item if isinstance(item, list) else []
            for result in rows:
                left.pop(result.case.key, None)
            answers = (row for row in rows if row.case.workload.model == ANSWER)
            silent = next((row for row in answers if row.status is not Status.PASS), None)
            if silent is not None:
                items.close()  # type: ignore[attr-defined]
                reason = f"not tried: the device did not respond ({silent.status.value}: {silent.reason})"
                yield [
                    unattempted(self.plan, planned, Status.NOT_RUN, Cause.NO_DEVICE, reason)
                    for planned in left.values()
                ]
                return


def check_store(path: str) -> None:
    """Refuse a store that cannot be written, before anything takes time; nothing is written.

    Raises what opening the store raises where there is one, and :class:`InfrastructureError` where none can
    be made.
    """
    wanted = Path(path)
    if (wanted / "store.json").is_file():
        Store.open(wanted)
    nearest = next((each for each in (wanted, *wanted.absolute().parents) if each.exists()), Path("/"))
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        what = "is not writable" if nearest.is_dir() else "is not a folder"
        raise InfrastructureError(
            f"calibrations cannot be stored in {path}: {nearest} {what}",
            hint="--store DIR with a writable folder",
        )


def calibration_campaign(options: Mapping[str, Any], progress: Progress) -> CalibrationCampaign:
    """The campaign that the options of ``torchgauge doctor`` describe; a name that is wrong writes nothing.

    Raises :class:`UsageError` for a name that nothing answers to, and what opening the store raises.
    """
    there = interpreter(options["python"])
    suite = CalibrationSuite(samples=QUICK_SAMPLES if options["quick"] else SAMPLES)
    dtypes = tuple(dict.fromkeys(dtype for listed in PARTS.values() for dtype in listed))
    selection = Selection(suites=(NAME,), devices=(options["device"],), dtypes=dtypes)
    found = find_devices([options["device"]], there)
    groups = refuse(there, select_groups(selection, found, {NAME: suite}), found)
    limited = {**options, "timeout": options["timeout"] or DEADLINE_S}
    settings, sources = check_settings(limited, "measure_s", warm_compile=False)
    plan = placed(plan_of(_answer_first(groups), settings, [suite], provenance=sources), there)
    store = Store.open(options["store"], create=True)
    return CalibrationCampaign(plan, store, found, {NAME: suite}, progress, there.path)


def _answer_first(groups: tuple[Group, ...]) -> tuple[Group, ...]:
    """The part that asks whether the device answers has a process of its own, before all others."""
    cases = [planned for group in groups for planned in group.cases]
    first = [planned for planned in cases if planned.case.workload.model == ANSWER]
    return (*check_groups(first), *check_groups([planned for planned in cases if planned not in first]))


def run_calibration(campaign: CalibrationCampaign) -> Calibrated:
    """Run ``campaign``, keep it in its store and compare it with what the store holds of the device."""
    watch = ConditionWatch()
    report = campaign.run()
    conditions = watch.conditions()
    store, run_id = campaign.store, report.run_id
    with_rows = [row for row in results_of(store, run_id) if row.case.workload.suite == NAME]
    target = str(campaign.plan.cases[0].case.device)
    name = parse_target(target).name
    environment = next(iter(environments_of(store, run_id).values()), None)
    machine = Machine.of(environment) if environment is not None else None
    history = [] if machine is None else read_history(store, name, without=[run_id])
    readings = tuple(
        Reading(series, summary, compare(series, summary, machine, history))
        for row in with_rows
        for summary in row.summaries
        if machine is not None
        for series in [Series(row.case.workload.model, row.case.workload.dtype, summary.metric)]
    )
    return Calibrated(
        run_id=run_id,
        device=target,
        environment=_with_conditions(store, run_id, environment),
        readings=readings,
        gaps=tuple(
            Gap(row.case.workload.model, row.case.workload.dtype, row.status, row.reason)
            for row in with_rows
            if row.status is not Status.PASS
        ),
        conditions=conditions,
        earlier=sum(past.machine == machine for past in history),
        interrupted=report.interrupted,
    )


def _with_conditions(store: Store, run_id: str, environment: Environment | None) -> Environment | None:
    """``environment`` with its conditions, such as the device's telemetry, which are not hashed."""
    if environment is None:
        return None
    rows = read_table(store, "environments", run_id).to_pylist()
    found: Mapping[str, object] = {
        row["key"]: json.loads(row["value"]) for row in rows if row["kind"] == "condition"
    }
    return replace(environment, conditions=tuple(sorted(found.items())))  # type: ignore[arg-type]

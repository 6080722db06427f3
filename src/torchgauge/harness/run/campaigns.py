"""How a campaign comes about: from a selection, from a run that was interrupted, or from one case id."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from torchgauge import __version__
from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.devices.device import Device
from torchgauge.devices.discover import Presence, known_devices, parse_target
from torchgauge.errors import UsageError
from torchgauge.harness.executors.executor import executor_options, is_elsewhere, require_devices
from torchgauge.harness.interpreter.foreign_plugins import (
    check_scenarios,
    device_of,
    metrics_of,
    plugin_devices,
    refuse,
    suites_of,
)
from torchgauge.harness.interpreter.interpreter import Interpreter, interpreter, require_torch
from torchgauge.harness.interpreter.packages import libraries_in
from torchgauge.harness.planning.forecast import expected_seconds
from torchgauge.harness.planning.order import ordered
from torchgauge.harness.planning.plan import all_groups, check_available, group_of_case
from torchgauge.harness.planning.plan_inputs import gather
from torchgauge.harness.planning.selection import Selection, parse_case_id, parse_shard
from torchgauge.harness.planning.sharding import shard_groups
from torchgauge.harness.run.absent_devices import refuse_absent, refuse_quarantined
from torchgauge.harness.run.progress import Progress
from torchgauge.harness.run.rank_devices import refuse_launched, refuse_too_many
from torchgauge.harness.run.rows import option_of
from torchgauge.harness.run.runner import Campaign
from torchgauge.harness.run.versions import refuse_other_torchgauge
from torchgauge.processes.known_secrets import own_command
from torchgauge.records import Group, Plan, Provenance, RunSettings, Status
from torchgauge.records.comparison import ComparisonPlan
from torchgauge.results.durations import durations_json
from torchgauge.results.reopened import reopen
from torchgauge.results.run_id import new_run_id
from torchgauge.results.store import RunFolder, Store
from torchgauge.suites.model_code import digests_of
from torchgauge.suites.own.library import word_of_case
from torchgauge.suites.own.suite import word_of
from torchgauge.suites.suite import Suite
from torchgauge.suites.torchbench import checkout as torchbench_checkout


def make_plan(
    selection: Selection,
    settings: RunSettings,
    provenance: tuple[Provenance, ...] = (),
    *,
    python: str | None = None,
    durations: str | None = None,
    store: str | None = None,
    elsewhere: bool = False,
) -> tuple[Plan, dict[str, Device], dict[str, Suite]]:
    """The plan of ``selection`` with the devices and suites that it needs; writes nothing.

    Where it is to be measured ``elsewhere``, nothing is asked of this machine's devices.

    Shards are cut by ``durations`` (a store or a file of durations), and groups ordered by them and by what
    the store at ``store``, which need not be there, says of earlier runs.
    ``python`` names the interpreter of the workers (None: our own). Raises
    :class:`torchgauge.errors.UsageError` for any name that nothing answers to, and for an interpreter that
    cannot run workers.
    """
    there = interpreter(python)
    suites = suites_of(there, selection.suites)
    check_available(suites, selection.suites)
    check_scenarios(there, selection.modes)
    if elsewhere and "all" in selection.devices:
        raise UsageError(
            "--device all means the devices of this machine, but other machines measure",
            hint="--device with their names, separated by commas",
        )
    selection = replace(selection, devices=expand_devices(selection.devices, there))
    devices = find_devices(selection.devices, there)
    whole = all_groups(selection, devices, suites, elsewhere)
    known = gather(whole, suites, durations=durations, store=store)
    sharding = shard_groups(whole, parse_shard(selection.shard)[1], known.sharding)
    groups = refuse(there, sharding.shard(selection.shard), devices)
    groups = groups if elsewhere else refuse_too_many(there, groups, devices)
    groups, schedule = ordered(groups, known, settings.budget_s)
    if len(sharding.shards) > 1:
        schedule = replace(schedule, whole=sharding.whole, sharding=sharding.digest)
    plan = plan_of(groups, settings, suites.values(), selection.shard, provenance)
    libraries = libraries_in(() if elsewhere else (there.path,), suites.values())
    plan = replace(plan, suite_digests=(*plan.suite_digests, *libraries.items()))
    return replace(placed(plan, there), schedule=schedule), devices, suites


def plan_of(
    groups: tuple[Group, ...],
    settings: RunSettings,
    suites: Iterable[Suite],
    shard: str = "1/1",
    provenance: tuple[Provenance, ...] = (),
) -> Plan:
    """The plan record of ``groups``, with a new run id."""
    return Plan(
        run_id=new_run_id(),
        created_at=SYSTEM_CLOCK.now(),
        command=own_command(),
        settings=settings,
        groups=groups,
        suite_digests=tuple(digests_of(suites, groups).items()),
        shard=shard,
        python=sys.executable,
        provenance=provenance,
        metrics=metrics_of(),
        torchgauge=__version__,
    )


def placed(plan: Plan, there: Interpreter) -> Plan:
    """``plan`` for workers of the interpreter ``there``."""
    return plan if there.own else replace(plan, python=there.path, metrics=metrics_of(there))


def new_campaign(
    selection: Selection,
    settings: RunSettings,
    provenance: tuple[Provenance, ...],
    *,
    store: str,
    progress: Progress,
    executor: str = "local",
    executor_words: Mapping[str, str] | None = None,
    python: str | None = None,
    durations: str | None = None,
    mixed: bool = False,
) -> Campaign:
    """A campaign of ``selection``; nothing is written before all names are known to be right.

    Versions of torch may be ``mixed``. Raises what :func:`make_plan` and :func:`refuse_absent` raise.
    """
    refuse_launched(os.environ)
    options = executor_options(executor, executor_words or {})
    elsewhere = is_elsewhere(executor)
    plan, devices, suites = make_plan(
        selection,
        settings,
        provenance,
        python=python,
        durations=durations,
        store=store,
        elsewhere=elsewhere,
    )
    if elsewhere:
        require_devices(executor, options, plan.groups)
    else:
        refuse_absent(interpreter(python), plan.groups, devices)
        refuse_quarantined(plan.groups, devices)
    where = Store.open(store, create=True)
    campaign = Campaign(plan, where, devices, suites, progress, plan.python, executor)
    return replace(campaign, options=options, mixed=mixed)


def durations_of(plan: Plan, suites: Mapping[str, Suite], *, durations: str | None, store: str | None) -> str:
    """The text of a file of durations that every shard can be given: one for each case of ``plan``."""
    forecast = gather(plan.groups, suites, durations=durations, store=store).order
    return durations_json(expected_seconds(plan.groups, forecast))


def resumed_campaign(
    path: str,
    progress: Progress,
    executor: str = "local",
    *,
    executor_words: Mapping[str, str] | None = None,
    python: str | None = None,
    typed: Mapping[str, object] = MappingProxyType({}),
    retry: Collection[Status] = (),
    mixed: bool = False,
) -> tuple[Campaign, RunFolder]:
    """Return the campaign of the run folder at ``path``, to be continued.

    Cases whose rows have a status of ``retry`` are left again. Raises :class:`UsageError` where ``path`` is
    not a run folder, and where a ``typed`` setting, the data of a suite, the code of a model or, unless
    versions may be ``mixed``, torchgauge differs from the plan.
    """
    options = executor_options(executor, executor_words or {})
    folder = RunFolder(Path(path))
    refuse_launched(os.environ)
    if not folder.plan_path.is_file():
        raise UsageError(
            f"{path} is not a run folder", hint="STORE/runs/ID, as `torchgauge results list` shows"
        )
    plan = folder.plan()
    refuse_other_settings(plan, typed)
    refuse_other_torchgauge(plan, mixed)
    if plan.settings.torchbench is not None:
        os.environ[torchbench_checkout.VARIABLE] = plan.settings.torchbench
    there = _interpreter_of(plan, python)
    suites, devices = planned_parts(plan, there)
    if is_elsewhere(executor):
        require_devices(executor, options, plan.groups)
    else:
        refuse_changed_digests(plan, suites.values(), (there.path,))
        refuse_quarantined(plan.groups, devices)
    store = Store.open(folder.path.parent.parent)
    if retry:
        reopen(folder, retry)
    campaign = Campaign(plan, store, devices, suites, progress, there.path, executor, options=options)
    return replace(campaign, mixed=mixed), folder


def refuse_other_settings(plan: Plan | ComparisonPlan, typed: Mapping[str, object]) -> None:
    """Raise :class:`UsageError` where a ``typed`` setting differs from the setting of ``plan``."""
    verb, default = "run" if isinstance(plan, Plan) else "ab", RunSettings()
    for name, value in typed.items():
        if value != (planned := getattr(plan.settings, name)):
            option = "the default" if planned == getattr(default, name) else option_of(name, planned)
            raise UsageError(
                f"{option_of(name, value)}: {plan.run_id} was planned with {option}",
                hint=f"torchgauge {verb} --resume {plan.run_id}",
            )


def refuse_changed_digests(
    plan: Plan | ComparisonPlan, suites: Collection[Suite], pythons: Iterable[str] = ()
) -> None:
    """Raise :class:`UsageError` for data, model code or libraries of ``suites`` that differ from ``plan``.

    Libraries are compared in ``pythons``.
    """
    planned, libraries = dict(plan.suite_digests), libraries_in(pythons, suites)
    for name, digest in {**digests_of(suites, plan.groups), **libraries}.items():
        if planned.get(name, digest) != digest:
            code = "library" if name in libraries else "code of model"
            what = code if "/" in name else "data of suite"
            raise UsageError(
                f"the {what} {name!r} differs from the plan of {plan.run_id}",
                hint="restore the files, libraries, commit and torchgauge of the plan, or start a new run",
            )


def planned_parts(plan: Plan, there: Interpreter) -> tuple[dict[str, Suite], dict[str, Device]]:
    """Return the suites and devices of the groups of ``plan`` in the interpreter ``there``.

    Raises :class:`UsageError` for an absent suite or device, and for data or model code that differs from
    the plan.
    """
    suites = suites_of(there, list(dict.fromkeys(map(word_of, plan.groups))))
    refuse_changed_digests(plan, suites.values())
    return suites, find_devices(sorted({str(group.device) for group in plan.groups}), there)


def repro_campaign(
    case: str,
    settings: RunSettings,
    *,
    store: str,
    progress: Progress,
    python: str | None = None,
    trace: str = "",
) -> Campaign:
    """Return a campaign that runs the case called ``case`` again, eager beside it.

    ``trace`` is the file for a profiler's trace of its steps, "" for none; raises :class:`UsageError` for a
    trace of a check.
    """
    refuse_launched(os.environ)
    name = parse_case_id(case)
    there = interpreter(python)
    suites = suites_of(there, [word_of_case(name.suite, name.model)])
    check_available(suites, [name.suite])
    check_scenarios(there, [name.mode])
    devices = find_devices([name.device], there)
    target = parse_target(name.device)
    group = group_of_case(name, devices[target.name], suites[name.suite], settings.configuration_file)
    if trace and group.checks:
        raise UsageError(f"--trace: {case} is a check without steps", hint="the same command without --trace")
    *before, named = group.cases
    group = replace(group, cases=(*before, replace(named, trace=trace)))
    groups = refuse_too_many(there, refuse(there, [group], devices), devices)
    refuse_absent(there, groups, devices)
    plan = placed(plan_of(groups, settings, suites.values()), there)
    return Campaign(plan, Store.open(store, create=True), devices, suites, progress, there.path)


def _interpreter_of(plan: Plan, python: str | None) -> Interpreter:
    """The interpreter of a plan that is resumed; raises :class:`UsageError` where ``python`` is another."""
    try:
        planned = interpreter(plan.python or None)
    except UsageError as error:
        message = f"run {plan.run_id} cannot continue with its interpreter. {error.message}"
        raise UsageError(message, hint="fix this interpreter, or start a new run") from error
    if python is not None and interpreter(python).path != planned.path:
        raise UsageError(
            f"run {plan.run_id} was planned for {planned.path}, not for {python}",
            hint="resume it without --python, or start a new run",
        )
    return planned


def expand_devices(names: tuple[str, ...], there: Interpreter) -> tuple[str, ...]:
    """``names`` with ``all`` replaced by every present device that runs torch.

    Raises :class:`UsageError` where ``all`` finds none.
    """
    if "all" not in names:
        return names
    require_torch(there)
    present = [
        report.name
        for report in known_devices(there.path, report=there.report, plugins=plugin_devices(there))
        if report.presence is Presence.PRESENT and report.torch_type is not None
    ]
    if not present:
        raise UsageError(
            "no device that runs torch is present", hint="torchgauge doctor prints which part is missing"
        )
    return tuple(dict.fromkeys(name for each in names for name in (present if each == "all" else [each])))


def find_devices(names: Iterable[str], there: Interpreter) -> dict[str, Device]:
    """Device name to device for every target in ``names``; torch must be there where one of them needs it."""
    wanted = dict.fromkeys(parse_target(text).name for text in names)
    if not wanted:
        raise UsageError("no device was given", hint="torchgauge devices lists them")
    devices = {name: device_of(there, name) for name in wanted}
    if any(device.torch_type is not None for device in devices.values()):
        require_torch(there)
    return devices

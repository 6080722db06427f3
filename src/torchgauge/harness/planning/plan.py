"""From a selection to a plan: which cases, in which groups, in which order, in which shard."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from torchgauge import registry
from torchgauge.devices.device import Device
from torchgauge.devices.discover import parse_target
from torchgauge.errors import NothingSelectedError, UnknownNameError, UsageError
from torchgauge.harness.planning.configurations import configuration
from torchgauge.harness.planning.entry_words import configurations_of, known_words, with_beside
from torchgauge.harness.planning.forecast import Forecast
from torchgauge.harness.planning.refusals import missing_suite, refused
from torchgauge.harness.planning.selection import (
    CaseName,
    Selection,
    check_plain_names,
    parse_shard,
    select_models,
)
from torchgauge.harness.planning.sharding import shard_groups
from torchgauge.harness.planning.workloads import (
    check_names,
    check_workloads,
    of_several_processes,
    workloads_of,
)
from torchgauge.records import (
    Case,
    Configuration,
    DeviceTarget,
    Group,
    PlannedCase,
    Refusal,
    Tolerance,
    Workload,
    digest,
)
from torchgauge.suites.catalog import YamlSuite, declared_parameters, workload_for
from torchgauge.suites.check import CHECK
from torchgauge.suites.expectations import expectation_for
from torchgauge.suites.lending import lender
from torchgauge.suites.own.library import is_library, library_suite
from torchgauge.suites.own.suite import OwnSuite, is_own, resolve
from torchgauge.suites.suite import ModelEntry, Suite
from torchgauge.suites.tolerances import tolerance_for

MODEL_SUITES_ONLY = (
    "toy", "micro", "features", "quant", "lowbit", "executorch", "distributed",
    "conformance", "ops", "calibration",
)  # fmt: skip
"""Suites that ``all`` does not stand for: the harness's own, single operations and features, and checks."""
CHECKS_PER_GROUP = 128
"""Checks that share a process; a run that is interrupted repeats those of one group."""
CHECKS_PER_JOB = 32
"""The same where other machines measure: a group of checks is a job, and several measure a suite at once."""
BY_THE_CHECK = Tolerance(0.0, 0.0, 1.0, "the check's own")


def load_suites(names: Sequence[str]) -> dict[str, Suite]:
    """Return the suites called ``names``; ``all`` stands for every suite of models but the toy one.

    Where a name is the path of a user's file (:mod:`torchgauge.suites.own`), the suite has a name of its own.
    """
    return by_name(load_suite(name) for name in wanted_suites(registry.names(registry.SUITES), names))


def by_name(suites: Iterable[Suite]) -> dict[str, Suite]:
    """``suites`` by their names, of one name together; raises :class:`UsageError` for two such files."""
    named: dict[str, Suite] = {}
    for suite in suites:
        other = named.setdefault(suite.name, suite)
        if isinstance(suite, YamlSuite) and isinstance(other, YamlSuite) and suite is not other:
            named[suite.name] = replace(other, more=(*other.more, *suite.more))
        if isinstance(suite, OwnSuite) and suite != other:
            raise UsageError(
                f"two suites are called {suite.name}: {suite.doc} {other.doc}", hint="rename one of the files"
            )
    return named


def load_suite(name: str) -> Suite:
    """The suite called ``name``; raises :class:`UnknownNameError` and :class:`InfrastructureError`.

    A package's suite is asked for its models here, where what it raises has its name.
    """
    if is_library(name):
        return library_suite(name)[0]
    if is_own(name):
        return resolve(name)[0]
    if (
        name
        and name not in registry.names(registry.SUITES)
        and (Path(name).exists() or Path(f"{name}.py").is_file())
    ):
        return resolve(f"./{name}")[0]  # refuses it by what it is
    suite: Suite = registry.load(registry.SUITES, name)
    if registry.entry_points(registry.SUITES)[name].dist is None:
        return suite
    with registry.stranger(f"models() of suite {name!r} raised", hint=registry.FIX):
        models = suite.models()
        if not isinstance(models, tuple) or not all(isinstance(each, ModelEntry) for each in models):
            raise TypeError("it must return a tuple of ModelEntry")
    return suite


def wanted_suites(known: Sequence[str], names: Sequence[str]) -> list[str]:
    """``names`` without repetition, with ``all`` standing for the suites of models among ``known``."""
    return (
        [name for name in known if name not in MODEL_SUITES_ONLY]
        if "all" in names
        else list(dict.fromkeys(names))
    )


def check_available(suites: Mapping[str, Suite], names: Sequence[str]) -> None:
    """Raise :class:`UsageError` for a suite named in ``names`` of which nothing can be built here.

    Inside ``all`` the cases of such a suite become rows instead.
    """
    for name, suite in suites.items():
        if suite.unavailable is not None and "all" not in names:
            raise UsageError(f"suite {name!r}: {suite.unavailable.reason}", hint=suite.unavailable.hint)


def select_groups(
    selection: Selection,
    devices: Mapping[str, Device],
    suites: Mapping[str, Suite],
    forecast: Forecast | None = None,
) -> tuple[Group, ...]:
    """The groups of ``selection`` suite by suite, cut to its shard by ``forecast`` (None: by their cases).

    Raises what :func:`all_groups` and :meth:`torchgauge.harness.planning.sharding.Sharding.shard` raise.
    """
    _, shards = parse_shard(selection.shard)
    groups = all_groups(selection, devices, suites)
    return shard_groups(groups, shards, forecast or Forecast()).shard(selection.shard)


def all_groups(
    selection: Selection,
    devices: Mapping[str, Device],
    suites: Mapping[str, Suite],
    elsewhere: bool = False,
) -> tuple[Group, ...]:
    """The groups of all shards of ``selection``, device by device and suite by suite.

    Where they are measured ``elsewhere``, groups of checks are small.

    Raises :class:`UnknownNameError` for a name that nothing answers to and
    :class:`NothingSelectedError` where nothing is left.
    """
    entries = {name: suite.models() for name, suite in suites.items()}
    check_names(selection, entries)
    for name in selection.configurations:
        configuration(name, selection.configuration_file)
    _, shards = parse_shard(selection.shard)
    check_plain_names(dict(entries), selection.models)
    chosen = [
        (suite, known_words(suites[suite], entry, selection))
        for suite, models in entries.items()
        for entry in select_models(suite, models, selection.models, selection.tier)
    ]
    if selection.processes is not None and not any(of_several_processes(entry) for _, entry in chosen):
        raise UsageError(
            "--processes: no selected model runs in several processes",
            hint="select models of suite distributed, or models with `processes` in their shape",
        )
    batched = {suite for suite, entry in chosen if entry.framework != CHECK}
    if selection.batch is not None and (rest := sorted({suite for suite, _ in chosen} - batched)):
        raise UsageError(f"--batch: checks of {', '.join(rest)} have no batch", hint="leave --batch out")
    groups: list[Group] = []
    for target in dict.fromkeys(parse_target(text) for text in selection.devices):
        checks: dict[str, list[PlannedCase]] = {}
        for suite, entry in chosen:
            missing = missing_suite(suites[suite])
            if entry.framework == CHECK:
                checks.setdefault(suite, []).extend(
                    planned_check(
                        workload,
                        target,
                        devices[target.name],
                        missing=missing or entry.declined_in(workload.mode),
                    )
                    for workload in check_workloads(suite, entry, selection, devices[target.name])
                )
                continue
            groups += [
                make_group(
                    workload,
                    entry,
                    configurations_of(entry, selection),
                    target,
                    devices[target.name],
                    missing=missing,
                )
                for workload in workloads_of(suite, entry, selection)
            ]
        for suite, cases in checks.items():
            most = checks_together(suites[suite], elsewhere)
            groups += check_groups(cases, min(most, -(-len(cases) // shards)) or 1)
    if not groups:
        raise NothingSelectedError(
            "nothing matches the selection", hint="torchgauge plan with fewer filters, or another --tier"
        )
    _check_once(groups)
    return tuple(groups)


def _check_once(groups: Sequence[Group]) -> None:
    """Raise :class:`UsageError` for a case that is planned twice: a run keeps one row of a name."""
    seen: set[str] = set()
    for planned in (each for group in groups for each in group.cases):
        if planned.case.id in seen:
            suite = planned.case.workload.suite
            raise UsageError(
                f"suite {suite!r} plans {planned.case.id} twice",
                hint=f"two models of the suite share a name: rename one, or omit suite {suite}",
            )
        seen.add(planned.case.id)


def make_group(
    workload: Workload,
    entry: ModelEntry,
    configurations: Sequence[Configuration],
    target: DeviceTarget,
    device: Device,
    *,
    missing: Refusal | None = None,
) -> Group:
    """The group of ``workload`` on ``target``, with tolerances, expectations and refusals attached.

    ``missing`` says that nothing of the suite can be built here; ``entry`` itself may be declined.
    """
    missing = missing or entry.declined_in(workload.mode)
    if entry.framework == CHECK:
        return check_groups([planned_check(workload, target, device, missing=missing)])[0]
    lending = lender(entry.recipe)
    missing = missing or (missing_suite(lending) if lending is not None else None)
    planned = []
    for each in configurations:
        case = Case(workload, each, target)
        tolerance = tolerance_for(workload, entry, each.backend, each.name)
        refusal = refused(case, entry, device) or missing
        expected = expectation_for(case, _declared(device))
        planned.append(
            PlannedCase(case, tolerance, expected, refusal, parameters=declared_parameters(workload, entry))
        )
    identity = digest([workload.declared_hash, str(target)])
    return Group(identity, tuple(planned), dict(entry.recipe), cold=entry.cold)


def planned_check(
    workload: Workload,
    target: DeviceTarget,
    device: Device,
    *,
    missing: Refusal | None = None,
) -> PlannedCase:
    """The one case of a check, eager, with its expectation and refusal attached."""
    case = Case(workload, configuration("eager", None), target)
    refusal = refused(case, None, device) or missing
    return PlannedCase(case, BY_THE_CHECK, expectation_for(case, _declared(device)), refusal)


def _declared(device: Device) -> str:
    """The file of expectations that the device's package declares; "" for a device of older make."""
    return str(getattr(device, "expectations", ""))


def checks_together(suite: Suite, elsewhere: bool) -> int:
    """Return how many checks of ``suite`` share a process, which may be on another machine."""
    return CHECKS_PER_JOB if elsewhere else int(getattr(suite, "checks_per_process", CHECKS_PER_GROUP))


def check_groups(cases: Sequence[PlannedCase], size: int = CHECKS_PER_GROUP) -> list[Group]:
    """``cases``, checks of one suite on one device, in groups of at most ``size`` that share a process."""
    parts = [cases[start : start + size] for start in range(0, len(cases), size)]
    return [Group(digest([p.case.key for p in part]), tuple(part), checks=True) for part in parts]


def group_of_case(
    name: CaseName, device: Device, suite: Suite, configuration_file: str | None = None
) -> Group:
    """The group that runs one named case again, with eager beside it so that a speed-up can be taken.

    Raises :class:`UnknownNameError` for a model, mode, size or configuration that does not exist.
    """
    workload, entry = named_workload(name, suite)
    configurations = with_beside(("eager", name.configuration), configuration_file)
    return make_group(workload, entry, configurations, parse_target(name.device), device)


def named_workload(name: CaseName, suite: Suite) -> tuple[Workload, ModelEntry]:
    """The workload that ``name`` means and its entry in ``suite``; raises :class:`UnknownNameError`."""
    entries = {entry.name: entry for entry in suite.models()}
    if name.model not in entries:
        raise UnknownNameError("model", name.model, entries)
    entry = entries[name.model]
    # Each axis of a sweep needs a value, and each value an axis.
    axes = entry.axes
    model, given = f"{name.suite}/{name.model}", dict(name.shape)
    for axis, values in axes.items():
        if axis not in given:
            raise UsageError(
                f"{model} is a sweep, but its axis {axis} is not set", hint=f"append [{axis}={values[0]}]"
            )
    for key, value in name.shape:
        words = [each for each in axes.get(key, ()) if isinstance(each, str)]
        if isinstance(value, str) and value not in words:
            if not words:
                raise UsageError(f"{key}={value} of {model} is not a number", hint="write it as name=number")
            raise UnknownNameError(f"{key} of {model}", value, words)
    workload = workload_for(
        name.suite,
        entry,
        name.mode,
        size=name.size,
        dtype=name.dtype,
        batch=name.batch,
        weights=name.weights,
        point=name.shape,
    )
    return replace(workload, seed=workload.seed if name.seed is None else name.seed), entry

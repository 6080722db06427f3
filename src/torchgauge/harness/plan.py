"""From a selection to a plan: which cases, in which groups, in which order, in which shard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from torchgauge import registry
from torchgauge.devices.device import Device
from torchgauge.devices.discover import parse_target
from torchgauge.errors import NothingSelectedError, UnknownNameError, UsageError
from torchgauge.harness.configurations import configuration
from torchgauge.harness.selection import (
    DTYPES,
    TIERS,
    CaseName,
    Selection,
    check_plain_names,
    parse_shard,
    select_models,
)
from torchgauge.records import Case, Configuration, DeviceTarget, Group, PlannedCase, Workload, digest
from torchgauge.suites.catalog import workload_for
from torchgauge.suites.expectations import expectation_for
from torchgauge.suites.suite import ModelEntry, Suite
from torchgauge.suites.tolerances import tolerance_for


def load_suites(names: Sequence[str]) -> dict[str, Suite]:
    """The suites called ``names``; ``all`` stands for every one but the toy suite of the harness's tests."""
    known = registry.names("torchgauge.suites")
    wanted = [name for name in known if name != "toy"] if "all" in names else list(dict.fromkeys(names))
    return {name: registry.load("torchgauge.suites", name) for name in wanted}


def select_groups(
    selection: Selection, devices: Mapping[str, Device], suites: Mapping[str, Suite]
) -> tuple[Group, ...]:
    """The groups of ``selection`` in execution order, cut to its shard.

    Raises :class:`UnknownNameError` for a name that nothing answers to and
    :class:`NothingSelectedError` where nothing is left.
    """
    _check_names(selection)
    shard, shards = parse_shard(selection.shard)
    configurations = [configuration(name) for name in dict.fromkeys(selection.configurations)]
    entries = {name: suite.models() for name, suite in suites.items()}
    check_plain_names(dict(entries), selection.models)
    groups = []
    for target in dict.fromkeys(parse_target(text) for text in selection.devices):
        for suite, models in entries.items():
            for entry in select_models(suite, models, selection.models, selection.tier):
                groups += [
                    make_group(workload, entry, configurations, target, devices[target.name])
                    for workload in _workloads(suite, entry, selection)
                ]
    if not groups:
        raise NothingSelectedError(
            "nothing matches the selection", hint="torchgauge plan with fewer filters, or another --tier"
        )
    if shard > len(groups):
        raise NothingSelectedError(
            f"shard {selection.shard} is empty: the selection has {len(groups)} groups",
            hint=f"at most --shard i/{len(groups)}",
        )
    return tuple(groups[shard - 1 :: shards])


def make_group(
    workload: Workload,
    entry: ModelEntry,
    configurations: Sequence[Configuration],
    target: DeviceTarget,
    device: Device,
) -> Group:
    """The group of ``workload`` on ``target``, with tolerances, expectations and refusals attached."""
    tolerance = tolerance_for(workload, entry)
    planned = []
    for each in configurations:
        case = Case(workload, each, target)
        refusal = device.cannot_run(workload, each) or ""
        if entry.framework != "torch" and each.compiled:
            refusal = "a workload without torch cannot be compiled"
        if entry.framework == "torch" and device.torch_type is None:
            refusal = f"device {device.name!r} runs no torch"
        planned.append(PlannedCase(case, tolerance, expectation_for(case), refusal))
    identity = digest([workload.declared_hash, str(target)])
    return Group(identity, tuple(planned), dict(entry.recipe))


def group_of_case(name: CaseName, device: Device, suite: Suite) -> Group:
    """The group that runs one named case again, with eager beside it so that a speed-up can be taken.

    Raises :class:`UnknownNameError` for a model, mode, size or configuration that does not exist.
    """
    entries = {entry.name: entry for entry in suite.models()}
    if name.model not in entries:
        raise UnknownNameError("model", name.model, entries)
    entry = entries[name.model]
    workload = workload_for(name.suite, entry, name.mode, size=name.size, dtype=name.dtype, batch=name.batch)
    workload = replace(
        workload,
        shape=tuple(sorted({**dict(workload.shape), **dict(name.shape)}.items())),
        seed=workload.seed if name.seed is None else name.seed,
    )
    wanted = dict.fromkeys(("eager", name.configuration))
    return make_group(
        workload, entry, [configuration(each) for each in wanted], parse_target(name.device), device
    )


def _workloads(suite: str, entry: ModelEntry, selection: Selection) -> list[Workload]:
    """The workloads of one model; a mode or size that it does not offer yields none."""
    if selection.size not in entry.sizes:
        return []
    return [
        workload_for(suite, entry, mode, size=selection.size, dtype=dtype)
        for mode in selection.modes
        if mode in entry.batch
        for dtype in selection.dtypes
        if entry.framework == "torch" or dtype == DTYPES[0]
    ]


def _check_names(selection: Selection) -> None:
    modes = registry.names("torchgauge.scenarios")
    for mode in selection.modes:
        if mode not in modes:
            raise UnknownNameError("mode", mode, modes)
    for dtype in selection.dtypes:
        if dtype not in DTYPES:
            raise UnknownNameError("dtype", dtype, DTYPES)
    if selection.tier not in TIERS:
        raise UnknownNameError("tier", selection.tier, TIERS)
    if selection.size not in ("small", "full"):
        raise UnknownNameError("size", selection.size, ("small", "full"))
    if not selection.suites:
        raise UsageError("no suite is named", hint="torchgauge suites lists them")

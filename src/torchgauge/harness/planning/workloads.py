"""The workloads of a model that a selection asks for, and a selection's words that nothing answers to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchgauge import registry
from torchgauge.devices.device import Device
from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.harness.planning.selection import (
    DEFAULT_DTYPES,
    DEFAULT_MODES,
    DTYPE_ALIASES,
    DTYPES,
    TIERS,
    Selection,
)
from torchgauge.records import Shape, Workload
from torchgauge.records.case import PROCESSES
from torchgauge.suites.capabilities import offered_as
from torchgauge.suites.catalog import BATCH_PROFILES, workload_for
from torchgauge.suites.check import CHECK
from torchgauge.suites.suite import ModelEntry


def workloads_of(suite: str, entry: ModelEntry, selection: Selection) -> list[Workload]:
    """The workloads of one model; a mode or size that it does not offer yields none."""
    if selection.size not in entry.sizes:
        return []
    dtypes = selection.dtypes or entry.dtypes or DEFAULT_DTYPES
    return [
        workload_for(
            suite,
            entry,
            mode,
            size=selection.size,
            dtype=dtype,
            batch=selection.batch,
            batch_profile=selection.batch_profile,
            weights=selection.weights,
            point=point,
        )
        for point in _points(entry, selection.processes)
        for mode in dict.fromkeys(selection.modes or entry.modes or DEFAULT_MODES)
        if offered_as(entry, mode)
        for dtype in dict.fromkeys(DTYPE_ALIASES.get(each, each) for each in dtypes)
        if entry.framework == "torch" or dtype == DTYPES[0]
    ]


def _points(entry: ModelEntry, processes: int | None) -> list[Shape]:
    """The points of the sweep of ``entry``, each once, with ``processes`` in the place of its own number."""
    points = entry.points or ((),)
    if processes is None or not of_several_processes(entry):
        return list(points)
    return list(dict.fromkeys(tuple(sorted({**dict(each), PROCESSES: processes}.items())) for each in points))


def of_several_processes(entry: ModelEntry) -> bool:
    """Whether ``entry`` says how many processes compute it."""
    return PROCESSES in dict(entry.shape) or PROCESSES in entry.axes


def check_workloads(suite: str, entry: ModelEntry, selection: Selection, device: Device) -> list[Workload]:
    """The workloads of one check: all its modes unless one that only checks have is selected."""
    scenarios = registry.names("torchgauge.scenarios")
    named = [mode for mode in selection.modes if mode not in scenarios]
    return [
        Workload(suite, entry.name, mode, dtype, shape=entry.shape)
        for mode in entry.batch
        if not named or mode in named
        for dtype in dict.fromkeys(entry.dtypes_of(mode, device.torch_type))
        if dtype in (selection.dtypes or DEFAULT_DTYPES)
    ]


def check_names(selection: Selection, entries: Mapping[str, Sequence[ModelEntry]]) -> None:
    """Raise :class:`UsageError` for a mode, dtype, tier, size or profile that there is not."""
    checks = [entry for models in entries.values() for entry in models if entry.framework == CHECK]
    modes = dict.fromkeys(
        (*registry.names("torchgauge.scenarios"), *(mode for entry in checks for mode in entry.batch))
    )
    for mode in selection.modes:
        if mode not in modes:
            raise UnknownNameError("mode", mode, modes)
    dtypes = dict.fromkeys((*DTYPES, *DTYPE_ALIASES, *(dtype for entry in checks for dtype in entry.dtypes)))
    for dtype in selection.dtypes:
        if dtype not in dtypes:
            raise UnknownNameError("dtype", dtype, dtypes)
    if selection.batch_profile not in (None, *BATCH_PROFILES):
        raise UnknownNameError("batch profile", str(selection.batch_profile), BATCH_PROFILES)
    if selection.tier not in TIERS:
        raise UnknownNameError("tier", selection.tier, TIERS)
    if selection.size not in ("small", "full"):
        raise UnknownNameError("size", selection.size, ("small", "full"))
    if not selection.suites:
        raise UsageError("no suite was given", hint="torchgauge suites lists them")

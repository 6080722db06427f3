"""Name to plugin: built-ins declared as synthetic entry points beside the installed ones.

Why: a vendor's package and ours come through the same door, so the door is always tested. An installed
plugin cannot silently replace a built-in of the same name.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from functools import cache
from importlib import metadata, resources
from typing import Any

from torchgauge.errors import InfrastructureError, UnknownNameError
from torchgauge.records import METRICS, Metric

GROUPS = (
    "torchgauge.devices",
    "torchgauge.suites",
    "torchgauge.scenarios",
    "torchgauge.backends",
    "torchgauge.publishers",
    "torchgauge.executors",
    "torchgauge.checks",
    "torchgauge.metrics",
)
METRIC_GROUP = "torchgauge.metrics"


def entry_points(group: str) -> dict[str, metadata.EntryPoint]:
    """Name to entry point for ``group``, built-ins first; raises on two plugins of one name."""
    found = dict(_builtin(group))
    for point in _installed(group):
        known = found.get(point.name)
        if known is not None and known.value != point.value:
            raise InfrastructureError(
                f"two plugins are called {point.name!r} in {group}: {known.value} and {point.value}",
                hint="uninstall one of the two packages",
            )
        found[point.name] = point
    return found


def names(group: str) -> tuple[str, ...]:
    """All known names of ``group``, sorted."""
    return tuple(sorted(entry_points(group)))


def load(group: str, name: str) -> Any:
    """The plugin object called ``name``; raises :class:`UnknownNameError` with suggestions."""
    points = entry_points(group)
    if name not in points:
        raise UnknownNameError(group.rpartition(".")[2].rstrip("s"), name, points)
    point = points[name]
    try:
        return point.load()
    except Exception as error:
        raise InfrastructureError(
            f"plugin {name!r} of {group} ({point.value}) cannot be loaded: {type(error).__name__}: {error}",
            hint="mend or uninstall the package that provides it",
        ) from error


@cache
def metrics() -> Mapping[str, Metric]:
    """The table of metrics with those that packages declare; a declaration that does not hold is left out."""
    declared = {name: declared_metric(name) for name in names(METRIC_GROUP)}
    return {**METRICS, **{name: each for name, each in declared.items() if isinstance(each, Metric)}}


def declared_metric(name: str) -> Metric | str:
    """The metric that a package declares as ``name``, or why there is none: no command ends for it."""
    try:
        point = entry_points(METRIC_GROUP).get(name)
        if point is None:
            return f"no package declares it under {METRIC_GROUP}"
        if name in METRICS:
            return f"{point.value} declares a metric that torchgauge has"
        found = point.load()
    except Exception as error:  # noqa: BLE001  somebody's module: what it measures is kept all the same
        return f"its declaration cannot be loaded: {type(error).__name__}: {error}"
    if not isinstance(found, Metric) or found.name != name:
        return f"{point.value} is no metric called {name}"
    return found


def preload() -> None:
    """Read all entry points now, so that forks of this process need not."""
    for group in GROUPS:
        entry_points(group)


def resolve(reference: str) -> Any:
    """The object that ``module:attribute`` names."""
    return metadata.EntryPoint(name="", value=reference, group="").load()


@cache
def _installed(group: str) -> tuple[metadata.EntryPoint, ...]:
    """Entry points of installed packages; scanning the path takes milliseconds, so it is done once."""
    return tuple(metadata.entry_points(group=group))


@cache
def _builtin(group: str) -> dict[str, metadata.EntryPoint]:
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    text = resources.files("torchgauge").joinpath("builtin_plugins.ini").read_text(encoding="utf-8")
    parser.read_string(text)
    if not parser.has_section(group):
        return {}
    return {
        name: metadata.EntryPoint(name=name, value=value, group=group) for name, value in parser.items(group)
    }

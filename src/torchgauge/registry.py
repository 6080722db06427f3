"""Name to plugin: built-ins declared as synthetic entry points beside the installed ones.

Why: a vendor's package and ours come through the same door, so the door is always tested. An installed
plugin cannot silently replace a built-in of the same name.
"""

from __future__ import annotations

import configparser
import faulthandler
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from functools import cache
from importlib import metadata, resources
from inspect import getattr_static
from typing import Any, NoReturn

from torchgauge.clock import alarm
from torchgauge.errors import InfrastructureError, TorchgaugeError, UnknownNameError
from torchgauge.records import METRICS, Metric

METRIC_GROUP = "torchgauge.metrics"
SUITES = "torchgauge.suites"
GROUPS: Mapping[str, tuple[str, ...]] = {
    "torchgauge.devices": (
        *("name", "label", "torch_type", "fork_safe", "session", "provision"),
        *("runner_labels", "compile_backend", "environment", "cannot_run"),
    ),
    SUITES: (
        *("name", "doc", "builder", "preload", "install_hint", "digest"),
        *("unavailable", "environment", "notes", "models"),
    ),
    "torchgauge.scenarios": ("name", "doc", "implementation"),
    "torchgauge.backends": (
        *("name", "doc", "implementation", "packages", "options", "takes"),
        *("compiler", "cannot_run"),
    ),
    "torchgauge.publishers": ("name", "render", "publish"),
    "torchgauge.executors": ("name", "submit"),
    "torchgauge.checks": (),
    METRIC_GROUP: ("name", "unit", "better"),
}
"""Group to what a plugin of it has; modules of checks are read and never loaded."""
PATIENCE_S = 20.0
"""Seconds that a plugin's code may take in the parent: it imports no torch there. 0 for any time."""
LONGEST_ANSWER = 2000
FIX = "fix or uninstall the package that provides it"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")


def entry_points(group: str) -> dict[str, metadata.EntryPoint]:
    """Name to entry point for ``group``, built-ins first; of two plugins of one name none can be loaded."""
    return {name: points[0] for name, points in _claims(group).items()}


def _claims(group: str) -> dict[str, list[metadata.EntryPoint]]:
    """Name to the entry points that have it and lead to different objects."""
    found = {name: [point] for name, point in _builtin(group).items()}
    for point in _installed(group):
        others = found.setdefault(point.name, [])
        if point.value not in {each.value for each in others}:
            others.append(point)
    return found


def names(group: str) -> tuple[str, ...]:
    """All known names of ``group``, sorted."""
    return tuple(sorted(entry_points(group)))


def load(group: str, name: str) -> Any:
    """The plugin object called ``name``.

    Raises :class:`UnknownNameError` with suggestions, and :class:`InfrastructureError` for one that cannot be
    loaded, is no plugin of ``group`` or shares its name with another one.
    """
    claims = _claims(group)
    if name not in claims:
        raise UnknownNameError(group.rpartition(".")[2].rstrip("s"), name, claims)
    point, *others = claims[name]
    if others:
        raise InfrastructureError(
            f"two plugins of {group} have the name {name!r}: {point.value} and {others[0].value}",
            hint="uninstall one of the two packages",
        )
    said = f"plugin {name!r} of {group} ({point.value})"
    with stranger(f"{said} cannot be loaded:", hint=FIX):
        found = point.load()
        wrong = _wrong(group, name, found)
    if wrong:
        raise InfrastructureError(f"{said} {wrong}", hint=FIX)
    return found


def _wrong(group: str, name: str, found: Any) -> str:
    """Why ``found`` is no plugin of ``group`` called ``name``; empty where it is one."""
    missing = [
        each for each in GROUPS[group] if getattr_static(found, each, _wrong) is _wrong
    ]  # runs nothing
    if not _NAME.fullmatch(name):
        return "has a name with characters other than letters, digits and _.+-"
    if isinstance(found, type):
        return "is a class, not an instance"
    if missing:
        return f"has no {', '.join(missing)}"
    return f"has another name in its code: {found.name!r}" if found.name != name else ""


@contextmanager
def stranger(said: str, *, hint: str = "") -> Iterator[None]:
    """Run a plugin's code in this process: nothing that it prints is taken for an answer of ours.

    Raises :class:`InfrastructureError`, which begins with ``said``, for what it raises, and where it takes
    longer than :data:`PATIENCE_S`.
    """

    def end() -> None:
        raise TimeoutError(f"the plugin takes longer than {PATIENCE_S:g} s")

    try:
        with alarm(PATIENCE_S, end), redirect_stdout(sys.stderr), _kept_alive():
            yield
    except (TorchgaugeError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise InfrastructureError(f"{said} {type(error).__name__}: {error}", hint=hint) from error


@contextmanager
def _kept_alive() -> Iterator[None]:
    """Let who ends this process be named: ``os._exit`` raises, and a crash shows in whose lines it was."""
    leave, mine = os._exit, os.getpid()

    def end(status: int) -> NoReturn:
        if os.getpid() != mine:
            leave(status)  # of a child that was forked meanwhile
        raise SystemExit(f"os._exit({status})")

    with suppress(OSError, ValueError, AttributeError):  # nobody listens
        faulthandler.enable(sys.__stderr__ or 2)
    os._exit = end
    try:
        yield
    finally:
        os._exit = leave


def asked(said: str, plugin: Any, method: str, *arguments: Any) -> str:
    """What ``plugin``, which is ``said``, answers in this process; "" for None.

    Raises :class:`InfrastructureError` with its name where it raises, or answers something else than text.
    """
    with stranger(f"{said} raised"):
        answer = getattr(plugin, method)(*arguments)
    if answer is not None and not isinstance(answer, str):
        raise InfrastructureError(f"{said}: {method}() returned {type(answer).__name__} instead of text")
    return (answer or "")[:LONGEST_ANSWER]


@cache
def metrics() -> Mapping[str, Metric]:
    """The table of metrics with those that packages declare; a declaration that does not hold is left out."""
    declared = {name: declared_metric(name) for name in names(METRIC_GROUP)}
    return {**METRICS, **{name: each for name, each in declared.items() if isinstance(each, Metric)}}


def declared_metric(name: str) -> Metric | str:
    """The metric that a package declares as ``name``, or why there is none: no command ends for it."""
    try:
        found = load(METRIC_GROUP, name)
    except UnknownNameError:
        return f"no installed package declares this metric under {METRIC_GROUP}"
    except InfrastructureError as error:
        return error.message
    if name in METRICS:
        return "a package declares a metric with the name of a built-in metric"
    return (
        found
        if isinstance(found, Metric)
        else f"the object that a package registers as {name} is not a Metric"
    )


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

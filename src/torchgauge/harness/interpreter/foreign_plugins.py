"""Devices and suites as the target interpreter has them.

Why: a plugin's code runs in the worker, so what counts is what is installed there. Built-in plugins travel
with the copy of the package; a third party's is asked for its data by a child process, and one that is
installed here only is refused with what to type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from torchgauge import registry
from torchgauge.devices.device import Device, DeviceDescriptor
from torchgauge.devices.discover import GROUP as DEVICES
from torchgauge.devices.discover import find_device
from torchgauge.errors import InfrastructureError, UnknownNameError, UsageError
from torchgauge.harness.backends.backend import GROUP as BACKENDS
from torchgauge.harness.backends.backend import as_compiled
from torchgauge.harness.interpreter.interpreter import (
    Interpreter,
    Plugin,
    PluginAnswerError,
    ask_plugins,
    require_torch,
)
from torchgauge.harness.planning.plan import by_name, load_suite, load_suites, wanted_suites
from torchgauge.processes.kept_process import scratch
from torchgauge.records import METRICS, Group, Metric, PlannedCase, Refusal, Status, from_plain, to_json
from torchgauge.suites.capabilities import SCENARIOS
from torchgauge.suites.own.library import is_library
from torchgauge.suites.own.suite import is_own
from torchgauge.suites.suite import ModelEntry, Suite, Unavailable


@dataclass(frozen=True)
class ForeignSuite:
    """A suite as plain data: what the parent needs of one that it cannot import."""

    name: str
    doc: str
    builder: str
    preload: tuple[str, ...]
    install_hint: str
    digest: str
    environment: dict[str, str]
    entries: tuple[ModelEntry, ...]
    unavailable: Unavailable | None = None
    notes: tuple[str, ...] = ()
    scenarios: dict[str, str] = field(default_factory=dict)
    checker: str = ""
    source: str = ""

    def models(self) -> tuple[ModelEntry, ...]:
        """All models, in the suite's order."""
        return self.entries


@dataclass(frozen=True)
class ForeignDevice(DeviceDescriptor):
    """A device as plain data; one that ``refuses`` by code of its own is asked there, see :func:`refuse`."""

    reference: str = ""
    refuses: bool = False


def suites_of(target: Interpreter, names: Sequence[str]) -> dict[str, Suite]:
    """The suites called ``names`` as ``target`` has them; ``all`` as in :func:`load_suites`.

    A suite that is installed here only is there and unavailable. Raises :class:`UnknownNameError`.
    """
    if target.own:
        return load_suites(names)
    there = [plugin.name for plugin in target.plugins if plugin.group == registry.SUITES]
    known = sorted({*registry.names(registry.SUITES), *there})
    return by_name(_suite(target, name, known) for name in wanted_suites(known, names))


def device_of(target: Interpreter, name: str) -> Device:
    """The device called ``name`` as ``target`` has it: built in, a plugin there, or one of its torch.

    Raises :class:`UsageError` for a plugin that is installed here only, and what :func:`find_device` raises.
    """
    if target.own or _built_in(DEVICES, name):
        return find_device(name, target.path)
    plugin = target.plugin(DEVICES, name)
    if plugin is not None:
        return _foreign_device(target, plugin)
    if name in registry.names(DEVICES):
        missing = _missing(target, DEVICES, name)
        raise UsageError(missing.reason, hint=missing.hint)
    require_torch(target)
    return find_device(name, target.path, report=target.report)


def plugin_devices(target: Interpreter) -> dict[str, Device] | None:
    """All devices that are plugins, by name, as ``target`` has them; None for our own: ask the registry."""
    if target.own:
        return None
    names = [name for name in registry.names(DEVICES) if _built_in(DEVICES, name)]
    there = [plugin for plugin in target.plugins if plugin.group == DEVICES]
    return {
        **{name: registry.load(DEVICES, name) for name in names},
        **{plugin.name: _foreign_device(target, plugin) for plugin in there},
    }


def metrics_of(target: Interpreter | None = None) -> tuple[Metric, ...]:
    """The metrics that packages of ``target`` (None: our own interpreter) declare beside the table."""
    if target is None or target.own:
        return tuple(metric for name, metric in registry.metrics().items() if name not in METRICS)
    if not any(plugin.group == registry.METRIC_GROUP for plugin in target.plugins):
        return ()
    return tuple(from_plain(Metric, each) for each in ask_plugins(target.path, "metrics"))


def check_scenarios(target: Interpreter, modes: Sequence[str]) -> None:
    """Raise :class:`UsageError` for a mode whose scenario is a plugin that ``target`` has not."""
    _check_installed(target, SCENARIOS, modes)


def _check_installed(target: Interpreter, group: str, names: Iterable[str]) -> None:
    """Raise :class:`UsageError` for a plugin among ``names`` that is here and not in ``target``."""
    for name in names if not target.own else ():
        known = name in registry.names(group)
        if known and not _built_in(group, name) and target.plugin(group, name) is None:
            missing = _missing(target, group, name)
            raise UsageError(missing.reason, hint=missing.hint)


def refuse(target: Interpreter, groups: Sequence[Group], devices: Mapping[str, Device]) -> tuple[Group, ...]:
    """``groups`` with the refusals of devices that only code of ``target`` can decide.

    Raises :class:`UsageError` for a backend that is a plugin which ``target`` has not.
    """
    backends = {planned.case.configuration.backend for group in groups for planned in group.cases}
    _check_installed(target, BACKENDS, sorted(backends))
    refused: dict[str, str] = {}
    for name, device in devices.items():
        if isinstance(device, ForeignDevice) and device.refuses:
            cases = [p.case for group in groups if group.device.name == name for p in group.cases]
            with scratch("cases") as folder:
                path = folder / "cases.json"
                path.write_text(
                    to_json([[case.workload, as_compiled(case.configuration)] for case in cases]), "utf-8"
                )
                answers = ask_plugins(target.path, "refusals", device.reference, str(path))
            refused.update({case.key: answer for case, answer in zip(cases, answers, strict=True) if answer})

    def marked(planned: PlannedCase) -> PlannedCase:
        reason = refused.get(planned.case.key)
        return planned if reason is None else replace(planned, refusal=Refusal(Status.UNSUPPORTED, reason))

    return tuple(replace(group, cases=tuple(map(marked, group.cases))) for group in groups)


def _suite(target: Interpreter, name: str, known: Sequence[str]) -> Suite:
    if is_own(name) or is_library(name):
        return load_suite(name)
    plugin = target.plugin(registry.SUITES, name)
    if plugin is not None:
        _check_unique(target, plugin)
        try:
            return from_plain(ForeignSuite, ask_plugins(target.path, "suite", plugin.value))
        except PluginAnswerError as error:
            if _same_here(plugin):  # its data file may need packages that only torchgauge itself has
                return load_suite(name)
            raise _cannot_be_loaded(target, plugin, error) from error
    if name not in known:
        raise UnknownNameError("suite", name, known)
    suite = load_suite(name)
    if hasattr(suite, "seen_from"):  # what it lists depends on the torch that will run it
        suite = suite.seen_from(target.path)
    return (
        suite if _built_in(registry.SUITES, name) else _absent(suite, _missing(target, registry.SUITES, name))
    )


def _foreign_device(target: Interpreter, plugin: Plugin) -> Device:
    _check_unique(target, plugin)
    try:
        return from_plain(ForeignDevice, ask_plugins(target.path, "device", plugin.value))
    except PluginAnswerError as error:
        raise _cannot_be_loaded(target, plugin, error) from error


def _built_in(group: str, name: str) -> bool:
    """Whether the plugin ships with torchgauge; only an installed one has a distribution."""
    point = registry.entry_points(group).get(name)
    return point is not None and point.dist is None


def _same_here(plugin: Plugin) -> bool:
    """Whether the same version of the package is installed beside torchgauge."""
    point = registry.entry_points(plugin.group).get(plugin.name)
    if point is None or point.dist is None:
        return False
    return (point.value, point.dist.name, point.dist.version) == (
        plugin.value,
        plugin.package,
        plugin.version,
    )


def _check_unique(target: Interpreter, plugin: Plugin) -> None:
    same = [each for each in target.plugins if (each.group, each.name) == (plugin.group, plugin.name)]
    values = {each.value for each in same}
    if _built_in(plugin.group, plugin.name):
        values.add(registry.entry_points(plugin.group)[plugin.name].value)
    if len(values) > 1:
        raise InfrastructureError(
            f"two plugins are called {plugin.name!r} in {plugin.group} of {target.path}: "
            f"{' and '.join(sorted(values))}",
            hint=target.pip(f"uninstall {plugin.package}"),
        )


def _missing(target: Interpreter, group: str, name: str) -> Unavailable:
    """Why a plugin that is installed beside torchgauge cannot be used in ``target``."""
    point = registry.entry_points(group)[name]
    package = point.dist.name if point.dist is not None else name
    kind = group.rpartition(".")[2].rstrip("s")
    return Unavailable(
        f"{kind} {name!r} is part of {package}, which is installed beside torchgauge, not in {target.path}",
        target.pip(f"install {package}"),
    )


def _absent(suite: Suite, missing: Unavailable) -> ForeignSuite:
    return ForeignSuite(
        name=suite.name,
        doc=suite.doc,
        builder=suite.builder,
        preload=suite.preload,
        install_hint=suite.install_hint,
        digest=suite.digest,
        environment=suite.environment,
        entries=suite.models(),
        unavailable=missing,
    )


def _cannot_be_loaded(target: Interpreter, plugin: Plugin, error: PluginAnswerError) -> InfrastructureError:
    kind = plugin.group.rpartition(".")[2].rstrip("s")
    fix = f"install {error.missing.partition('.')[0]}" if error.missing else f"uninstall {plugin.package}"
    return InfrastructureError(
        f"{kind} {plugin.name!r} ({plugin.package} {plugin.version}) cannot be loaded by {target.path}: "
        f"{error.message}",
        hint=target.pip(fix),
    )

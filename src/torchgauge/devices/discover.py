"""Which devices there are and what each can do: the answers behind ``torchgauge devices`` and ``--device``.

Parent side: registered descriptors plus whatever accelerator a probe of the target interpreter finds.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from torchgauge import registry
from torchgauge.devices.device import Device, driver_version
from torchgauge.devices.host import host_conditions, host_identity
from torchgauge.devices.installed import ADD_ENTRY, plain, provides, without_entry
from torchgauge.devices.privateuse1 import device_for
from torchgauge.devices.probe import (
    AUTOLOAD_VARIABLE,
    TIMEOUT_S,
    DeviceFacts,
    HookFact,
    ProbeReport,
    ProbeState,
    TorchBuild,
    Unit,
    probe,
)
from torchgauge.devices.verified import NOT_STATED, Verified, verified
from torchgauge.errors import InfrastructureError, UnknownNameError, UsageError
from torchgauge.records import DeviceTarget

GROUP = "torchgauge.devices"
TARGET = re.compile(r"(?P<name>[^.@:/\s]+)(?:\.(?P<index>\d+))?")


class Presence(str, Enum):
    """Whether a device can be used now."""

    PRESENT = "present"
    ABSENT = "absent"
    BROKEN = "broken"


class Why(str, Enum):
    """Why a device is not present, as far as a probe can tell."""

    PACKAGE_MISSING = "package missing"
    NOT_BUILT = "not in this torch"
    NO_DEVICE = "no device or driver"
    IMPORT_RAISED = "import raised"
    HOOK_FAILED = "does not answer"
    PLUGIN_BROKEN = "plugin broken"


@dataclass(frozen=True)
class DeviceReport:
    """One device as the target interpreter sees it; ``compile`` pairs backends with refusals (or "")."""

    name: str
    label: str
    torch_type: str | None
    presence: Presence
    why: Why | None = None
    reason: str = ""
    fix: str = ""
    provider: str = ""
    count: int = 0
    units: tuple[Unit, ...] = ()
    driver: str = ""
    fork_safe: bool = False
    torch: TorchBuild | None = None
    autocast_dtypes: tuple[str, ...] = ()
    compile_default: str = ""
    compile: tuple[tuple[str, str], ...] = ()
    distributed_backend: str | None = None
    profiler: str = ""
    telemetry: tuple[str, ...] = ()
    tool: str = ""
    hooks: tuple[HookFact, ...] = ()
    runner_labels: tuple[str, ...] = ()
    verified: Verified = NOT_STATED

    @property
    def model(self) -> str:
        """The model of the first device of the type."""
        return self.units[0].model if self.units else ""


def parse_target(text: str) -> DeviceTarget:
    """The device and index that ``name`` or ``name.index`` names; raises :class:`UsageError`."""
    found = TARGET.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            f"{text!r} names no device", hint="write NAME or NAME.INDEX, for example cpu or npu.1"
        )
    return DeviceTarget(found["name"], int(found["index"] or 0))


def find_device(
    name: str, python: str, *, report: ProbeReport | None = None, timeout: float = TIMEOUT_S
) -> Device:
    """The descriptor called ``name``: registered, or found by a probe (``report`` saves that probe).

    Raises :class:`InfrastructureError` where the package that should provide it is broken, and
    :class:`UnknownNameError` for a name that nothing answers to.
    """
    registered = registry.names(GROUP)
    if name in registered:
        device: Device = registry.load(GROUP, name)
        return device
    report = report or probe(python, timeout=timeout)
    facts = report.accelerator
    if facts is not None and facts.torch_type == name:
        return device_for(name, report)
    known = {*registered, *([facts.torch_type] if facts is not None else [])}
    libraries = {plain(package) for package, _version in report.packages}
    silent = [item for item in report.silent if provides(item[0], name) and item[0] not in libraries]
    if silent:
        raise InfrastructureError(f"device {name!r} is missing: {without_entry(*silent[0])}", hint=ADD_ENTRY)
    if report.trouble is None:
        raise UnknownNameError("device", name, known)
    cause, fix = report.trouble.cause, report.trouble.fix
    if any(_alike(name, item.name) for item in report.extensions):
        raise InfrastructureError(f"device {name!r} is broken: {cause}", hint=fix)
    packages = ", ".join(sorted({item.package or item.name for item in report.extensions}))
    maybe = f", or a device of {packages}, which failed to load" if packages else ""
    listed = ", ".join(sorted(known))
    hint = f"one of: {listed}{maybe}. The search for other devices failed: {cause}; {fix}"
    raise UnknownNameError("device", name, known, hint=hint)


def why_absent(device: Device, report: ProbeReport) -> DeviceReport | None:
    """What keeps ``device`` away, as ``report`` says; None where it is there, or where it runs no torch."""
    if device.torch_type is None:
        return None
    usable = report.usable or report
    facts = usable.device(device.torch_type)
    if facts is not None and facts.count:
        return None
    entry = DeviceReport(device.name, device.label, device.torch_type, *_why_not(device, report))
    return replace(entry, torch=usable.torch, tool=device.provision.tool, runner_labels=device.runner_labels)


def known_devices(
    python: str,
    *,
    report: ProbeReport | None = None,
    timeout: float = TIMEOUT_S,
    plugins: Mapping[str, Device] | None = None,
) -> list[DeviceReport]:
    """Every registered device, then the accelerator and the broken extensions that a deep probe finds.

    ``plugins`` are the registered devices by name where ``python`` has others than this process.
    """
    report = report or probe(python, timeout=timeout, deep=True)
    found: list[DeviceReport] = []
    claimed: set[str] = set()
    for name in registry.names(GROUP) if plugins is None else sorted(plugins):
        try:
            device: Device = registry.load(GROUP, name) if plugins is None else plugins[name]
        except InfrastructureError as error:
            broken = (Presence.BROKEN, Why.PLUGIN_BROKEN, error.message, error.hint)
            found.append(DeviceReport(name, name, None, *broken))
            continue
        claimed.update(plain(each) for each in device.provision.distributions)
        found.append(replace(_registered(device, python, report, timeout), verified=verified(name)))
    named = {entry.torch_type for entry in found}
    facts = report.accelerator
    if facts is not None and facts.torch_type not in named and (report.ok or facts.count):
        found.append(_discovered(facts, report))
    elif report.state is ProbeState.BROKEN and report.extensions:
        found.extend(_broken_extensions(report, claimed))
    return found


def _registered(device: Device, python: str, report: ProbeReport, timeout: float) -> DeviceReport:
    if device.torch_type is None:
        entry = DeviceReport(device.name, device.label, None, Presence.PRESENT, count=1)
        return replace(entry, fork_safe=device.fork_safe, runner_labels=device.runner_labels)
    if absent := why_absent(device, report):
        return absent
    usable = report.usable or report
    facts = usable.device(device.torch_type)
    assert facts is not None
    own = {key: value for key, value in device.environment(()).items() if key != AUTOLOAD_VARIABLE}
    if own and report.ok:  # only a device that is there is worth another probe under its own variables
        again = probe(python, report.autoload, timeout, deep=True, environment=own)
        facts = again.device(device.torch_type) or facts
    return _filled(device, facts, usable)


def _why_not(device: Device, report: ProbeReport) -> tuple[Presence, Why, str, str]:
    """What keeps a registered device away, and what to type: the first of the causes that applies."""
    provision, trouble = device.provision, report.trouble
    packages = {plain(name): version for name, version in report.packages}
    packages.update({plain(item.package): item.version for item in report.extensions})
    packages.update(report.silent)
    wanted = [plain(name) for name in provision.distributions]
    installed = next((name for name in wanted if name in packages), "")
    loaded = any(plain(item.package) in wanted for item in report.extensions)
    if trouble is not None and (loaded or report.usable is None):
        why = Why.PACKAGE_MISSING if report.state is ProbeState.NO_TORCH else Why.IMPORT_RAISED
        return Presence.BROKEN, why, trouble.cause, trouble.fix
    if wanted and not installed and not _built(device, report):
        reason = f"package {' or '.join(provision.distributions)} is not installed"
        return Presence.ABSENT, Why.PACKAGE_MISSING, reason, provision.install
    usable = report.usable or report
    version = usable.torch.version if usable.torch is not None else "?"
    if not _built(device, report):
        reason = f"torch {version} is not built for this device"
        silent = dict(report.silent)
        if installed and installed in silent:
            reason = without_entry(installed, silent[installed])
            return Presence.ABSENT, Why.NOT_BUILT, reason, ADD_ENTRY
        if installed:
            reason = f"{installed} {packages[installed]} is installed, but torch {version} did not load it"
        return Presence.ABSENT, Why.NOT_BUILT, reason, provision.install
    found = usable.availability(str(device.torch_type))
    said = found.problem if found is not None and found.problem else "torch counts none"
    tool = provision.tool
    if tool and shutil.which(tool) is None:
        return Presence.ABSENT, Why.NO_DEVICE, said, f"install the driver: {tool} is not on the PATH"
    return Presence.ABSENT, Why.NO_DEVICE, said, f"{tool} lists the driver's devices" if tool else ""


def _built(device: Device, report: ProbeReport) -> bool:
    usable = report.usable or report
    found = usable.availability(str(device.torch_type))
    return found is not None and found.built


def _discovered(facts: DeviceFacts, report: ProbeReport) -> DeviceReport:
    device = device_for(facts.torch_type, report)
    entry = _filled(device, facts, report)
    if report.trouble is not None:
        trouble = report.trouble
        why = Why.IMPORT_RAISED
        return replace(entry, presence=Presence.BROKEN, why=why, reason=trouble.cause, fix=trouble.fix)
    silent = next((hook for hook in facts.hooks if hook.name == "device count"), None)
    if facts.count == 0 and silent is not None:
        why = Why.HOOK_FAILED
        reason = f"{silent.name}: {silent.problem}"
        return replace(entry, presence=Presence.BROKEN, why=why, reason=reason)
    if facts.count == 0:
        reason = f"torch is built for {facts.torch_type!r}, but this machine shows no such device"
        return replace(entry, presence=Presence.ABSENT, why=Why.NO_DEVICE, reason=reason)
    return entry


def _broken_extensions(report: ProbeReport, claimed: set[str]) -> list[DeviceReport]:
    """One entry for each package that ``import torch`` loads and that no adapter has ``claimed``.

    Which of them is to blame is not known.
    """
    trouble = report.trouble
    assert trouble is not None
    return [
        DeviceReport(
            name=item.name,
            label=item.package or item.name,
            torch_type=None,
            presence=Presence.BROKEN,
            why=Why.IMPORT_RAISED,
            reason=trouble.cause,
            fix=trouble.fix,
            provider=_provider(item.package, item.version),
            torch=report.torch,
        )
        for item in report.extensions
        if plain(item.package) not in claimed
    ]


def _filled(device: Device, facts: DeviceFacts, report: ProbeReport) -> DeviceReport:
    on_cpu = facts.torch_type == "cpu"
    build = report.torch
    own = build is not None and build.privateuse1 == facts.torch_type
    providers = [_provider(item.package, item.version) for item in report.extensions] if own else []
    flavour = build.flavour.partition(" ")[0] if build is not None else ""
    silent = next((hook for hook in facts.hooks if hook.name == "synchronize" and not hook.source), None)
    return DeviceReport(
        name=device.name,
        label=getattr(device, "flavour_labels", {}).get(flavour, device.label),
        torch_type=device.torch_type,
        presence=Presence.PRESENT if silent is None else Presence.BROKEN,
        why=None if silent is None else Why.HOOK_FAILED,
        reason="" if silent is None else silent.problem,
        provider=", ".join(providers),
        count=facts.count,
        units=(_host_unit(),) if on_cpu else facts.units,
        driver=facts.driver or driver_version(device.provision),
        fork_safe=device.fork_safe,
        torch=build,
        autocast_dtypes=facts.autocast_dtypes,
        compile_default=device.compile_backend,
        compile=facts.compile,
        distributed_backend=facts.distributed_backend,
        profiler=facts.profiler,
        telemetry=tuple(sorted(host_conditions())) if on_cpu else facts.telemetry,
        tool=device.provision.tool,
        hooks=facts.hooks,
        runner_labels=device.runner_labels,
    )


def _host_unit() -> Unit:
    host = host_identity()
    memory = host.get("host.memory_bytes")
    return Unit(0, str(host["cpu.model"]), memory if isinstance(memory, int) else None)


def _provider(package: str, version: str) -> str:
    return f"{package} {version}".strip()


def _alike(name: str, extension: str) -> bool:
    """Whether a package's entry point, such as ``torch_npu``, may be what provides device ``npu``."""
    return name == extension or name in re.split(r"[_\-.]", extension)

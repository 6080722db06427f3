"""Which devices there are and what each can do: the answers behind ``torchgauge devices`` and ``--device``.

Parent side: registered descriptors plus whatever accelerator a probe of the target interpreter finds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum

from torchgauge import registry
from torchgauge.devices.device import Device
from torchgauge.devices.host import host_conditions, host_identity
from torchgauge.devices.privateuse1 import device_for
from torchgauge.devices.probe import (
    AUTOLOAD_VARIABLE,
    TIMEOUT_S,
    DeviceFacts,
    HookFact,
    ProbeReport,
    ProbeState,
    TorchBuild,
    probe,
)
from torchgauge.errors import InfrastructureError, UnknownNameError, UsageError
from torchgauge.records import DeviceTarget

GROUP = "torchgauge.devices"
TARGET = re.compile(r"(?P<name>[^.@:/\s]+)(?:\.(?P<index>\d+))?")


class Presence(str, Enum):
    """Whether a device can be used now."""

    PRESENT = "present"
    ABSENT = "absent"
    BROKEN = "broken"


@dataclass(frozen=True)
class DeviceReport:
    """One device as the target interpreter sees it; ``compile`` pairs backends with refusals (or "")."""

    name: str
    label: str
    torch_type: str | None
    presence: Presence
    reason: str = ""
    fix: str = ""
    provider: str = ""
    count: int = 0
    model: str = ""
    memory_bytes: int | None = None
    fork_safe: bool = False
    torch: TorchBuild | None = None
    autocast_dtypes: tuple[str, ...] = ()
    compile: tuple[tuple[str, str], ...] = ()
    distributed_backend: str | None = None
    telemetry: tuple[str, ...] = ()
    hooks: tuple[HookFact, ...] = ()
    runner_labels: tuple[str, ...] = ()


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
    if report.trouble is None:
        raise UnknownNameError("device", name, known)
    cause, fix = report.trouble.cause, report.trouble.fix
    if any(_alike(name, item.name) for item in report.extensions):
        raise InfrastructureError(f"device {name!r} is broken: {cause}", hint=fix)
    listed = ", ".join(sorted(known))
    hint = f"one of: {listed}. Other devices could not be looked for: {cause}; {fix}"
    raise UnknownNameError("device", name, known, hint=hint)


def known_devices(
    python: str, *, report: ProbeReport | None = None, timeout: float = TIMEOUT_S
) -> list[DeviceReport]:
    """Every registered device, then the accelerator and the broken extensions that a deep probe finds."""
    report = report or probe(python, timeout=timeout, deep=True)
    found = [_registered(name, python, report, timeout) for name in registry.names(GROUP)]
    named = {entry.torch_type for entry in found}
    facts = report.accelerator
    if facts is not None and facts.torch_type not in named and (report.ok or facts.count):
        found.append(_discovered(facts, report))
    elif report.state is ProbeState.BROKEN and report.extensions:
        found.extend(_broken_extensions(report))
    return found


def _registered(name: str, python: str, report: ProbeReport, timeout: float) -> DeviceReport:
    try:
        device: Device = registry.load(GROUP, name)
    except InfrastructureError as error:
        return DeviceReport(name, name, None, Presence.BROKEN, error.message, error.hint)
    if device.torch_type is None:
        return DeviceReport(name, device.label, None, Presence.PRESENT, count=1, fork_safe=device.fork_safe)
    variables = device.environment(())
    own = {key: value for key, value in variables.items() if key != AUTOLOAD_VARIABLE}
    if own:
        autoload = variables.get(AUTOLOAD_VARIABLE, "1") == "1"
        report = probe(python, autoload, timeout, deep=True, environment=own)
    usable = report.usable or report
    facts = usable.device(device.torch_type)
    if facts is None or facts.count == 0:
        presence = Presence.BROKEN if usable.trouble is not None else Presence.ABSENT
        trouble = usable.trouble
        reason = trouble.cause if trouble is not None else f"this torch sees no {device.torch_type!r} device"
        fix = trouble.fix if trouble is not None else ""
        return DeviceReport(name, device.label, device.torch_type, presence, reason, fix, torch=usable.torch)
    return _filled(device, facts, usable)


def _discovered(facts: DeviceFacts, report: ProbeReport) -> DeviceReport:
    device = device_for(facts.torch_type, report)
    entry = _filled(device, facts, report)
    absent = next((hook for hook in facts.hooks if hook.name == "synchronize" and not hook.source), None)
    if report.trouble is not None:
        trouble = report.trouble
        return replace(entry, presence=Presence.BROKEN, reason=trouble.cause, fix=trouble.fix)
    if facts.count == 0:
        reason = f"torch is built for {facts.torch_type!r}, but this machine shows no such device"
        return replace(entry, presence=Presence.ABSENT, reason=reason)
    if absent is not None:
        return replace(entry, presence=Presence.BROKEN, reason=absent.problem)
    return entry


def _broken_extensions(report: ProbeReport) -> list[DeviceReport]:
    """One entry for each package that ``import torch`` loads: which of them is to blame is not known."""
    trouble = report.trouble
    assert trouble is not None
    return [
        DeviceReport(
            name=item.name,
            label=item.package or item.name,
            torch_type=None,
            presence=Presence.BROKEN,
            reason=trouble.cause,
            fix=trouble.fix,
            provider=_provider(item.package, item.version),
            torch=report.torch,
        )
        for item in report.extensions
    ]


def _filled(device: Device, facts: DeviceFacts, report: ProbeReport) -> DeviceReport:
    on_cpu = facts.torch_type == "cpu"
    host = host_identity() if on_cpu else {}
    own = report.torch is not None and report.torch.privateuse1 == facts.torch_type
    providers = [_provider(item.package, item.version) for item in report.extensions] if own else []
    return DeviceReport(
        name=device.name,
        label=device.label,
        torch_type=device.torch_type,
        presence=Presence.PRESENT,
        provider=", ".join(providers),
        count=facts.count,
        model=str(host["cpu.model"]) if on_cpu else facts.model,
        memory_bytes=_bytes(host.get("host.memory_bytes")) if on_cpu else facts.memory_bytes,
        fork_safe=device.fork_safe,
        torch=report.torch,
        autocast_dtypes=facts.autocast_dtypes,
        compile=facts.compile,
        distributed_backend=facts.distributed_backend,
        telemetry=tuple(sorted(host_conditions())) if on_cpu else facts.telemetry,
        hooks=facts.hooks,
        runner_labels=device.runner_labels,
    )


def _provider(package: str, version: str) -> str:
    return f"{package} {version}".strip()


def _bytes(value: object) -> int | None:
    return value if isinstance(value, int) else None


def _alike(name: str, extension: str) -> bool:
    """Whether a package's entry point, such as ``torch_npu``, may be what provides device ``npu``."""
    return name == extension or name in re.split(r"[_\-.]", extension)

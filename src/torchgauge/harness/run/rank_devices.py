"""Refusals of several processes before anything starts: too few devices, and a launcher such as torchrun."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from torchgauge.devices.device import Device
from torchgauge.devices.discover import known_devices
from torchgauge.errors import UsageError
from torchgauge.harness.interpreter.foreign_plugins import plugin_devices
from torchgauge.harness.interpreter.interpreter import Interpreter
from torchgauge.records import Group, Refusal, Status
from torchgauge.suites.suite import HOST


def refuse_launched(environment: Mapping[str, str]) -> None:
    """Raise :class:`UsageError` where a launcher such as torchrun has started us as one process of several.

    Each of them would run the whole plan, and disturb the others.
    """
    count, rank = environment.get("WORLD_SIZE", ""), environment.get("RANK", "")
    if count.isdecimal() and int(count) > 1 and "MASTER_ADDR" in environment:
        raise UsageError(
            f"torchgauge was launched as process {rank} of {count}, as by torchrun, "
            "and each process would run all cases",
            hint="omit the launcher: torchgauge starts the processes of a case itself",
        )


def refuse_too_many(
    there: Interpreter, groups: tuple[Group, ...], devices: Mapping[str, Device]
) -> tuple[Group, ...]:
    """``groups``, those of more processes than ``there`` has devices refused; one process has one device.

    The host takes any number. Devices are counted, in a child process, only where that decides anything.
    """
    asking = {each.device.name for each in groups if _needs_devices(each, devices)}
    if not asking:
        return groups
    found = known_devices(there.path, report=there.report, plugins=plugin_devices(there))
    counts = {each.name: each.count for each in found if each.name in asking}
    return tuple(
        _refused(each, counts[each.device.name])
        if each.device.name in counts and _needs_devices(each, devices)
        else each
        for each in groups
    )


def _needs_devices(group: Group, devices: Mapping[str, Device]) -> bool:
    return group.workload.processes > 1 and devices[group.device.name].torch_type not in (None, HOST)


def _refused(group: Group, count: int) -> Group:
    """``group``, refused where its processes find too few; the first has the device that is named."""
    first, wanted = group.device.index, group.workload.processes
    if first + wanted <= count:
        return group
    name = group.device.name
    there = f"there {'is' if count == 1 else 'are'} {count}" if count else "there is none"
    after = f", from {group.device} on" if first else ""
    reason = f"{wanted} processes need {wanted} devices {name!r}{after}: {there}"
    refusal = Refusal(Status.UNSUPPORTED, reason)
    return replace(group, cases=tuple(replace(each, refusal=each.refusal or refusal) for each in group.cases))

"""What a person hears at once of a device that is not here, instead of a row for each of its cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchgauge.counted import counted
from torchgauge.devices.device import Device
from torchgauge.devices.discover import DeviceReport, Presence, Why, why_absent
from torchgauge.devices.probe import ProbeReport, probe
from torchgauge.errors import InfrastructureError
from torchgauge.harness.interpreter.interpreter import Interpreter
from torchgauge.harness.pool.device_lease import place_of
from torchgauge.harness.pool.quarantine import read
from torchgauge.records import DeviceTarget, Group
from torchgauge.suites.expectations import personal
from torchgauge.suites.suite import HOST

LISTED = "torchgauge devices lists the devices of this machine"


def refuse_absent(there: Interpreter, groups: Sequence[Group], devices: Mapping[str, Device]) -> None:
    """Raise :class:`InfrastructureError` where a device of ``groups`` is known not to be there.

    Not of a device that a person's file of expectations is about, which wants its rows, nor for checks where
    its package is there and broken: their card says what is missing. Only an accelerator costs a probe (a
    child process, seconds).
    """
    asked: dict[DeviceTarget, bool] = {}  # whether nothing but checks is to run on it
    for each in groups:
        if not personal(each.device.name):
            asked[each.device] = each.checks and asked.get(each.device, True)
    ours = {name: device for name, device in devices.items() if device.torch_type is not None}
    targets = sorted((each for each in asked if each.name in ours), key=str)
    report = None
    if any(ours[each.name].torch_type != HOST for each in targets):
        report = there.report or probe(there.path)
    found = [_missing(each, ours[each.name], report, examined=asked[each]) for each in targets]
    missing = [each for each in found if each is not None]
    if missing:
        hints = dict.fromkeys(filter(None, [*(hint for _, hint in missing), LISTED]))
        raise InfrastructureError("; ".join(what for what, _ in missing), hint="; ".join(hints))


def _missing(
    target: DeviceTarget, device: Device, report: ProbeReport | None, *, examined: bool
) -> tuple[str, str] | None:
    """What is missing of ``target``, and what to type; None where it is there, or broken and ``examined``."""
    count = 1
    if device.torch_type != HOST:
        assert report is not None
        if absent := why_absent(device, report):
            if examined and _may_open(device, absent, report):
                return None
            return f"device {target.name!r} is {absent.presence.value} here: {absent.reason}", absent.fix
        facts = (report.usable or report).device(str(device.torch_type))
        assert facts is not None
        count = facts.count
    if target.index < count:
        return None
    return f"device {target.name!r} has no index {target.index} here: it has {counted(count, 'device')}", ""


def _may_open(device: Device, absent: DeviceReport, report: ProbeReport) -> bool:
    """Whether a session may be there although the probe saw no device: what to make of it, checks will say.

    Its package is broken, or something keeps torch from being imported, which may be its package; or torch
    does not know the type, and an adapter imports what brings it.
    """
    if absent.presence is Presence.BROKEN or not report.ok:
        return True
    return absent.why is Why.NOT_BUILT and report.availability(str(device.torch_type)) is None


def refuse_quarantined(groups: Sequence[Group], devices: Mapping[str, Device]) -> None:
    """Raise :class:`InfrastructureError` where each device of ``groups`` is in quarantine on this machine.

    Where some are not, those take over what they can of the others' cases. Checks examine it.
    """
    targets = sorted({each.device for each in groups if not each.checks}, key=str)
    places = [place_of(devices[each.name], each) for each in targets]
    found = [None if place is None else read(place) for place in places]
    if found and all(found):
        said = [(str(target), each) for target, each in zip(targets, found, strict=True) if each is not None]
        raise InfrastructureError(
            "; ".join(f"device {name!r} is {each.words}" for name, each in said),
            hint="; ".join(f"{each.lift}, once the device works" for _, each in said),
        )

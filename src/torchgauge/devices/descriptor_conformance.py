"""The promises of a device descriptor, checked in any process: for vendors' tests as well as ours."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from torchgauge.devices.checking import Violations, violations_of
from torchgauge.devices.device import Device, Provision
from torchgauge.records import Configuration, Workload
from torchgauge.registry import resolve

WORKLOAD = Workload(suite="toy", model="mlp")


def check_device(device: Device) -> list[str]:
    """Sentences that say which promises a descriptor breaks; imports no torch, and its modules may not."""
    return violations_of(DEVICE_CHECKS, device)


def _names_of_device(device: Device) -> Violations:
    if not re.fullmatch(r"[^.@:/\s]+", device.name):
        yield f"{device.name!r} is not allowed in a case id"
    if not device.label:
        yield "no label"
    if device.torch_type == "":
        yield "an empty torch type; None means that the device does not run torch"
    if not all(isinstance(label, str) for label in device.runner_labels):
        yield f"runner_labels is {device.runner_labels!r}"
    if device.torch_type is not None and not device.compile_backend:
        yield "no compile_backend"


def _environment(device: Device) -> Violations:
    fixed, one, two = device.environment(()), device.environment((0,)), device.environment((2, 5))
    for variables in (fixed, one, two):
        if not all(isinstance(text, str) for pair in variables.items() for text in pair):
            yield f"{variables!r} is not a mapping of strings to strings"
    if fixed.items() - two.items():
        yield "environment() with two indices drops a variable that it sets without an index"
    chosen = {name: value for name, value in two.items() if name not in fixed}
    if len(chosen) > 1 or any(value != "2,5" for value in chosen.values()):
        yield f"indices 2 and 5 became {chosen!r}"


def _provision(device: Device) -> Violations:
    provision: object = device.provision
    if not isinstance(provision, Provision):
        yield f"provision is {provision!r}"
    elif device.torch_type not in (None, "cpu") and not provision.install:
        yield "provision has no install command"


def _session_reference(device: Device) -> Violations:
    before = "torch" in sys.modules
    if not callable(resolve(device.session)):
        yield f"{device.session} is not callable"
    if "torch" in sys.modules and not before:
        yield f"reading {device.session} imports torch"


def _refusals(device: Device) -> Violations:
    for backend in ("eager", "inductor"):
        answer: object = device.cannot_run(WORKLOAD, Configuration(name=backend, backend=backend))
        if answer is not None and not (isinstance(answer, str) and answer):
            yield f"cannot_run gave {answer!r}"


def _expectations(device: Device) -> Violations:
    path = str(getattr(device, "expectations", ""))
    if path and not (Path(path).is_absolute() and Path(path).is_file()):
        yield f"expectations is {path!r}, which is not the absolute path of a file"


DEVICE_CHECKS: tuple[Callable[[Device], Violations], ...] = (
    _names_of_device,
    _environment,
    _provision,
    _session_reference,
    _refusals,
    _expectations,
)

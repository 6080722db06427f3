"""The variables that devices declare for their workers: one device's, and those of all that are installed.

A probe asks torch for all devices, and so is given the variables of all.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache

from torchgauge import registry
from torchgauge.devices.device import Device
from torchgauge.errors import TorchgaugeError


def variables_of(device: Device) -> tuple[str, ...]:
    """Names and patterns that ``device`` declares; a device that is no descriptor may declare none."""
    return tuple(getattr(device, "passed_variables", ()))


@cache
def declared_variables() -> tuple[str, ...]:
    """Names and patterns of all installed devices; a package that cannot be loaded declares nothing."""
    found: list[str] = []
    for name in registry.names("torchgauge.devices"):
        with suppress(TorchgaugeError):  # whoever asks for the device by its name is told
            found += variables_of(registry.load("torchgauge.devices", name))
    return tuple(dict.fromkeys(found))

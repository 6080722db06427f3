"""The variables that installed devices declare: what a probe is given, which asks torch for all of them."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

from torchgauge import registry
from torchgauge.errors import TorchgaugeError


@cache
def declared_variables() -> tuple[str, ...]:
    """Names and patterns of all installed devices; a package that cannot be loaded declares nothing."""
    found: list[str] = []
    for name in registry.names("torchgauge.devices"):
        with suppress(TorchgaugeError):  # whoever asks for the device by its name is told
            found += getattr(registry.load("torchgauge.devices", name), "passed_variables", ())
    return tuple(dict.fromkeys(found))

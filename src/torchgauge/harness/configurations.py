"""The named configurations: how a workload is executed."""

from __future__ import annotations

from torchgauge.errors import UnknownNameError
from torchgauge.records import Configuration

CONFIGURATIONS: dict[str, Configuration] = {
    configuration.name: configuration
    for configuration in (
        Configuration("eager", "eager"),
        Configuration("inductor", "inductor"),
        Configuration("aot_eager", "aot_eager"),
    )
}
DOCS = {
    "eager": "operator by operator, as written",
    "inductor": "torch.compile with its default backend",
    "aot_eager": "torch.compile's capture and autograd tracing without code generation",
}


def configuration(name: str) -> Configuration:
    """The configuration called ``name``; raises :class:`UnknownNameError`."""
    if name not in CONFIGURATIONS:
        raise UnknownNameError("configuration", name, CONFIGURATIONS)
    return CONFIGURATIONS[name]

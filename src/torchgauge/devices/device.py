"""The parent side of a device: a frozen descriptor that never imports torch.

A vendor writes one of these and one session class (:mod:`torchgauge.devices.session`), names the
descriptor under the entry-point group ``torchgauge.devices`` and edits nothing of ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from torchgauge.records import Configuration, Workload


class Device(Protocol):
    """What the parent must know of a device before any process starts."""

    @property
    def name(self) -> str:
        """The name in case ids and on the command line."""

    @property
    def label(self) -> str:
        """The name that people read."""

    @property
    def torch_type(self) -> str | None:
        """The torch device string, or None where the device runs no torch at all."""

    @property
    def fork_safe(self) -> bool:
        """Whether a process that imported torch, but touched no device, may fork and use the device."""

    @property
    def session(self) -> str:
        """``module:callable`` that the worker imports and calls as ``callable(name, index)``."""

    @property
    def runner_labels(self) -> tuple[str, ...]:
        """Labels of CI runners that have the device."""

    def environment(self, indices: tuple[int, ...]) -> dict[str, str]:
        """Environment variables that a worker needs before it imports torch."""

    def cannot_run(self, workload: Workload, configuration: Configuration) -> str | None:
        """Why the device cannot run this at all, known without a process; None where it may."""


@dataclass(frozen=True)
class DeviceDescriptor:
    """A device as data; enough for every device whose answers need no computing."""

    name: str
    label: str
    session: str
    torch_type: str | None
    fork_safe: bool = False
    runner_labels: tuple[str, ...] = ()
    fixed_environment: dict[str, str] = field(default_factory=dict)
    visibility_variable: str = ""

    def environment(self, indices: tuple[int, ...]) -> dict[str, str]:
        """The fixed variables, and the visibility variable set to ``indices``."""
        variables = dict(self.fixed_environment)
        if self.visibility_variable and indices:
            variables[self.visibility_variable] = ",".join(str(index) for index in indices)
        return variables

    def cannot_run(self, workload: Workload, configuration: Configuration) -> str | None:
        """Nothing is refused without a process."""
        return None

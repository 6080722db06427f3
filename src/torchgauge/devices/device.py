"""The parent side of a device: a frozen descriptor that never imports torch.

A vendor writes one of these and one session class (:mod:`torchgauge.devices.session`), names the
descriptor under the entry-point group ``torchgauge.devices`` and edits nothing of ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from torchgauge.records import Configuration, Workload


@dataclass(frozen=True)
class Provision:
    """Where a device comes from: what ``torchgauge devices`` says and looks for where it is absent.

    ``distributions`` are packages of which one provides the device (none: torch's own build does);
    ``install`` is what to type; ``tool`` is the vendor's command that shows devices and driver;
    ``driver_files`` hold the driver's version, the first that can be read.
    """

    distributions: tuple[str, ...] = ()
    install: str = ""
    tool: str = ""
    driver_files: tuple[str, ...] = ()


def driver_version(provision: Provision) -> str:
    """The driver's version as the first readable of its files says it; "" where none can be read.

    A file holds either the version alone (``/sys/module/NAME/version``) or ``Version=...`` on a line.
    """
    for file in provision.driver_files:
        try:
            lines = Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        named = [line.partition("=")[2] for line in lines if line.lower().startswith("version=")]
        for line in (*named, *lines[:1]):
            if line.strip():
                return line.strip()[:80]
    return ""


@dataclass(frozen=True)
class RunnerImage:
    """A container of CI runners that has the device: image and options (none: the runner itself)."""

    image: str = ""
    options: str = ""


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

    @property
    def provision(self) -> Provision:
        """Where the device comes from."""

    @property
    def compile_backend(self) -> str:
        """The backend that ``torch.compile`` should use on the device where none is named."""

    def environment(self, indices: tuple[int, ...]) -> dict[str, str]:
        """Environment variables that a worker needs before it imports torch."""

    def cannot_run(self, workload: Workload, configuration: Configuration) -> str | None:
        """Why the device cannot run this at all, known without a process; None where it may."""


@dataclass(frozen=True)
class DeviceDescriptor:
    """A device as data; enough for every device whose answers need no computing.

    The first of ``visibility_variables`` is set to select devices by index; the others select as well and
    are only named. ``flavour_labels`` are labels by the flavour of the torch build, where one torch type
    serves two vendors. ``passed_variables`` are names of the caller's variables, or patterns with ``*``, that
    workers need beyond those that every process is given.

    ``expectations`` is the path of a file of expectations in the device's own package.
    """

    name: str
    label: str
    session: str
    torch_type: str | None
    fork_safe: bool = False
    runner_labels: tuple[str, ...] = ()
    runner_image: RunnerImage = RunnerImage()
    fixed_environment: dict[str, str] = field(default_factory=dict)
    visibility_variables: tuple[str, ...] = ()
    passed_variables: tuple[str, ...] = ()
    compile_backend: str = "inductor"
    provision: Provision = Provision()
    flavour_labels: dict[str, str] = field(default_factory=dict)
    expectations: str = ""

    def environment(self, indices: tuple[int, ...]) -> dict[str, str]:
        """The fixed variables, and the first visibility variable set to ``indices``."""
        variables = dict(self.fixed_environment)
        if self.visibility_variables and indices:
            variables[self.visibility_variables[0]] = ",".join(str(index) for index in indices)
        return variables

    def cannot_run(self, workload: Workload, configuration: Configuration) -> str | None:
        """Nothing is refused without a process."""
        return None

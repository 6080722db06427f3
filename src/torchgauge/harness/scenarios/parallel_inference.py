"""The same for inference: a forward pass of all processes together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from torchgauge.devices.session import DeviceSession
from torchgauge.harness.scenarios.parallel_training import REFERENCE, largest_peak
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.harness.worker.series import Series
from torchgauge.records import Measurement
from torchgauge.suites.distributed.parallel import PARALLEL, Part, whole
from torchgauge.suites.outputs import observe as to_host

ITERATIONS = 1

__all__ = ["REFERENCE", "details", "enter", "observe", "reference", "step"]


@dataclass
class Forward:
    """A step: a forward pass of one process's part."""

    part: Part

    def __call__(self) -> Any:
        """Its output."""
        return self.part.call(*self.part.args)


def enter() -> None:
    """Switch gradients off for the whole process."""
    torch.set_grad_enabled(False)


def step(subject: Subject) -> Callable[[], Any]:
    """A function that runs one forward pass."""
    return Forward(subject.built.abilities[PARALLEL](subject.module, subject.args))


def observe(subject: Subject) -> dict[str, Any]:
    """The output of all processes together."""
    return to_host(whole(step(subject)()))


def reference(subject: Subject) -> dict[str, Any]:
    """The output of one process."""
    return to_host(subject.module(*subject.args))


def details(series: Series, session: DeviceSession) -> list[Measurement]:
    """Peak memory of the steps in the process that needs most of it."""
    return [largest_peak(series.step, session)]

"""How training by several processes together is stepped, and what of it is compared.

It takes the place of the scenario ``training`` for such models. What is observed is the whole: losses over
the whole batch, gradients and changes gathered from their shards. The reference is the same model in one
process, with the whole batch. Peak memory is that of the process that needs most.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from torchgauge.devices.session import DeviceSession
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.harness.scenarios.training_steps import CHECKED_RATE, ITERATIONS, TIMED_RATE
from torchgauge.harness.worker.case_measurements import single
from torchgauge.harness.worker.memory import RssProbe, peak_of_steps
from torchgauge.harness.worker.ranks import RANKS
from torchgauge.harness.worker.series import Series
from torchgauge.records import Measurement, absent
from torchgauge.suites.distributed.parallel import PARALLEL, Part, mean, whole
from torchgauge.suites.outputs import observe as to_host

REFERENCE = "the same model in one process, with the whole batch"


@dataclass
class Training:
    """A step: forward, loss, backward and one step of SGD, of one process's part."""

    part: Part
    loss: Callable[[Any], Any]
    optimizer: Any

    def __call__(self) -> Any:
        """The loss over this process's part of the batch."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self.part.call(*self.part.args))
        loss.backward()
        self.optimizer.step()
        return loss


def enter() -> None:
    """Gradients are on by default; nothing to do."""


def step(subject: Subject) -> Training:
    """A function that trains once."""
    return _training(subject, _part(subject), TIMED_RATE)


def observe(subject: Subject) -> dict[str, Any]:
    """What all processes together compute in two steps from the model as it was built."""
    return _two_steps(subject, _part(subject), mean)


def reference(subject: Subject) -> dict[str, Any]:
    """What one process computes."""
    kept = copy.deepcopy(subject.module)
    return _two_steps(subject, Part(kept, kept, subject.args), lambda loss: loss)


def details(series: Series, session: DeviceSession) -> list[Measurement]:
    """Peak memory of the steps in the process that needs most of it."""
    return [largest_peak(series.step, session)]


def largest_peak(step: Any, session: DeviceSession) -> Measurement:
    """Peak memory of two more calls of ``step``, in the process that needs most."""
    found = peak_of_steps(step, session, RssProbe(), step)
    (most,) = RANKS.slowest(found.samples[0] if found.samples else None)
    if most is None or most < 0:
        return absent(found.metric, found.absent or "another process measured no peak memory")
    return single(found.metric, most, f"{found.provenance}, process with the highest peak")


def _two_steps(subject: Subject, part: Part, over_all: Callable[[Any], Any]) -> dict[str, Any]:
    training = _training(subject, part, CHECKED_RATE)
    seen: dict[str, Any] = {}
    before = _whole(part.module)
    for iteration in range(ITERATIONS):
        subject.session.seed(subject.seed + iteration)
        loss = over_all(training())
        grads = {name: whole(each.grad) for name, each in part.module.named_parameters()}
        after = _whole(part.module)
        change = {name: after[name] - value for name, value in before.items()}
        seen.update(to_host({"loss": loss, "grad": grads, "change": change}, f"iteration{iteration}"))
        before = after
    return seen


def _whole(module: Any) -> dict[str, Any]:
    return {name: whole(each.detach()).clone() for name, each in module.named_parameters()}


def _training(subject: Subject, part: Part, rate: float) -> Training:
    assert subject.loss is not None
    return Training(part, subject.loss, torch.optim.SGD(part.module.parameters(), lr=rate))


def _part(subject: Subject) -> Part:
    found: Part = subject.built.abilities[PARALLEL](subject.module, subject.args)
    return found

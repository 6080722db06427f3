"""The worker side of scenario ``inference``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.suites.suite import seed_all

ITERATIONS = 1
TIMED = ("out",)
"""Prefixes of the paths that an observation and the result of a timed step share."""


def enter() -> None:
    """Switch gradients off for the whole process, so that no step pays for doing it."""
    import torch

    torch.set_grad_enabled(False)


def step(subject: Subject) -> Callable[[], Any]:
    """A function that runs one forward pass."""
    if subject.autocast is not None:
        return subject.forward
    call, args, kwargs = subject.call, subject.args, subject.kwargs
    return lambda: call(*args, **kwargs)


def observe(subject: Subject) -> dict[str, Any]:
    """The outputs of one seeded forward pass, on the host."""
    from torchgauge.suites.outputs import observe as to_host

    seed_all(subject)
    return to_host(subject.forward())


def timed_result(_subject: Subject, returned: Any) -> dict[str, Any]:
    """Return the outputs of a timed forward pass, on the host."""
    from torchgauge.suites.outputs import observe as to_host

    return to_host(returned, copy=False)

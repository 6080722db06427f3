"""The worker side of scenario ``training``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.suites.suite import seed_all

ITERATIONS = 2
TIMED = ("iteration0.loss", "iteration0.grad.", "iteration0.input_grad.")
"""Prefixes of the paths that an observation and the result of a timed step share."""
GRADIENTS = tuple(f"iteration{n}.{kind}." for n in range(ITERATIONS) for kind in ("grad", "input_grad"))
"""Prefixes of the paths of gradients."""
STATE = ("parameter.", "buffer.")
"""Kinds of state whose changes an observation contains."""
CHECKED_RATE = 1e-2
TIMED_RATE = 1e-9
"""Learning rate of the timed steps: the same arithmetic, but the parameters stay where they are, so that
thousands of steps neither diverge nor drift into denormal numbers."""


def enter() -> None:
    """Gradients are on by default; nothing to do."""


def step(subject: Subject) -> Callable[[], Any]:
    """A function that runs one training step."""
    optimizer = _optimizer(subject, TIMED_RATE)
    inputs = _inputs(subject)

    def train() -> Any:
        loss = _backward(subject, optimizer, inputs)
        optimizer.step()
        return loss

    return train


def observe(subject: Subject) -> dict[str, Any]:
    """Return what two seeded iterations from one state compute.

    These are losses, gradients of parameters and inputs, buffers, and what each step changed.

    A change and not the value after it: beside a parameter, a step of this rate lies below any tolerance.
    """
    from torchgauge.suites.outputs import finite
    from torchgauge.suites.outputs import observe as to_host

    before = {name: value.clone() for name, value in _state(subject).items()}
    optimizer, inputs = _optimizer(subject, CHECKED_RATE), _inputs(subject)
    seen: dict[str, Any] = {}
    for iteration in range(ITERATIONS):
        seed_all(replace(subject, seed=subject.seed + iteration))
        loss = _backward(subject, optimizer, inputs)
        seen.update(to_host({"loss": loss, **_gradients(subject, inputs)}, f"iteration{iteration}"))
        optimizer.step()
        change = _move_on(before, subject)
        buffers = _buffers(subject)
        seen.update(to_host({"change": change}, f"iteration{iteration}", copy=False))
        for path, value in to_host({"buffer": buffers}, f"iteration{iteration}").items():
            seen.update(finite(path, value))  # what became infinite has an infinite change as well
    optimizer.zero_grad(set_to_none=True)
    return seen


def _backward(subject: Subject, optimizer: Any, inputs: list[tuple[str, Any]]) -> Any:
    """Return the loss of one forward pass, with new gradients of parameters and ``inputs``."""
    for _, leaf in inputs:
        leaf.grad = None
    optimizer.zero_grad(set_to_none=True)
    loss = subject.forward_loss()
    loss.backward()
    return loss


def settled(expected: dict[str, Any], shown: dict[str, Any]) -> dict[str, Any]:
    """Return ``shown`` with a gradient of zeros exactly where ``expected`` has one."""
    from torchgauge.suites.outputs import with_leaves_of, zeros_and_none

    return with_leaves_of(expected, shown, zeros_and_none(expected, shown, GRADIENTS))


def timed_result(subject: Subject, returned: Any) -> dict[str, Any]:
    """Return a timed step's loss, and the gradients of the last step that was run."""
    from torchgauge.suites.outputs import observe as to_host

    gradients = _gradients(subject, _inputs(subject))
    return to_host({"loss": returned, **gradients}, "iteration0", copy=False)


def _gradients(subject: Subject, inputs: list[tuple[str, Any]]) -> dict[str, Any]:
    tensors = {"grad": subject.module.named_parameters(), "input_grad": inputs}
    return {
        kind: {name: one.grad for name, one in named if one.grad is not None}
        for kind, named in tensors.items()
    }


def _state(subject: Subject) -> dict[str, Any]:
    """Return the floating-point parameters and buffers of the module in which a change can be computed."""
    import torch

    named = {**dict(subject.module.named_parameters()), **_buffers(subject)}
    return {
        name: value.detach()
        for name, value in named.items()
        if value.is_floating_point() and value.element_size() > 1 and value.layout is torch.strided
    }


def _buffers(subject: Subject) -> dict[str, Any]:
    """Return the buffers that have memory."""
    return {name: value for name, value in subject.module.named_buffers() if not value.is_meta}


def _move_on(before: dict[str, Any], subject: Subject) -> dict[str, Any]:
    """How far the state of the module is from ``before``, which becomes that state.

    Tensor by tensor, so that there are never two copies of it. What a forward pass has registered or resized
    has not moved.
    """
    from torchgauge.suites.outputs import change

    changes = {}
    for name, value in _state(subject).items():
        if name in before and (moved := change(before[name], value)) is not value:
            changes[name] = moved
        before[name] = value.clone()
    return changes


def _inputs(subject: Subject) -> list[tuple[str, Any]]:
    """Return path and tensor of each input that requires a gradient."""
    from torchgauge.suites.placing import tensors

    given = tensors({"args": subject.args, "kwargs": subject.kwargs}, "")
    return [(path, tensor) for path, tensor in given if tensor.requires_grad]


def _optimizer(subject: Subject, rate: float) -> Any:
    """Return SGD of the module's parameters; of an empty one where it has none."""
    import torch

    return torch.optim.SGD([*subject.module.parameters()] or [torch.nn.Parameter(torch.empty(0))], lr=rate)

"""What a step of a TorchBench model is, and what of it is compared; worker side only.

Inference runs the module that ``get_module()`` gives, so that it is compared, compiled and timed as in every
other suite. Training, and the few models whose ``eval()`` does more than run that module, are stepped by
upstream's own ``invoke()``.
"""

from __future__ import annotations

import dataclasses
import random
import sys
from collections.abc import Callable
from typing import Any

import torch

from torchgauge.errors import NotOfferedError
from torchgauge.suites.outputs import observe as to_host
from torchgauge.suites.suite import HOST, BuiltWorkload
from torchgauge.suites.torchbench.reasons import Facts, explained
from torchgauge.suites.torchbench.step_state import Snapshot


def enter() -> None:
    """Nothing: each model says in its own step whether it needs gradients."""


def step(subject: Any) -> Callable[[], Any]:
    """A function that runs one step of the model, as upstream runs it."""
    torch.set_grad_enabled(subject.built.steps.gradients)
    return subject.built.steps.step(subject)  # type: ignore[no-any-return]


def observe(subject: Any) -> dict[str, Any]:
    """What one seeded step shows, on the host; raises :class:`NotOfferedError` where it does nothing."""
    torch.set_grad_enabled(subject.built.steps.gradients)
    return subject.built.steps.observe(subject)  # type: ignore[no-any-return]


@dataclasses.dataclass
class TorchBenchWorkload(BuiltWorkload):
    """A model of TorchBench, with the steps that upstream takes."""

    steps: Any = None

    def place(self, device: Any, dtype: Any, *, apart: bool = False) -> Any:
        """The module, or the instance of upstream's object that lives on ``device``."""
        if isinstance(self.steps, InvokeSteps):
            return self.steps.place(device, dtype)
        return super().place(device, dtype, apart=apart)


class ModuleSteps:
    """One forward pass of the module, without gradients."""

    gradients = False

    def __init__(self, facts: Facts) -> None:
        self.facts = facts

    def step(self, subject: Any) -> Callable[[], Any]:
        """A function that runs one forward pass."""
        if subject.autocast is not None:
            return subject.forward  # type: ignore[no-any-return]
        call, args, kwargs = subject.call, subject.args, subject.kwargs
        return lambda: call(*args, **kwargs)

    def observe(self, subject: Any) -> dict[str, Any]:
        """The outputs of one seeded forward pass, on the host."""
        seed_all(subject)
        with explained(self.facts):
            return to_host(subject.forward())


@dataclasses.dataclass
class Instance:
    """One object of upstream's ``Model`` on one device."""

    model: Any
    module: Any
    snapshot: Snapshot
    current: Any = None

    def use(self, call: Any) -> None:
        """Make the next step run ``call`` in the place of the module."""
        if call is (self.module if self.current is None else self.current):
            return
        try:
            self.model.set_module(call)
        except NotImplementedError as error:
            raise NotOfferedError(
                f"upstream's step takes no other module, so none is compiled: {error}"
            ) from error
        self.current = call


class InvokeSteps:
    """Upstream's own step, taken from one remembered state.

    ``construct`` makes another instance on a device that is not the host; ``gradients`` says whether the step
    needs autograd.
    """

    def __init__(
        self,
        host: Instance,
        construct: Callable[[str], Instance],
        facts: Facts,
        *,
        training: bool,
        gradients: bool,
    ) -> None:
        self.instances = {HOST: host}
        self.construct, self.facts = construct, facts
        self.training, self.gradients = training, gradients

    def place(self, device: Any, dtype: Any) -> Any:
        """The module of the instance on ``device``; raises ``NotImplementedError`` for another dtype."""
        if dtype is not torch.float32:
            raise NotImplementedError(f"upstream's own step was built in float32, not in {dtype}")
        kind = torch.device(device).type
        if kind not in self.instances:
            with explained(self.facts):
                instance = self.construct(kind)
            instance.snapshot.load(self.instances[HOST].snapshot)
            self.instances[kind] = instance
        return self.instances[kind].module

    def step(self, subject: Any) -> Callable[[], Any]:
        """A function that runs one step, from the remembered state on."""
        instance, call = self._instance(subject), subject.call
        instance.snapshot.restore()

        def run() -> Any:
            instance.use(call)
            return instance.model.invoke()

        return run if subject.autocast is None else lambda: _inside(subject.autocast, run)

    def observe(self, subject: Any) -> dict[str, Any]:
        """What one seeded step from the remembered state returns, or what it makes of the parameters.

        Raises :class:`NotOfferedError` for a training step that changes nothing.
        """
        instance = self._instance(subject)
        run = self.step(subject)
        seed_all(subject)
        with explained(self.facts):
            returned = run()
        if not self.training:
            return to_host(returned)
        if not instance.snapshot.changed():
            raise NotOfferedError(_does_nothing(instance.model))
        seen = to_host(_state(instance.snapshot), "state")
        instance.snapshot.restore()
        return seen

    def _instance(self, subject: Any) -> Instance:
        for instance in self.instances.values():
            if instance.module is subject.module:
                return instance
        raise NotImplementedError("upstream's own step runs its own module only")


def seed_all(subject: Any) -> None:
    """Seed the device, PyTorch, Python and, where it is loaded, numpy: models draw from any of them."""
    subject.session.seed(subject.seed)
    random.seed(subject.seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(subject.seed)


def _state(snapshot: Snapshot) -> dict[str, Any]:
    parameters = dict(snapshot.parameters())
    gradients = {path: tensor.grad for path, tensor in parameters.items() if tensor.grad is not None}
    buffers = {path: snapshot.tensors[path] for path in sorted(snapshot.buffers & snapshot.tensors.keys())}
    return {"parameter": parameters, "gradient": gradients, "buffer": buffers}


def _does_nothing(model: Any) -> str:
    """Why a training step left every parameter as it was; upstream often returns its refusal."""
    reason = "no parameter changed and none has a gradient"
    train = getattr(model, "train", None)
    returned = train() if callable(train) else None
    if isinstance(returned, BaseException):
        text = " ".join(str(returned).split())
        reason += f"; it returns {type(returned).__name__}({text[:200]!r})"
    return f"train() does nothing: {reason}"


def _inside(context: Callable[[], Any], run: Callable[[], Any]) -> Any:
    with context():
        return run()

"""What a step of a TorchBench model is, and what of it is compared; worker side only.

Inference runs the module that ``get_module()`` gives, so that it is compared, compiled and timed as in every
other suite. Training, and the few models whose ``eval()`` does more than run that module, are stepped by
upstream's own ``invoke()``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import torch

from torchgauge.errors import NotOfferedError
from torchgauge.suites.leaves import Unknown, leaves
from torchgauge.suites.outputs import (
    ROUNDING_FLOOR,
    Observation,
    alike,
    finite,
    to_host,
    with_leaves_of,
    zeros_and_none,
)
from torchgauge.suites.outputs import observe as observed
from torchgauge.suites.parts import below
from torchgauge.suites.placing import Placed, placed
from torchgauge.suites.suite import HOST, BuiltWorkload, seed_all
from torchgauge.suites.torchbench.reasons import Facts, explained
from torchgauge.suites.torchbench.step_state import WRITTEN, Snapshot, same_bits, thinned

ITERATIONS = 1
"""Number of steps in an observation."""
GRADIENT = "state.gradient."
"""Prefix of the paths of gradients in an observation."""
UPDATE = "state.update."
"""Prefix of the paths of updates."""
OUTPUT = "output."
"""Prefix of the paths of what the module returns in its calls, by their number."""
NO_MOMENTS = (GRADIENT, "state.buffer.", WRITTEN, OUTPUT)
"""Prefixes of the paths of what is neither an update nor state of an optimizer."""
CALLS = 16
"""Number of the first calls in a step whose outputs are compared."""
NUDGE = 1e-6
"""Relative size of random changes of parameters: about ten units in the last place of a float32 number."""
LOOKS = 4
"""Number of steps in which calls of the module are counted, where compiled ones call it less often."""


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


def settled(expected: Observation, shown: Observation) -> Observation:
    """Return ``shown`` with eager's updates and moments in elements that differ by rounded gradients alone.

    Adam and RMSprop divide a gradient by its running RMS, so rounding of a tiny gradient may reverse an
    update. Let ``g`` be eager's gradient and ``d`` its distance from that of ``shown``. An update or a moment
    may differ by ``3 d / |g|``, at most 2, times its tensor's largest element. ``3 d / |g|`` bounds the
    relative change of the square of ``g`` if ``d < |g|``. Otherwise an update may have either sign. No
    element is replaced if its ``d`` is zero, or above :data:`ROUNDING_FLOOR` times the largest of all
    gradients. A missing gradient equals one of zeros, and the moments of its parameter are not compared.
    Outputs are compared only if the module is called as often.
    """
    zeros = zeros_and_none(expected, shown, (GRADIENT,))
    if expected.get(OUTPUT) != shown.get(OUTPUT):
        zeros |= {path for path in {**expected, **shown} if path.startswith(OUTPUT)}
    others = (path for path in {**expected, **shown} if not path.startswith((*NO_MOMENTS, UPDATE)))
    moments = {path for path in others if _gradient_of(path, zeros)}
    result = with_leaves_of(expected, shown, zeros | moments)
    gradients = [leaf for path, leaf in expected.items() if path.startswith(GRADIENT)]
    largest = max((float(leaf.abs().max()) for leaf in gradients if leaf.numel()), default=0.0)
    for path, value in expected.items():
        derived = not path.startswith((*NO_MOMENTS, "state.step."))
        gradient = _gradient_of(path, expected) if derived else ""
        values: Any = (value, shown.get(path))
        slopes: Any = (expected.get(gradient), shown.get(gradient))
        if alike(*values) and alike(*slopes):
            slope, other = (one if one.shape == value.shape else thinned(one) for one in slopes)
            if alike(slope, value):
                gap = (slope - other).abs()
                limit = (3.0 * gap / slope.abs()).clamp(max=2.0) * value.abs().max()
                near = (value - values[1]).abs() <= limit
                rounded = (gap > 0.0) & (gap <= ROUNDING_FLOOR * largest) & near
                if rounded.any():
                    result[path] = torch.where(rounded, *values)
    return result


def _gradient_of(path: str, paths: Collection[str]) -> str:
    """Return the path of a gradient that ends as that of an update or a moment; empty if there is none."""
    parts = path.split(".")
    gradients = (GRADIENT + ".".join(parts[start:]) for start in range(2, len(parts)))
    return next((each for each in gradients if each in paths), "")


TIMED = ("out",)
"""Prefixes of the paths that an observation and the result of a timed step share."""


def timed_result(_subject: Any, returned: Any) -> dict[str, Any]:
    """Return the outputs of a timed step of a module, on the host."""
    return observed(returned, copy=False)


@dataclasses.dataclass
class TorchBenchWorkload(BuiltWorkload):
    """A model of TorchBench, with the steps that upstream takes."""

    steps: Any = None

    def place(self, device: Any, dtype: Any, *, apart: bool = False) -> Placed:
        """Return module and inputs; the module of the instance on ``device`` where upstream steps."""
        if isinstance(self.steps, InvokeSteps):
            module = self.steps.place(device, dtype)
            return placed(None, self.args, self.kwargs, device, dtype)._replace(module=module)
        return super().place(device, dtype, apart=apart)

    def tensors(self, subject: Any) -> dict[str, Any]:
        """Return what a step reads: all that upstream's object holds where the step is its own."""
        instance = self.instance(subject)
        return super().tensors(subject) if instance is None else dict(instance.snapshot.tensors)

    def instance(self, subject: Any) -> Instance | None:
        """Return the instance whose own step runs; None if the module does."""
        return self.steps.instance(subject) if isinstance(self.steps, InvokeSteps) else None

    def compiled(self, subject: Any) -> Any:
        """Return the module; the method itself where it is compiled whole.

        Inside of a module, dynamo leaves the rest of the method to eager after a graph break.
        """
        return subject.module.method if isinstance(subject.module, WholeStep) else subject.module

    def least_calls(self, subject: Any) -> float:
        """Return the least calls of the module in a step of eager, as a share of those in the first step."""
        own = isinstance(self.steps, InvokeSteps)
        return self.steps.least_calls(subject) if own else super().least_calls(subject)


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
            return observed(subject.forward())


class WholeStep(torch.nn.Module):  # type: ignore[misc]
    """Upstream's ``eval()`` or ``train()`` as a module, for models that would otherwise run no compiled code.

    Upstream's runner compiles that method of every model.
    """

    def __init__(self, model: Any, module: Any, test: str) -> None:
        super().__init__()
        self.module, self.test, self.method = module, test, getattr(model, test)

    def forward(self) -> Any:
        """Run the method."""
        return self.method()


class Called(torch.nn.Module):  # type: ignore[misc]
    """A call as a module: many models of upstream replace one module by another only."""

    def __init__(self, call: Callable[..., Any]) -> None:
        super().__init__()
        self.call = call

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the call."""
        return self.call(*args, **kwargs)


class Outputs:
    """A forward hook that keeps what a module returns in its first calls; a copy of it does nothing."""

    def __init__(self) -> None:
        self.calls, self.found = 0, Observation()

    def __call__(self, _module: Any, _args: Any, returned: Any) -> None:
        """Keep what can be compared; NaN is no error in an output that the step does not use."""
        for path, leaf in leaves(returned, f"{OUTPUT}{self.calls}") if self.calls < CALLS else ():
            if not isinstance(leaf, Unknown):
                self.found |= finite(path, to_host(leaf))
        self.calls += 1

    def keep(self, module: Any, run: Callable[[], Any]) -> Any:
        """Return what ``run`` returns, and keep what ``module`` returns in it."""
        if not isinstance(module, torch.nn.Module):
            return run()
        with module.register_forward_hook(self):
            returned = run()
        self.found[OUTPUT] = self.calls
        return returned

    def __reduce__(self) -> Any:
        """Copy or pickle it with its module, as in a step that makes a checkpoint."""
        return partial, (_ignore,)


def _ignore(*_: Any) -> None:
    """Do nothing."""


@dataclasses.dataclass
class Instance:
    """One object of upstream's ``Model`` on one device: it alone decides what its next step runs.

    ``snapshot`` holds the object with ``module`` in its place, so each return to it ends the use of a call.
    ``inputs`` holds the arguments that ``get_module()`` pairs with the module. ``placed`` is the last module
    that took its place.
    """

    model: Any
    module: Any
    snapshot: Snapshot
    inputs: Mapping[str, Any]
    current: Any = None
    placed: Any = None

    def restore(self) -> None:
        """Return to the remembered state, in which the next step runs the module."""
        self.snapshot.restore()
        self.current = self.module

    def renew(self) -> None:
        """Let the next step place its module again, without hooks that came with the last one."""
        self.snapshot.restore_hooks()
        self.withdraw()
        self.current = None

    def present(self) -> StepState:
        """Return a copy of the present state, from which a step can begin."""
        return StepState(self)

    def withdraw(self) -> None:
        """Remove the attribute that :meth:`place` sets for a whole step: it is no state of the model."""
        replaced = self.current is not None and self.current is not self.module
        if replaced and isinstance(self.module, WholeStep):
            vars(self.model).pop(self.module.test, None)
            self.current = None

    @contextmanager
    def returned(self) -> Iterator[list[Any]]:
        """Yield a list of what ``train()`` returns in this context, because ``invoke()`` discards it.

        It stays empty for a compiled :class:`WholeStep`.
        """
        attributes, train, found = vars(self.model), getattr(self.model, "train", None), list[Any]()
        former = attributes.get("train")
        if callable(train):
            attributes["train"] = lambda: found.append(train())
        try:
            yield found
        finally:
            attributes.pop("train", None)
            if former is not None:
                attributes["train"] = former
            self.withdraw()

    def invoke(self, call: Any) -> Any:
        """Run upstream's step with ``call`` in the place of the module."""
        if call is not self.current:
            self.place(call)
        return self.model.invoke()

    def place(self, call: Any) -> None:
        """Put ``call`` in the place of the module, or of the method of a whole step, in all next steps."""
        if isinstance(self.module, WholeStep):
            self.withdraw()
            if call is not self.module:
                # upstream compiles the method; __call__ of a compiled module takes 6 us more
                method = call.forward if isinstance(call, torch.nn.Module) else call
                setattr(self.model, self.module.test, method)
        else:
            self.placed = call if isinstance(call, torch.nn.Module) else Called(call)
            try:
                self.model.set_module(self.placed)
            except NotImplementedError as error:
                if call is not self.module:
                    raise NotOfferedError(
                        f"upstream's step does not accept a compiled module: {error}"
                    ) from error
        self.current = call


def has_usual_set_module(model: Any) -> bool:
    """Return whether ``set_module()`` of upstream's object only replaces its attribute ``model``."""
    return bool(type(model).set_module.__module__ == "torchbenchmark.util.model")


class StepState:
    """The state of an instance after compiled steps, with gradients, from which a step can begin."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        instance.withdraw()
        # steps may have replaced tensors and optimizers
        first = (*instance.snapshot.tensors.values(), *instance.snapshot.optimizers)
        self._snapshot = Snapshot((instance.model, instance.module, first), owner=instance.placed)
        self._snapshot.keep_also(instance.snapshot)
        leaves = (one for one in self._snapshot.tensors.values() if one.is_leaf)
        self._gradients = [(one, one.grad.clone()) for one in leaves if one.grad is not None]

    def restore(self, nudge: int = 0) -> None:
        """Restore the state, and let the next step place its module again.

        With the seed ``nudge``, multiply parameters by about 1 ± :data:`NUDGE`.
        """
        self._snapshot.restore()
        self._instance.renew()
        for tensor, gradient in self._gradients:
            tensor.grad = gradient.clone()
        if nudge:
            dice = torch.Generator().manual_seed(nudge)
            with torch.no_grad():
                for _, tensor in self._snapshot.parameters():
                    tensor.mul_(1.0 + NUDGE * torch.randn(tensor.shape, generator=dice).to(tensor))


class InvokeSteps:
    """Upstream's own step, taken from one remembered state.

    ``construct`` makes another instance on a device that is not the host; ``gradients`` says whether the step
    needs autograd. ``renews`` is whether eager's observed steps call ``set_module()`` again, or None until
    that is decided.
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
        self.least: float | None = None
        unchanged = isinstance(host.module, WholeStep) or has_usual_set_module(host.model)
        self.renews = False if unchanged else None

    def place(self, device: Any, dtype: Any) -> Any:
        """The module of the instance on ``device``; raises ``NotImplementedError`` for another dtype."""
        if dtype is not torch.float32:
            raise NotImplementedError(f"upstream's own step requires float32, not {dtype}")
        kind = torch.device(device).type
        if kind not in self.instances:
            with explained(self.facts):
                instance = self.construct(kind)
            instance.snapshot.load(self.instances[HOST].snapshot)
            self.instances[kind] = instance
        return self.instances[kind].module

    def step(self, subject: Any) -> Callable[[], Any]:
        """A function that runs one step, from the remembered state on."""
        self.instance(subject).restore()
        return self._step(subject, subject.call)

    def _step(self, subject: Any, call: Callable[..., Any]) -> Callable[[], Any]:
        """Return a function that runs one step with ``call`` in the place of the module."""
        run = partial(self.instance(subject).invoke, call)
        return run if subject.autocast is None else lambda: _inside(subject.autocast, run)

    def observe(self, subject: Any) -> dict[str, Any]:
        """Return what one seeded step returns and writes or, in training, the state that it leaves.

        It begins from the remembered state, or after the steps of ``subject.earlier``; each of these draws
        other random numbers. Gradients, numbers and the state of optimizers are returned as values, weights,
        buffers and other tensors as their change in this step. The caller compares and restores the state
        that the step changes. Raises an exception that ``train()`` returns, and :class:`NotOfferedError` for
        a step of eager that changes nothing.
        """
        instance, earlier = self.instance(subject), subject.earlier
        if self.renews is None:
            self._decide_renewal(subject.run_by(instance.module))
        run, former = self.step(subject), dict[str, torch.Tensor]()
        if subject.renew is not None:
            subject.renew()
        if self.renews:
            instance.renew()
        if earlier is not None:
            if earlier.start is None:
                step = self._step(subject, earlier.leader)
                seed_all(subject)
                for _ in range(earlier.count):
                    step()
                earlier.start = StepState(instance)
                instance.renew()
            else:
                earlier.start.restore(earlier.nudge)
            former = instance.snapshot.values()
            subject = dataclasses.replace(subject, seed=subject.seed + earlier.count)
        seed_all(subject)
        shown = self._observed(subject, instance, run, former)
        if earlier is not None and earlier.keeps_end and subject.call is earlier.leader:
            earlier.end = StepState(instance)
        return shown

    def _decide_renewal(self, eager: Any) -> None:
        """Decide whether observed steps of ``eager`` place its module again, as those of compiled code do.

        They do so if this makes other objects, such as a new optimizer, and changes neither gradients nor
        updates, nor the number and the settings of optimizers.
        """
        runs, settings = list[Observation](), list[Any]()
        for self.renews in (False, True):
            with suppress(Exception):  # an upstream method need not accept the module that it has
                runs.append(self.observe(eager))
                settings.append(_settings(self.instance(eager).model))
        kept, renewed = runs if len(runs) == 2 and settings[0] == settings[1] else ({}, {})
        paths = [path for path in {**kept, **renewed} if path.startswith((GRADIENT, UPDATE))]
        equal = all(same_bits(kept.get(path), renewed.get(path)) for path in paths)
        self.renews = equal and kept.keys() != renewed.keys()

    def _observed(
        self, subject: Any, instance: Instance, run: Callable[[], Any], former: dict[str, Any]
    ) -> dict[str, Any]:
        """Run a step and return what it shows; changes are relative to ``former`` values, by path."""
        whole, outputs = isinstance(instance.module, WholeStep), Outputs()
        run = run if whole else partial(outputs.keep, subject.call, run)
        with explained(self.facts), instance.snapshot.gradients(whole=whole) as gradients:
            if not self.training:
                shown = observed(run()) | outputs.found
                instance.withdraw()
                written = instance.snapshot.written_since(former)
                return shown | observed({"written": written}, "state", copy=False)
            with instance.returned() as found:
                run()
            problems = [each for each in found if isinstance(each, Exception)]
            changed = instance.snapshot.changed()
            for problem in problems:
                if changed or not isinstance(problem, NotImplementedError):
                    raise problem
        if not changed and subject.call is instance.module:
            raise NotOfferedError(_does_nothing(problems))
        slopes = _gradients(instance.snapshot, gradients)
        changes = instance.snapshot.changed_since(former, slopes.keys())
        others = {"gradient": slopes, **instance.snapshot.moments()}
        return observed(changes, "state", copy=False) | observed(others, "state") | outputs.found

    def least_calls(self, subject: Any) -> float:
        """Return the least calls of the module in the first steps of eager, as a share of those in the first.

        Upstream may call it less often in a later step: an actor that is updated in every second one.
        """
        if self.least is None:
            run, counts = self.step(subject.run_by(subject.module)), [0] * LOOKS
            for number in range(LOOKS):
                calls: list[Any] = []
                with subject.module.register_forward_pre_hook(lambda *_: calls.append(None)):  # noqa: B023
                    run()
                counts[number] = len(calls)
            self.instance(subject).restore()
            self.least = min(counts) / counts[0] if counts[0] else 1.0
        return self.least

    def instance(self, subject: Any) -> Instance:
        """Return the instance that holds the module of ``subject``."""
        for instance in self.instances.values():
            if instance.module is subject.module:
                return instance
        raise NotOfferedError("upstream's own step runs only the module that upstream built")


def _settings(model: Any) -> list[Any]:
    """Return class and settings of each group of parameters of the optimizers in ``model``."""
    optimizers = {id(one): one for _, one, _ in below(model, "") if isinstance(one, torch.optim.Optimizer)}
    return [
        (type(one), {name: value for name, value in group.items() if name != "params"})
        for one in optimizers.values()
        for group in one.param_groups
    ]


def _gradients(snapshot: Snapshot, kept: Mapping[torch.Tensor, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the gradients by path; ``kept`` holds those that the step cleared."""
    pairs = (
        (path, kept.get(tensor) if tensor.grad is None else tensor.grad)
        for path, tensor in snapshot.parameters()
    )
    return {path: gradient for path, gradient in pairs if gradient is not None}


def _does_nothing(refusals: Sequence[Exception]) -> str:
    """Return why a training step left every parameter as it was: upstream often returns a refusal."""
    texts = [
        f"; it returns {type(each).__name__}({' '.join(str(each).split())[:200]!r})" for each in refusals
    ]
    return f"train() does nothing: no parameter has changed or has a gradient{''.join(texts)}"


def _inside(context: Callable[[], Any], run: Callable[[], Any]) -> Any:
    with context():
        return run()

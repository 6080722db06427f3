"""The worker side of scenario ``loss_curve``: training steps, and the losses of fifty of them.

An optimizer that keeps its state in 8 bits, or products in float8, change every number on purpose: no
tolerance of a gradient says whether they are right. What they promise is that training goes as well. So the
same seeded model is trained on the same seeded batches by the configuration and by eager, with AdamW in the
workload's precision, and the curves of their losses lie within a band of each other (:func:`judge`).

A backend may bring its own optimizer: its call then has ``make_optimizer(parameters, rate)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary
from zlib import crc32

import torch
from torch.utils import _pytree as pytree

from torchgauge.counted import counted
from torchgauge.devices.session import DeviceSession
from torchgauge.errors import UnobservableError
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.harness.scenarios.training_steps import TIMED_RATE
from torchgauge.harness.worker.accuracy import Verdict
from torchgauge.harness.worker.case_measurements import single
from torchgauge.harness.worker.contract import Recorded
from torchgauge.harness.worker.memory import tensor_bytes
from torchgauge.harness.worker.series import Series
from torchgauge.records import Cause, Measurement, Tolerance, absent
from torchgauge.suites.placing import placed

STEPS = 50
RATE = 1e-3
"""The learning rate of the compared steps; timed ones leave the parameters where they are."""
ENDS = 5
"""Losses at either end of a curve that are averaged where a curve is told by one number."""
FALL = 0.1
"""By this share at least eager's loss has to fall: a curve that stays where it is tells nobody apart."""
FIRST = 2e-3
"""No loss before the first update lies further from eager's, as a share of it: it is of one state and batch.

With products in float8 it is 0.08 % away at most (12 seeds); weights of another seed are by 0.2 to 2.9 %.
"""
LOSS = "loss"
BATCHES = "batches"
"""The ability of a model that has another batch for each step: ``batches(step)`` gives args and kwargs."""
_CURVES: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""The curve that was observed last of each call, which outlives the object that records its results."""


@dataclass
class Training:
    """A step: forward, loss, backward and one step of ``optimizer``."""

    subject: Subject
    optimizer: Any

    def __call__(self) -> Any:
        """The loss."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.subject.forward_loss()
        loss.backward()
        self.optimizer.step()
        return loss


def enter() -> None:
    """Gradients are on by default; nothing to do."""


def step(subject: Subject) -> Training:
    """A function that runs one training step."""
    return Training(subject, _optimizer(subject, TIMED_RATE))


def observe(subject: Subject) -> dict[str, Any]:
    """The losses of :data:`STEPS` steps from one state, each on its own batch where the model has several."""
    training = Training(subject, _optimizer(subject, RATE))
    losses, batches = [], []
    for number in range(STEPS):
        subject.session.seed(subject.seed + number)
        training.subject, code = _with_batch(subject, number)
        batches.append(code)
        losses.append(training().detach().cpu().double())
    training.optimizer.zero_grad(set_to_none=True)
    call = subject.call
    curve = _CURVES[call.call if isinstance(call, Recorded) else call] = torch.stack(losses)
    return {LOSS: curve, BATCHES: torch.tensor(batches, dtype=torch.float64)}


STATE = ("parameter.", "buffer.")
"""Kinds of state that an observation changes; its losses depend on them."""
TIMED = ()
"""An observation shares no path with a timed step: eager repeats its steps to be compared."""


def timed_result(_subject: Subject, returned: Any) -> dict[str, Any]:
    """Return the loss of a timed step, on the host."""
    return {LOSS: returned.detach().cpu()}


def judge(
    reference: Mapping[str, Any],
    result: Mapping[str, Any],
    _fp64: Mapping[str, Any] | None,
    tolerance: Tolerance,
) -> Verdict:
    """Whether no loss of ``result`` is further from the reference's than the band, as a share of that.

    Both have to begin with one loss, and to be of the same batches.

    Raises :class:`UnobservableError` where the reference learned nothing: any optimizer would pass.
    """
    verdict, expected, found = Verdict(), reference[LOSS], result[LOSS]
    start, end = _ends(expected)
    if not end < (1.0 - FALL) * start:
        raise UnobservableError(
            f"the loss went from {start:.4g} to {end:.4g} in {STEPS} steps of AdamW: a curve must fall by "
            f"{FALL:.0%} to distinguish optimizers",
            hint="use a model that learns faster or has batches of its own",
        )
    others = (reference[BATCHES] != result[BATCHES]).nonzero().flatten().tolist()
    if others:
        verdict.fail(Cause.TOLERANCE, f"step {others[0] + 1} used a different batch than eager")
        return verdict
    if not bool(found.isfinite().all()):
        verdict.fail(
            Cause.NONFINITE,
            f"the loss is NaN or infinite after {counted(int(found.isfinite().sum()), 'step')}",
        )
        return verdict
    distances = _distances(expected, found)
    worst = int(distances.argmax())
    mine, theirs, far = (float(each[worst]) for each in (found, expected, distances))
    verdict.max_abs_error = float((expected - found).abs().max())
    if far > tolerance.relative:
        said = f"the loss of step {worst + 1} is {mine:.4g} instead of {theirs:.4g}"
        verdict.fail(Cause.TOLERANCE, f"{said}, {far:.1%} off; the tolerance is {tolerance.relative:.1%}")
    elif float(distances[0]) > FIRST:
        said = f"the first loss, before any update, is {float(distances[0]):.2%} off"
        verdict.fail(Cause.TOLERANCE, f"{said}: rounding explains at most {FIRST:.1%}")
    return verdict


def details(series: Series, session: DeviceSession) -> list[Measurement]:
    """Bytes of the optimizer's state, and how the curve lies to eager's."""
    training: Any = series.step
    kept = state_bytes(training.optimizer, session.torch_device.type)
    how = "tensors of the optimizer without parameters and gradients"
    return [single("optimizer_state", float(kept), how), *_curve(series.subject)]


def state_bytes(optimizer: Any, kind: str) -> int:
    """Bytes of what ``optimizer`` keeps on the device of type ``kind``, without parameters and gradients."""
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    return tensor_bytes(optimizer, parameters, kind=kind) - tensor_bytes(parameters, kind=kind)


def _curve(subject: Subject) -> list[Measurement]:
    names = ("final_loss", "final_loss_ratio", "curve_distance")
    found, eager = _CURVES.get(subject.call), _CURVES.get(subject.module)
    if found is None or eager is None:
        return [absent(name, "results were not checked: the loss curve is missing") for name in names]
    end = _ends(found)[1]
    own = single(names[0], end, f"mean of the last {ENDS} of {STEPS} losses")
    if found is eager:
        return [own, *(absent(name, "this is the reference curve") for name in names[1:])]
    return [
        own,
        single(names[1], end / _ends(eager)[1], "divided by the final loss of eager with AdamW"),
        single(
            names[2],
            float(_distances(eager, found).max()),
            f"largest distance from eager's loss in {STEPS} steps",
        ),
    ]


def _distances(expected: Any, found: Any) -> Any:
    return (found - expected).abs() / expected.abs().clamp(min=torch.finfo(torch.float32).tiny)


def _ends(curve: Any) -> tuple[float, float]:
    return float(curve[:ENDS].mean()), float(curve[-ENDS:].mean())


def _optimizer(subject: Subject, rate: float) -> Any:
    make: Callable[..., Any] | None = getattr(subject.call, "make_optimizer", None)
    parameters = subject.module.parameters()
    return torch.optim.AdamW(parameters, lr=rate) if make is None else make(parameters, rate)


def _with_batch(subject: Subject, number: int) -> tuple[Subject, int]:
    """``subject`` with the inputs of step ``number``, and their checksum as the model made them.

    Where it has no others: the model's own, and 0.
    """
    batches = subject.built.abilities.get(BATCHES)
    if batches is None:
        return subject, 0
    made = batches(number)
    tensors = [each for each in pytree.tree_leaves(made) if torch.is_tensor(each)]
    code = crc32(b"".join(bytes(each.flatten().view(torch.uint8)) for each in tensors))
    parameter = next(subject.module.parameters())
    args, kwargs = made
    batch = placed(None, args, kwargs, parameter.device, parameter.dtype)
    return replace(subject, args=batch.args, kwargs=batch.kwargs), code

"""The yardstick: a float64 copy of the model on the host, where it fits."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from torchgauge.harness.worker.memory import fits, model_bytes, tensor_bytes
from torchgauge.harness.worker.observer import Boxes, Observer
from torchgauge.harness.worker.subjects import make_subject
from torchgauge.harness.worker.tied_parameters import untie
from torchgauge.records import Workload
from torchgauge.suites.outputs import Observation
from torchgauge.suites.suite import HOST, BuiltWorkload

COPIES = 8
"""A float64 training observation holds about eight copies of the parameters at eight bytes each."""
STATE_COPIES = 8
"""It holds four copies of tensors in attributes, of twice the bytes: live, to restore, before and after."""


@dataclass(frozen=True)
class Reference:
    """What results are compared with: ``fp64`` on the host, and eager on the host in the same dtype.

    ``host`` is None where the device under test is the host itself and the scenario has no ``reference`` of
    its own. ``eager_of`` says what made it. A model that draws random numbers draws
    other ones in float64: ``random`` says that its results need not be near ``fp64``. ``again`` repeats
    the observation of ``host`` with a number added to its seed, or that of ``fp64`` if it gets this dtype.
    ``other`` returns ``fp64`` for the other inputs of a seed. ``boxes`` are those of its observers.
    """

    name: str
    fp64: Observation | None
    host: Observation | None
    random: bool = False
    eager_of: str = "the host"
    again: Callable[..., Observation] = lambda *_: {}
    other: Callable[[int], Observation] = lambda _: {}
    boxes: Boxes = field(default_factory=dict)


class SeedWatch:
    """The part of a device session that a run needs; notices whether it draws random numbers on the host."""

    def __init__(self, seed: Callable[[int], Any]) -> None:
        self.sow, self.drew = seed, False
        self.seeded: Any = None

    def seed(self, seed: int) -> None:
        """Seed the generators of the session."""
        self.look()
        self.sow(seed)
        self.seeded = torch.get_rng_state()

    def look(self) -> bool:
        """Whether anything was drawn since the first seed."""
        self.drew |= self.seeded is not None and not torch.equal(self.seeded, torch.get_rng_state())
        return self.drew


class DrawWatch(TorchDispatchMode):  # type: ignore[misc]
    """Detects operators that draw from the program's own generator or the host's, however it was seeded."""

    drew = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run ``func`` and note whether it draws random numbers."""
        before, kwargs = torch.get_rng_state(), kwargs or {}
        result = func(*args, **kwargs)
        given = any(isinstance(each, torch.Generator) for each in (*args, *kwargs.values()))
        self.drew |= given or not torch.equal(before, torch.get_rng_state())
        return result


def float64_reference(
    built: BuiltWorkload,
    workload: Workload,
    scenario: Any,
    on_host: bool,
    *,
    untied: bool = False,
    limit: float | None = None,
) -> Reference:
    """Run the reference of ``workload``, whose ``name`` tells what it is.

    Its parameters are ``untied`` where the device's are. There is no float64 run if it needs more memory than
    is free, or more than ``limit`` bytes.
    """
    own, host, eager_of = getattr(scenario, "reference", None), None, Reference.eager_of
    if own is not None:
        eager_of = getattr(scenario, "REFERENCE", "the scenario's reference")
        scenario = SimpleNamespace(observe=own)
    boxes: Boxes = {}
    observe = partial(_observe, built, workload, scenario, boxes, untied=untied)
    host, drew = observe() if not on_host or own is not None else (None, False)
    alone = "eager alone" if host is None else f"{workload.dtype} eager on {eager_of}"

    def again(later: int, dtype: Any = None) -> Observation:
        return observe(dtype, later=later)[0]

    reference = Reference(alone, None, host, drew, eager_of, again=again, boxes=boxes)
    parameters = sum(each.numel() for each in built.module.parameters())
    state = max(0, tensor_bytes(built.module) - model_bytes(built.module))
    if not fits((parameters * 8 * COPIES + state * STATE_COPIES) / 0.8, limit):
        return replace(reference, name=f"{alone}: a float64 copy does not fit in memory")
    try:
        fp64, drew = observe(torch.float64)
    except Exception as error:  # noqa: BLE001  a model need not run in float64
        first = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        return replace(reference, name=f"{alone}: no float64 run ({first})")
    return replace(
        reference,
        name="float64 on the host",
        fp64=fp64,
        random=drew,
        other=lambda seed: observe(torch.float64, other=seed)[0],
    )


def _observe(
    built: BuiltWorkload,
    workload: Workload,
    scenario: Any,
    boxes: Boxes,
    dtype: Any = None,
    *,
    untied: bool = False,
    later: int = 0,
    other: int | None = None,
) -> tuple[Observation, bool]:
    """Return the model's result on the host, and whether it draws random numbers.

    ``later`` is added to its seed. With ``other``, its inputs have the other values of this seed.
    """
    session = SeedWatch(torch.manual_seed)
    subject = make_subject(built, workload, session, HOST, dtype=dtype, apart=True)
    if untied:
        untie(subject.module)
    observer = Observer(scenario, subject, boxes)
    if other is not None:
        observer.settle([observer.observe()])  # shows whether the program is stateful
    seen = observer.observe(later=later, other=other)
    del observer, subject
    gc.collect()
    return seen, session.look()

"""Whether compiled code computes its result, or only remembers it.

Every observation and every timed step of a case has the same inputs. Code that answers from memory, or reads
a copy of its inputs that nobody refreshes, would be right in each of them and quick. So it runs once more
with other values in the very same tensors: where eager's result moves, its own has to. A result that follows
its inputs in part is not found. Single steps with new and with repeated values are timed as well.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterator
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from torchgauge.devices.session import DeviceSession
from torchgauge.harness.worker.stopping import interval_rank
from torchgauge.records import Tolerance
from torchgauge.suites.leaves import leaves
from torchgauge.suites.outputs import Observation

if TYPE_CHECKING:
    from torchgauge.harness.worker.observer import Observer


GAIN = 1.1
"""Largest accepted ratio of the time of a step with new inputs to that of a step with repeated inputs."""
GAIN_OF_ONE = 1.25
"""The same limit for the median of the first ratios if there are fewer than :data:`FEW` of them."""
FEW, PAIRS = 5, 20
"""Number of first ratios from which :data:`GAIN` replaces :data:`GAIN_OF_ONE`, and their largest number."""
DECIDING = (8, 100)
"""Smallest and largest number of the ratios that decide."""
LEAST_GAIN_S = 15e-6
"""Added to the time of a repeated step: a write leaves caches that cost a step some microseconds."""
SHARE, DECIDING_S = 0.02, 2.0
"""Share of the time to sample for the first ratios, and seconds for those that decide."""


def alter(inputs: Any, restorable: Collection[torch.Tensor], number: int = 0) -> bool:
    """Put other values into the tensors of ``inputs`` that are ``restorable``; whether there was one.

    Floating-point values are multiplied by a number from 0.5 to 0.9, which keeps them in range. Where there
    are none, those of whole numbers with two dimensions or more are rolled along the last: every value stays
    one that the model knows. Each ``number`` gives other values.
    """
    tensors = _restorable(inputs, restorable)
    inexact = [tensor for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]
    whole = [tensor for tensor in tensors if tensor.ndim >= 2 and tensor.dtype != torch.bool]
    with torch.no_grad():
        for each in inexact:
            each.mul_(0.5 + 0.4 * (0.618034 * number % 1.0))
        for each in () if inexact else whole:
            each.copy_(each.roll(1 + number, -1))
    return bool(inexact or whole)


def _restorable(inputs: Any, restorable: Collection[torch.Tensor]) -> list[torch.Tensor]:
    known = {id(tensor) for tensor in restorable}
    return [leaf for _, leaf in leaves(inputs, "") if isinstance(leaf, torch.Tensor) and id(leaf) in known]


def gains(
    inputs: NewInputs, session: DeviceSession, numbers: Iterator[int], step: Callable[[], Any], count: int
) -> list[float]:
    """Return ``count`` ratios: the time of the first step with new inputs over that of the third step.

    Nothing writes to the inputs between these steps. Before the second and the third step, as many bytes are
    written to other tensors, so that every step begins with the same caches.
    """
    ratios = []
    for number in itertools.islice(numbers, count):
        if not inputs.renew(number):
            return []
        times = []
        for turn in range(3):
            if turn:
                inputs.write_elsewhere(number)
            session.synchronize()
            began = time.perf_counter()
            step()
            session.synchronize()
            times.append(time.perf_counter() - began)
        ratios.append(times[0] / (times[2] + LEAST_GAIN_S))
    return ratios


def gain_of_repetition(
    step: Callable[[], Any],
    measured: Callable[[Callable[[], Any], int], list[float]],
    eager: Callable[[], Any],
    step_s: float,
    budget_s: float,
) -> tuple[float | None, bool]:
    """Return how much longer a step takes with new inputs, and whether it answers from memory.

    ``measured(step, number)`` returns ``number`` ratios, or none if no input can be written. A step answers
    from memory if the interval of its ratio lies above :data:`GAIN` times eager's ratio: the work of a model
    may depend on values. The deciding ratios are measured only if the first ones are large.
    """
    first = measured(step, max(1, min(PAIRS, int(SHARE * budget_s / (3.0 * step_s)))))
    if not first or median(first) <= (GAIN if len(first) >= FEW else GAIN_OF_ONE):
        return median(first) if first else None, False
    fewest, most = DECIDING
    pairs = max(fewest, min(most, int(DECIDING_S / (3.0 * step_s))))
    more, usual = measured(step, pairs), max(1.0, median(measured(eager, pairs)))
    return median(more), sorted(more)[interval_rank(pairs, 0.99) - 1] > GAIN * usual


class NewInputs:
    """Writes other values into the ``restorable`` tensors of ``inputs``."""

    def __init__(self, inputs: Any, restorable: Collection[torch.Tensor]) -> None:
        tensors = _restorable(inputs, restorable)
        self._inputs = [(tensor, tensor.detach().clone()) for tensor in tensors]
        self._elsewhere = [(first.clone(), first) for _, first in self._inputs]

    def renew(self, number: int) -> bool:
        """Write the values of ``number``; return whether there was a tensor for them."""
        return _renew(self._inputs, number)

    def write_elsewhere(self, number: int) -> None:
        """Write as much into tensors that no step reads."""
        _renew(self._elsewhere, number)


def _renew(pairs: list[tuple[torch.Tensor, torch.Tensor]], number: int) -> bool:
    tensors = [tensor for tensor, _ in pairs]
    with torch.no_grad():
        for tensor, first in pairs:
            tensor.copy_(first)
    return alter(tensors, tensors, number)


class OtherInputs:
    """The same tensors with other values: what eager shows of them is observed once, by ``observer``.

    Asked when all is measured: other values may compile again, or stay in an attribute that nobody puts back.
    """

    def __init__(self, observer: Observer, tolerance: Tolerance) -> None:
        self._observer, self._tolerance = observer, tolerance
        self._eager: tuple[Observation, Observation] | None = None

    def unmoved(self, call: Callable[..., Any]) -> str:
        """Path of the first tensor that ``call`` leaves as it was where eager's moves; empty if none."""
        try:
            if self._eager is None:
                self._eager = self._of_eager()
            other = self._observer.observe_other(call) if self._eager[1] else None
            found = self._observer.observe(call)
        except Exception:  # noqa: BLE001  no model need take other values than its suite's
            return ""
        return unmoved(self._eager, (found, other), self._tolerance) if other else ""

    def _of_eager(self) -> tuple[Observation, Observation]:
        """What eager shows before and after; nothing after where it does not find its way back."""
        before = self._observer.observe()
        after = self._observer.observe_other() or {}
        back = self._observer.observe()
        moved = any(not torch.equal(*pair) for pair in _pairs((before, back)).values())
        return before, {} if moved else after


def unmoved(
    eager: tuple[Observation, Observation], found: tuple[Observation, Observation], tolerance: Tolerance
) -> str:
    """Path of the first tensor of ``found`` that stayed equal to the bit where eager's moved; empty if none.

    Each pair is what a run showed before its inputs changed, and after. Eager's has moved where the tolerance
    tells the two apart.
    """
    mine = _pairs(found)
    for path, (before, after) in _pairs(eager).items():
        far = not torch.allclose(before, after, atol=tolerance.absolute, rtol=tolerance.relative)
        if path in mine and far and torch.equal(*mine[path]):
            return path
    return ""


def _pairs(both: tuple[Observation, Observation]) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """The tensors of inexact numbers that both observations have in the same shape."""
    first, second = both
    return {
        path: (value, other)
        for path, value in first.items()
        if isinstance(value, torch.Tensor)
        and (value.is_floating_point() or value.is_complex())
        and isinstance(other := second.get(path), torch.Tensor)
        and (value.shape, value.dtype) == (other.shape, other.dtype)
    }

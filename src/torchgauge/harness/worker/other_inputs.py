"""Whether compiled code computes its result, or only remembers it.

Every observation and every timed step of a case has the same inputs. Code that answers from memory, or reads
a copy of its inputs that nobody refreshes, would be right in each of them and quick. So it runs once more
with other values in the very same tensors, and its result is compared with eager's. Single steps with new and
with repeated values are timed as well.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Iterator
from functools import cached_property, partial
from statistics import median
from typing import TYPE_CHECKING, Any

import torch

from torchgauge.devices.session import DeviceSession
from torchgauge.harness.worker.accuracy import nonfinite
from torchgauge.harness.worker.rounding import EagerResults, rounded_otherwise
from torchgauge.harness.worker.stopping import interval_rank
from torchgauge.records import Modifier
from torchgauge.suites.leaves import leaves
from torchgauge.suites.outputs import Observation
from torchgauge.suites.torchbench.step_state import same_bits

if TYPE_CHECKING:
    from torchgauge.harness.worker.case_state import CaseState
    from torchgauge.harness.worker.observer import Observer
    from torchgauge.harness.worker.torch_checks import TorchChecks


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
INPUTS = ("after.args", "after.kwargs")
"""Prefixes of the paths of inputs in an observation."""
SHARE, DECIDING_S = 0.02, 2.0
"""Share of the time to sample for the first ratios, and seconds for those that decide."""


def alter(inputs: Any, restorable: Collection[torch.Tensor], number: int = 0) -> bool:
    """Put other values into the ``restorable`` tensors of ``inputs``; return whether there was one.

    Values are rolled along the last dimension that has more than one element, so the model accepts each of
    them. Floating-point values are also multiplied by a number from 0.5 to 0.9. Integers may be offsets,
    indices or pointers, which operators need not check: those of a graph ended a process, and a list of
    parents became a cycle. So they change only if no tensor has floating-point values, in two dimensions or
    more, and not if they are sorted. Each ``number`` gives other values.
    """
    tensors = [tensor for tensor in _restorable(inputs, restorable) if tensor.numel()]
    inexact = [tensor for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]
    whole = [one for one in tensors if one.ndim and not (one.is_floating_point() or one.is_complex())]
    rolled = [
        one for one in whole if one.dtype == torch.bool or (not inexact and one.ndim > 1 and _unordered(one))
    ]
    with torch.no_grad():
        for tensor in inexact:
            tensor.mul_(0.5 + 0.4 * (0.618034 * number % 1.0))
        for tensor in (*rolled, *inexact):
            tensor.copy_(tensor.roll(1 + number, _last(tensor)))
    return bool(inexact or rolled)


def _last(tensor: torch.Tensor) -> int | None:
    """Return the last dimension of more than one element; None where there is none."""
    return next((dim for dim in reversed(range(tensor.ndim)) if tensor.shape[dim] > 1), None)


def _unordered(tensor: torch.Tensor) -> bool:
    """Return whether ``tensor`` has a row that is not sorted in either direction."""
    dim = _last(tensor) or 0
    steps = tensor.diff(dim=dim)
    return not bool(((steps >= 0).all(dim) | (steps <= 0).all(dim)).all())


def _restorable(inputs: Any, restorable: Collection[torch.Tensor]) -> list[torch.Tensor]:
    ids = {id(tensor) for tensor in restorable}
    return [leaf for _, leaf in leaves(inputs, "") if isinstance(leaf, torch.Tensor) and id(leaf) in ids]


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
    """Comparisons of results for other values in the input tensors; eager is observed once.

    They run after all measurements, because other values may cause a recompilation.
    """

    def __init__(self, checks: TorchChecks, observer: Observer) -> None:
        self.checks, self.observer = checks, observer

    def problem(self, state: CaseState) -> str:
        """Return how the result of ``state`` differs from eager's; empty if it does not, or if a run raises.

        A model may refuse values that are not its suite's. A result that differs is judged again, like one
        for the first inputs: with other rounding of eager, and with float64. If rounding decided the result
        for the first inputs, the result must only change with the new ones.
        """
        checks, observe, call = self.checks, self.observer.observe, state.prepared.call
        try:
            eager = self.eager
            found = observe(call, other=True) if eager is not None else {}
            if eager is None or not found or checks.judged(state, eager, found, exactly=False).ok:
                return ""
            verdict = checks.judged(state, eager, found, exactly=True)
            if not verdict.ok and not checks.repeats(checks.eager_results(repeated=True), observe()):
                return ""  # eager has gone wrong itself, which its own row reports
            before = {} if verdict.ok else observe(call)
        except Exception:  # noqa: BLE001  a model may refuse these values
            return ""
        moved = self._moved(eager.base)
        for path in before:
            if path in moved and path in found and same_bits(found[path], before[path]):
                return f"{path}: the result stays the same where the inputs change"
        comparable = (
            state.prepared.rule is None and not checks.random and Modifier.TIES.value not in state.facts
        )
        return f"wrong with other inputs: {verdict.detail}" if comparable and not verdict.ok else ""

    @cached_property
    def eager(self) -> EagerResults | None:
        """Eager's results; None unless the first is finite, has changed, and is equal in two runs."""
        run = partial(self.observer.observe, other=True)
        results = EagerResults(partial(rounded_otherwise, run), run(), self.checks.reference.other)
        usable = self._moved(results.base) and not nonfinite(results.base, self.checks.eager)
        return results if usable and self.checks.repeats(results, run()) else None

    def _moved(self, shown: Observation) -> set[str]:
        """Return the paths in ``shown``, except those of inputs, whose values eager did not return before."""
        first = self.checks.eager
        both = {path for path in shown.keys() & first.keys() if not path.startswith(INPUTS)}
        return {path for path in both if not same_bits(shown[path], first[path])}

"""Whether compiled code computes its result, or only remembers it.

Every observation and every timed step of a case has the same inputs. Code that answers from memory, or reads
a copy of its inputs that nobody refreshes, would be right in each of them and quick. So it is asked once more
with other values in the very same tensors: where eager's result moves, its own has to. One that follows its
inputs in part is not found: nobody says what is right for these values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import torch

from torchgauge.records import Tolerance
from torchgauge.suites.leaves import leaves
from torchgauge.suites.outputs import Observation

if TYPE_CHECKING:
    from torchgauge.harness.worker.observer import Observer


def alter(inputs: Any, restorable: Collection[torch.Tensor]) -> bool:
    """Put other values into the tensors of ``inputs`` that are ``restorable``; whether there was one.

    Floating-point values are halved, which keeps them in range. Where there are none, those of whole numbers
    with two dimensions or more are rolled along the last: every value stays one that the model knows.
    """
    known = {id(each) for each in restorable}
    found = [leaf for _, leaf in leaves(inputs, "") if isinstance(leaf, torch.Tensor) and id(leaf) in known]
    inexact = [each for each in found if each.is_floating_point() or each.is_complex()]
    whole = [each for each in found if each.ndim >= 2 and each.dtype != torch.bool]
    with torch.no_grad():
        for each in inexact:
            each.mul_(0.5)
        for each in () if inexact else whole:
            each.copy_(each.roll(1, -1))
    return bool(inexact or whole)


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

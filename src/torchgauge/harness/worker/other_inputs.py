"""Whether compiled code computes its result, or only remembers it.

Every observation and every timed step of a case has the same inputs. Code that answers from memory, or reads
a copy of its inputs that nobody refreshes, would be right in each of them and quick. So it is asked once more
with other values in the very same tensors: where eager's result moves, its own has to.
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
    """The same tensors with other values: what eager shows of them is observed once, by ``observer``."""

    def __init__(self, observer: Observer, eager: Observation, tolerance: Tolerance) -> None:
        self._observer, self._eager, self._tolerance = observer, eager, tolerance
        self._moved: Observation | None = None

    def unmoved(self, call: Callable[..., Any], found: Observation) -> str:
        """Path of the first tensor that ``call`` leaves as in ``found`` where eager's moves; or empty."""
        if self._moved is None:
            try:
                self._moved = self._observer.observe_other() or {}
            except Exception:  # noqa: BLE001  no model need take other values than its suite's
                self._moved = {}
        other = self._observer.observe_other(call) if self._moved else None
        return unmoved((self._eager, self._moved), (found, other), self._tolerance) if other else ""


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

"""Whether compiled code computes its result, or only remembers it.

Every observation and every timed step of a case has the same inputs. Code that answers from memory, or reads
a copy of its inputs that nobody refreshes, would be right in each of them and quick. So it runs once more
with other values in the very same tensors, and its result is compared with eager's. Single steps with new and
with repeated values are timed as well. The values are random, and no two steps of a case get equal ones.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import torch

from torchgauge.devices.session import DeviceSession
from torchgauge.harness.worker.accuracy import LOW_PRECISION, nonfinite
from torchgauge.harness.worker.memory import fits, tensor_bytes
from torchgauge.harness.worker.rounding import EagerResults, rounded_otherwise
from torchgauge.harness.worker.stopping import interval_rank
from torchgauge.harness.worker.timing import time_block
from torchgauge.harness.worker.verdicts import first_line
from torchgauge.records import Modifier
from torchgauge.suites.leaves import leaves
from torchgauge.suites.outputs import Observation, to_host
from torchgauge.suites.torchbench.step_state import same_bits

if TYPE_CHECKING:
    from torchgauge.harness.worker.case_state import CaseState
    from torchgauge.harness.worker.observer import Observer
    from torchgauge.harness.worker.torch_checks import TorchChecks


GAIN = 1.1
"""Largest accepted ratio of the time of a step with new inputs to that of a step with repeated inputs."""
GAIN_OF_ONE = 1.25
"""The same limit for the first ratio if it is that of fewer than :data:`FEW` steps of each kind."""
FEW, MOST = 5, 20
"""Number of steps of each kind from which :data:`GAIN` replaces :data:`GAIN_OF_ONE`, and its maximum."""
DECIDING = (8, 100)
"""Smallest and largest number of the ratios that decide."""
REPEATED = 16
"""Maximum number of timed steps with repeated inputs in such a ratio: code may compute in some of them."""
LEAD, LONG_LEAD = (1000, 0.02), (5000, 0.125)
"""Maximum number of steps before these with the same inputs, and seconds that they take at the sampled time.

Code may remember after some calls. The number is fixed before: calls that still compute, or other work on the
machine, take longer and must not shorten the lead.
"""
MOST_LEAD_S = 1.0
"""Wall time after which a lead ends all the same."""
LARGE = 1.5
"""First ratio above which :data:`LONG_LEAD` replaces :data:`LEAD`: code may remember after many calls."""
LEAST_GAIN_S = 15e-6
"""Added to the time of a repeated step: a write leaves caches that cost a step some microseconds."""
MOST_RESULTS = 4.0
"""Results for other inputs need at most so many times the memory of eager's first observation."""
INPUTS = ("after.args", "after.kwargs")
"""Prefixes of the paths of inputs in an observation."""
CHANGE = re.compile(r"(iteration\d+|after)\.change\.")
"""Paths of changes by a step. In low precision they may stay equal: a weight moves by one place or none."""
SHARE, DECIDING_S = 0.02, 2.0
"""Share of the time to sample for the first ratio, and seconds for those that decide."""


def alter(inputs: Any, restorable: Collection[torch.Tensor], seed: int, *, half: bool = False) -> bool:
    """Put other values into the ``restorable`` tensors of ``inputs``; return whether there was one.

    Floating-point values are exchanged along the last dimension of more than one element, and multiplied by a
    random number from 0.5 to 0.9. Integers may be offsets, indices or pointers, which operators need not
    check: those of a graph ended a process, and a list of parents became a cycle. So they change only if no
    tensor has floating-point values, in two dimensions or more, and not if they are sorted. Each becomes
    another one of its row, so the model accepts it. Booleans are exchanged.

    With ``half``, a random half of the elements, the first and the last, but not the middle one, keep their
    values: code may compare some elements alone. The factor is 2 if ``seed`` is odd and an absolute value
    exceeds 1, because code may store the range of the first inputs, and else 0.5. Smaller values may be
    probabilities, and an assertion of a device on larger ones may end the process.
    """
    tensors = [tensor for tensor in _restorable(inputs, restorable) if tensor.numel()]
    inexact = [tensor for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]
    whole = [one for one in tensors if one.ndim and not (one.is_floating_point() or one.is_complex())]
    whole = [
        one for one in whole if one.dtype == torch.bool or (not inexact and one.ndim > 1 and _unordered(one))
    ]
    dice = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for tensor in (*whole, *inexact):
            tensor.copy_(_other_values(to_host(tensor), dice, half, bool(seed % 2)))
    return bool(inexact or whole)


def _other_values(values: torch.Tensor, dice: torch.Generator, half: bool, larger: bool) -> torch.Tensor:
    """Return other values for a tensor on the host, ``larger`` ones if possible; see :func:`alter`."""
    other, dim = values, _last(values)
    real = values.is_floating_point() or values.is_complex()
    if dim is not None and (real or values.dtype == torch.bool):
        other = values.index_select(dim, torch.randperm(values.shape[dim], generator=dice))
    elif dim is not None:
        other = values.gather(dim, torch.randint(values.shape[dim], values.shape, generator=dice))
    if real and half:
        other = other * (2.0 if larger and float(values.abs().max()) > 1.0 else 0.5)
    elif real:
        other = other * (0.5 + 0.4 * float(torch.rand((), generator=dice)))
    if not half or values.dtype == torch.bool or values.numel() < 4:
        return other
    kept = torch.randint(2, values.shape, generator=dice, dtype=torch.bool)
    kept.view(-1)[0] = kept.view(-1)[-1] = True
    kept.view(-1)[kept.numel() // 2] = False
    return torch.where(kept, values, other)


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


class NewInputs:
    """Writes other values into the ``restorable`` tensors of ``inputs``."""

    def __init__(self, inputs: Any, restorable: Collection[torch.Tensor]) -> None:
        tensors = _restorable(inputs, restorable)
        self._inputs = [(tensor, tensor.detach().clone()) for tensor in tensors]
        self._elsewhere = [(first.clone(), first) for _, first in self._inputs]

    def renew(self, seed: int | None = None, *, half: bool = False) -> bool:
        """Write the values of ``seed``, by default of a new one; return whether any tensor has some."""
        return _renew(self._inputs, secrets.randbits(62) if seed is None else seed, half)

    def write_elsewhere(self) -> None:
        """Write as much into tensors that no step reads."""
        _renew(self._elsewhere, secrets.randbits(62))


def _renew(pairs: list[tuple[torch.Tensor, torch.Tensor]], seed: int, half: bool = False) -> bool:
    tensors = [tensor for tensor, _ in pairs]
    with torch.no_grad():
        for tensor, first in pairs:
            tensor.copy_(first)
    return alter(tensors, tensors, seed, half=half)


@dataclass
class Repetition:
    """Measures how much longer a step takes with new ``inputs`` than with repeated ones.

    Each step is timed like a block. Before it, as many bytes are written, to its inputs or to other tensors,
    so that every step begins with the same caches. ``compilations`` returns how many programs were compiled
    so far: a program may compile anew for some values, and such a step says nothing about memory.
    """

    inputs: NewInputs
    session: DeviceSession
    compilations: Callable[[], int]

    def gain(
        self, step: Callable[[], Any], eager: Callable[[], Any], inner: int, step_s: float, budget_s: float
    ) -> tuple[float | None, bool]:
        """Return how much longer ``step`` takes with new inputs, and whether it answers from memory.

        A lead, whose end is a block of ``inner`` steps, comes first. A step answers from memory if the
        interval of its ratio lies above :data:`GAIN` times eager's ratio in two series: the work of a model
        may depend on values. The deciding ratios are measured only if the first one is large.
        """
        count = max(1, min(MOST, int(SHARE * budget_s / (2.0 * step_s))))
        few, many = (max(2, min(most, int(seconds / step_s))) for most, seconds in (LEAD, LONG_LEAD))
        self._lead(step, few - inner)
        first, before = self._first(step, inner, count), self.compilations()
        if first is None or first <= (GAIN if count >= FEW else GAIN_OF_ONE):
            return first, False
        gains = list[float]()
        for _ in range(2):  # other work on the machine may lengthen the steps of one series
            more = self._deciding(step, many if first > LARGE else few)
            usual = max(1.0, median(self._deciding(eager, few)))
            gains.append(median(more))
            lowest = sorted(more)[interval_rank(len(more), 0.99) - 1]
            if self.compilations() > before or lowest <= GAIN * usual:
                return gains[-1], False
        return min(gains), True

    def _first(self, step: Callable[[], Any], inner: int, count: int) -> float | None:
        """Return the ratio for ``count`` new inputs after repeated ones; None if there is none.

        Code may remember a result after some calls only, so the repeated inputs are those of timed blocks.
        One step may compile: code of a case that has only remembered so far.
        """
        time_block(step, inner, self.session)
        usual = _typical([self._repeated(step) for _ in range(count)])
        times: list[float] = []
        compiled = 0
        while len(times) < count:
            before = self.compilations()
            if not self.inputs.renew() or compiled > 1:
                return None
            seconds = self._new(step)
            if self.compilations() == before:
                times.append(seconds)
            else:
                compiled += 1
        return median(times) / (usual + LEAST_GAIN_S)

    def _deciding(self, step: Callable[[], Any], lead: int) -> list[float]:
        """Return ratios of a step with new inputs to the typical one after ``lead`` repetitions."""
        fewest, most = DECIDING
        ratios: list[float] = []
        end = time.perf_counter() + DECIDING_S
        while len(ratios) < fewest or (len(ratios) < most and time.perf_counter() < end):
            self.inputs.renew()
            new = self._new(step)
            self._lead(step, lead)
            began, repeated = time.perf_counter(), [self._repeated(step)]
            while len(repeated) < REPEATED and time.perf_counter() - began < DECIDING_S / fewest / 2.0:
                repeated.append(self._repeated(step))
            ratios.append(new / (_typical(repeated) + LEAST_GAIN_S))
        return ratios

    def _lead(self, step: Callable[[], Any], count: int) -> None:
        """Run ``step`` ``count`` times, or twice and on until :data:`MOST_LEAD_S` are over."""
        end = time.perf_counter() + MOST_LEAD_S
        for number in range(count):
            if number > 1 and time.perf_counter() > end:
                break
            step()

    def _new(self, step: Callable[[], Any]) -> float:
        return time_block(step, 1, self.session).wall

    def _repeated(self, step: Callable[[], Any]) -> float:
        self.inputs.write_elsewhere()
        return time_block(step, 1, self.session).wall


def _typical(times: list[float]) -> float:
    """Return the mean, as code may compute in few steps, or the median if other work made some steps long."""
    return min(fmean(times), median(times))


class OtherInputs:
    """Comparisons of results for other values in the input tensors; eager is observed once.

    They run after all measurements but one timed step, as other values may cause a recompilation. ``timed``
    holds, by the key of a case, the result of a step that was timed like a block: code may compute only when
    it is checked.
    """

    def __init__(self, checks: TorchChecks, observer: Observer) -> None:
        self.checks, self.observer = checks, observer
        self.seed = secrets.randbits(62) | 1
        self.timed: dict[str, Observation] = {}

    def problem(self, state: CaseState) -> str:
        """Return how the result of ``state`` differs from eager's, or an exception that eager does not raise.

        It is empty if nothing is wrong, or if the model refuses values that are not its suite's. A result of
        an observation has to be wrong for two seeds: rounding may decide much for the values of one.
        """
        timed, observed = self._problems(state)
        return timed or (observed and OtherInputs(self.checks, self.observer)._problems(state)[1])

    def _problems(self, state: CaseState) -> tuple[str, str]:
        """Return the problems of the timed result and of an observation, for the values of ``seed``."""
        if self.eager is None:
            return "", ""
        try:
            result = self.observer.observe(state.prepared.call, other=self.seed)
        except Exception as error:  # noqa: BLE001  compiled code refuses what eager accepts
            refused = not self.checks.session.is_oom(error)
            return "", f"raised with other inputs: {first_line(error)}" if refused else ""
        with suppress(Exception):  # of further runs of eager
            timed = self._fault(state, self.eager, self.timed.get(state.key, {}), timed=True)
            return timed, timed or self._fault(state, self.eager, result)
        return "", ""

    def _fault(
        self, state: CaseState, eager: EagerResults, found: Observation, *, timed: bool = False
    ) -> str:
        """Return how ``found`` differs from the result of ``eager`` for the other inputs.

        A result that differs is judged again, like one for the first inputs: with other rounding of eager,
        and with float64. If rounding decided the result for the first inputs, the result must only change
        with the new ones.
        """
        checks = self.checks
        if not found or checks.judged(state, eager, found, exactly=False, timed=timed).ok:
            return ""
        verdict = checks.judged(state, eager, found, exactly=True, timed=timed)
        if verdict.ok or not checks.repeats(checks.eager_results(repeated=True), self.observer.observe()):
            return ""  # if eager has gone wrong itself, its own row reports that
        before, moved = self.observer.observe(state.prepared.call), self._moved(eager.base)
        for path in before:
            by_chance = CHANGE.match(path) and before[path].dtype in LOW_PRECISION
            by_chance = by_chance or (checks.random and not torch.as_tensor(before[path]).any())
            if path in moved and path in found and not by_chance and same_bits(found[path], before[path]):
                return f"{path}: the result is unchanged although the inputs changed"
        comparable = (
            state.prepared.rule is None and not checks.random and Modifier.TIES.value not in state.facts
        )
        return f"wrong with other inputs: {verdict.detail}" if comparable else ""

    @cached_property
    def eager(self) -> EagerResults | None:
        """Eager's results; None unless they are finite, have changed, and are equal in two runs.

        They are None too if memory is short. If results for larger values are not usable, or if the model
        refuses them, ``seed`` becomes even.
        """
        if not fits(MOST_RESULTS * tensor_bytes(self.checks.eager), self.checks.settings.memory_limit_bytes):
            return None
        for seed in (self.seed, self.seed - 1):
            self.seed = seed
            run = partial(self.observer.observe, other=seed)
            exact = partial(self.checks.reference.other, seed)
            with suppress(Exception):
                results = EagerResults(partial(rounded_otherwise, run), run(), exact)
                usable = self._moved(results.base) and not nonfinite(results.base, self.checks.eager)
                if usable and self.checks.repeats(results, run()):
                    return results
        return None

    def _moved(self, shown: Observation) -> set[str]:
        """Return the paths in ``shown``, except those of inputs, whose values eager did not return before."""
        shown, first = self.observer.complete(shown, self.checks.eager)
        both = {path for path in shown.keys() & first.keys() if not path.startswith(INPUTS)}
        return {path for path in both if not same_bits(shown[path], first[path])}

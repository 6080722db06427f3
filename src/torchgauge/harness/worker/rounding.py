"""The largest change of a result that rounding alone explains, measured only after a tensor has failed.

Eager runs again, each time rounded in another way (:class:`OtherRounding`). Two correct programs differ as
much as such runs do. The runs also show where a network amplifies rounding, and where rounding decides a
sign, an order or a shape. ``docs/method.md`` lists what this excuses, and the planted faults that it finds.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, reduce
from typing import Any, NamedTuple

import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from torchgauge.harness.worker.closeness import BULK, NEAR, parts_of
from torchgauge.records import Tolerance
from torchgauge.suites.outputs import Observation, alike, as_reals, as_tensor, to_host
from torchgauge.suites.suite import HOST

SWAYS = 6.0
"""Largest accepted difference from eager, as a multiple of the difference between eager and such a run."""
EACH = 2.0
"""The same for the largest difference, which is compared with ``each``."""
ORDERS = ("aten::sort", "aten::topk", "aten::kthvalue", "aten::median", "aten::nanmedian", "aten::mode")
"""Operators that may give equal elements any order."""
PICKS = (
    *ORDERS[:-1],
    *("aten::argmax", "aten::argmin", "aten::max", "aten::min", "aten::cummax", "aten::cummin"),
)
"""Operators whose integers are indices of elements, among which rounding may decide."""
RANGED = ("aten::_softmax", "aten::_log_softmax", "aten::_safe_softmax", "aten::var", "aten::std")
"""Operators whose results have a range, as those of elementwise functions of one tensor may have."""
LINEAR = ("aten::convolution", "aten::convolution_backward")
"""Operators that are linear in their first argument but for a bias, and slow in float64 on the host."""
DECOMPOSED = ("batch_norm", "norm_backward")
"""Ends of the names of operators that inductor decomposes, and that eager rounds less than their parts."""
SUMS = ("aten::sum", "aten::mean")
"""Operators that eager rounds less than a program that adds one term after the other."""
CHUNK = 4096
"""Maximum number of terms that are added one after the other; inductor adds the sums of such chunks."""
UPPER = -1 << 12
"""Mask of the sign, the exponent and the upper half of the significand of a float32 number."""
COINS = 1 << 20
"""Number of random booleans that a run draws; each tensor uses a slice of them."""
PATIENCE_S = 300.0
"""Time limit in seconds, of one run and of all; a run that exceeds it explains nothing."""
TIMES = (4.0, 3.0, 2.0, 1.0)
"""Factors on eager's errors in successive runs: small errors may not cross a threshold."""
RUNS = 16
"""Maximum number of runs; none starts after :data:`PATIENCE_S` of runs."""
NEAR_ZERO = 32.0
"""A float32 number may change its sign if it is at most so many units in the last place of the usual size.

Errors of a step add up, and decide which elements an activation passes. The usual size is the smaller of the
upper quartile and the negated lower quartile, so a tensor whose numbers have one sign keeps it.
"""
WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
"""The integer dtypes."""
WIDE = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}
"""The dtypes whose rounding can be seen, with the one that shows it."""


class OtherRounding(TorchDispatchMode):  # type: ignore[misc]
    """Changes the rounding of each operator's results; ``seed`` decides how.

    Each operator runs again, in float64 or on both halves of its argument (:func:`_in_halves`). A random half
    of the inexact elements of its result move to the other side of the second result. An error keeps its
    size, and an element moves by at least one unit in its last place. So a convolution gets errors of its own
    size, and exact results (a copy, a mask, a zero) stay exact. Functions such as a sigmoid keep their range:
    the loss of a probability accepts no number above 1. In half of the runs, operators of :data:`DECOMPOSED`
    run as their parts. Errors of sums are at least those of :func:`_rounding_of_sums`.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.dice, self.times = torch.Generator().manual_seed(seed), times_of(seed)
        self.decomposed = DECOMPOSED if seed // 2 % 2 else ()  # those runs take twice as long
        self.coins = torch.randint(2, (COINS,), generator=self.dice, dtype=torch.bool)
        self.end, self.late = time.monotonic() + PATIENCE_S, False
        self.picks: list[Pick] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run ``func`` and move its result."""
        given, schema = (args, kwargs or {}), func._schema.arguments
        if func._schema.name in ORDERS and len(func._schema.returns) == 2 and args[0].ndim:
            result = self._shuffled(func, *given)
            self._note_places(func, given, result[1])
            return result
        if func._schema.name.endswith(self.decomposed) and _decomposes_rightly(func, given):
            with suppress(Exception), self:
                return decomposition_table[func](*args, **given[1])
        written = {each.name for each in schema if each.alias_info is not None and each.alias_info.is_write}
        view = not written and any(each.alias_info is not None for each in schema)
        exact: Any = None
        if not view and torch.Tag.nondeterministic_seeded not in func.tags and _inexact(given):
            exact = self._exact(func, given, schema, written)
        result = func(*given[0], **given[1])
        if not written and not view:
            self._note_places(func, given, result[-1] if isinstance(result, tuple) else result)
        moved = _written(given, schema, written) if written else result
        unary = torch.Tag.pointwise in func.tags and len(_tensors(given)) == 1
        for mine, truth in zip(_tensors(moved), _tensors(exact)):  # noqa: B905  none where nothing is exact
            if mine.dtype in WIDE and mine.shape == truth.shape and truth.dtype == WIDE[mine.dtype]:
                with suppress(Exception):  # in a device's backward thread it would end the process
                    summed = func._schema.name in SUMS and not mine.is_complex()
                    least = _rounding_of_sums(func, _settings(func, *given), mine) if summed else None
                    self._move(mine, truth, least, ranged=unary or func._schema.name in RANGED)
        return result

    def _shuffled(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run ``func``, a sort or similar, with equal elements in a random order unless it is stable."""
        settings = _settings(func, args, kwargs)
        dim, whole = settings.get("dim", -1), args[0]
        if settings.get("stable"):
            return func(*args, **kwargs)
        order = torch.randperm(whole.shape[dim], generator=self.dice).to(whole.device)
        values, places = func(whole.index_select(dim, order), *args[1:], **kwargs)
        return values, order[places]

    def _note_places(self, func: Any, given: Any, places: Any) -> None:
        """Keep the indices ``places`` that ``func`` returns, with the tensor that they index."""
        if func._schema.name in PICKS and not places.is_floating_point() and given[0][0].ndim:
            settings = _settings(func, *given)
            whole, dim = given[0][0].detach(), settings.get("dim", -1)
            whole, dim = (whole.flatten(), 0) if dim is None or places.ndim == 0 else (whole, dim)
            places = places if places.ndim == whole.ndim else places.unsqueeze(dim)
            free = func._schema.name in ORDERS and not settings.get("stable")
            self.picks.append(Pick(to_host(whole), dim, to_host(places), free))

    def _exact(self, func: Any, given: Any, schema: Any, written: set[str]) -> Any:
        """Return what ``func`` returns or writes in float64; None where it does not run in it."""
        self.late = self.late or time.monotonic() > self.end
        if self.late:
            return None
        try:
            if func._schema.name in LINEAR and (halves := _in_halves(func, _settings(func, *given))):
                return halves
            wide = tree_map_only(torch.Tensor, _widened, given)
            result = func(*wide[0], **wide[1])
        except Exception:  # noqa: BLE001  not every operator has float64
            return None
        return _written(wide, schema, written) if written else result

    def _move(
        self, mine: torch.Tensor, truth: torch.Tensor, least: torch.Tensor | None, *, ranged: bool
    ) -> None:
        if mine.is_complex():
            mine, truth = torch.view_as_real(mine), torch.view_as_real(truth)
        error = (truth - mine).float().nan_to_num_(0.0, 0.0, 0.0)
        if not error.any():
            return
        place = torch.finfo(mine.dtype).eps * mine.abs()
        place = place if least is None else torch.maximum(place, least)
        step = torch.maximum(2.0 * error.abs(), place.float()).mul_(self.times).copysign_(error)
        bounds = _bounds(mine, truth) if ranged else ()
        first = int(torch.randint(COINS, (), generator=self.dice))
        coins = self.coins.repeat(2 + error.numel() // COINS)[first : first + error.numel()]
        coins = coins.to(error.device).view_as(error)
        mine.add_(step.masked_fill_(coins.logical_or(error == 0.0), 0.0))
        if mine.dtype == torch.float32:
            sample = mine.flatten()[:: 1 + mine.numel() // 4096].sort().values
            usual = torch.minimum(-sample[len(sample) // 4], sample[-1 - len(sample) // 4])
            near = mine.abs() < NEAR_ZERO * 2.0**-23 * usual
            mine.copy_(torch.where(near & coins, -mine, mine))
        if bounds:
            mine.clamp_(*bounds)


def _decomposes_rightly(func: Any, given: Any) -> bool:
    """Return whether ``func`` has a decomposition that gives the same results.

    A wrong one would explain its own fault. Results and written arguments are compared in float64, or more
    roughly if the device lacks it.
    """
    decomposition: Any = decomposition_table.get(func)
    for copy, share in ((_widened, 1e-6), (torch.clone, 1e-2)) if decomposition is not None else ():
        with suppress(Exception):
            leaves = []
            for run in (func, decomposition):
                args, kwargs = tree_map_only(torch.Tensor, copy, given)
                leaves.append(tree_leaves((run(*args, **kwargs), args, kwargs)))
            pairs = [pair for pair in zip(*leaves, strict=True) if alike(*pair)]
            return all(float(_gap(*pair).max()) <= share * float(pair[0].abs().max()) for pair in pairs)
    return False


def _rounding_of_sums(func: Any, settings: dict[str, Any], sums: torch.Tensor) -> torch.Tensor:
    """Return the usual rounding errors of ``sums`` if their terms are added one after the other in float32.

    An addition has the RMS error ``u p / sqrt(12)``: ``p`` is the sum so far, and ``u`` a unit in the last
    place of 1. Let ``n`` terms have the sum ``s`` and the RMS ``r``. If ``p`` grows evenly to ``s``, the
    errors add up to ``u |s| sqrt(n) / 6``. If signs are random, ``p`` grows as ``r sqrt(k)``, and they add up
    to ``u r n / 5``. Errors that are not finite count as zero.
    """
    name, given = next(iter(settings.items()))
    count = given.numel() / max(1, sums.numel())
    terms = min(count, CHUNK)
    squares = func(**settings | {name: given.double().square()})
    scale = terms / count if func._schema.name == "aten::mean" else terms
    errors = torch.maximum(sums.abs().double() * (math.sqrt(terms) / 6.0), (squares * scale).sqrt() / 5.0)
    return (2.0**-23 * errors).nan_to_num(0.0, 0.0, 0.0).to(sums.dtype)


def _bounds(mine: torch.Tensor, truth: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the lowest and the highest value that each element of ``mine`` may move to.

    They are 0, -1 or 1 where no element of either tensor is beyond it, and else infinite. An element that is
    not at such a value does not reach it: a logarithm of it would be infinite.
    """
    ends = [float(end) for tensor in (mine, truth) for end in tensor.aminmax()]
    low = next((bound for bound in (0.0, -1.0) if min(ends) >= bound), -math.inf)
    high = next((bound for bound in (0.0, 1.0) if max(ends) <= bound), math.inf)
    limits = torch.finfo(mine.dtype)
    gaps = [limits.eps / 2 if bound else limits.tiny for bound in (low, high)]
    lowest, highest = torch.full_like(mine, low + gaps[0]), torch.full_like(mine, high - gaps[1])
    return lowest.masked_fill_(mine == low, low), highest.masked_fill_(mine == high, high)


class Pick(NamedTuple):
    """Return the elements of ``whole`` that an operator picked, by their indices ``places`` along ``dim``.

    A ``free`` operator may give equal elements any order.
    """

    whole: torch.Tensor
    dim: int
    places: torch.Tensor
    free: bool = False

    def fits(self, found: torch.Tensor, others: list[Pick], tolerance: Tolerance | None) -> bool:
        """Return whether the indices ``found`` pick elements of equal values, each once if eager's do so.

        Values may differ by what they differ by in ``others``. With ``tolerance``, it counts too, and so does
        :data:`SWAYS` times the largest difference of any element.
        """
        places = found.reshape(self.places.shape).long()
        if int(places.min()) < 0 or int(places.max()) >= self.whole.shape[self.dim]:
            return False
        if self._repeats(places) and not self._repeats(self.places):
            return False
        mine, theirs = (self.whole.gather(self.dim, indices) for indices in (places, self.places))
        gaps = [_gap(one.whole, self.whole) for one in others if one.whole.shape == self.whole.shape]
        sway = reduce(torch.maximum, gaps)
        limit = sway.gather(self.dim, places) + sway.gather(self.dim, self.places)
        if tolerance is not None:
            size = _reals(theirs).abs().view_as(theirs)
            limit += tolerance.absolute + SWAYS * sway.max() + tolerance.relative * size
        return bool((_gap(mine, theirs) <= limit).all())

    def _repeats(self, places: torch.Tensor) -> bool:
        return bool((places.sort(self.dim).values.diff(dim=self.dim) == 0).any())


class Rounded(dict[str, Any]):
    """An observation with other rounding, and the elements that its operators picked."""

    picks: tuple[Pick, ...] = ()


def rounded_otherwise(observe: Callable[[], Observation], number: int) -> Observation:
    """Return the observation with other rounding; raises :class:`TimeoutError` if that takes too long."""
    with OtherRounding(number) as mode:
        shown = Rounded(observe())
    if mode.late:
        raise TimeoutError(f"it took longer than {PATIENCE_S:g} s")
    shown.picks = tuple(mode.picks)
    return shown


class EagerResults:
    """Holds what eager's result may be: ``base``, its float64 result, and the results of other correct runs.

    ``run(number)`` returns such a result. Runs differ in their rounding, or in their random numbers. They are
    made only while earlier runs do not explain a difference. A run that raises or returns nothing explains
    nothing, and is the last one. ``exact()`` returns the float64 result, or None if there is none. If an
    exception or :data:`PATIENCE_S` ended the runs, ``stopped_by`` says so. With ``each``, runs must explain
    the largest difference too: one wrong element of many hardly changes the other numbers. ``near`` is the
    largest relative distance from a result without float64 that runs need not explain. Runs explain
    ``slack`` times as much as otherwise.
    """

    def __init__(
        self,
        run: Callable[[int], Observation],
        base: Observation,
        exact: Callable[[], Observation | None] = lambda: None,
        near: float = NEAR,
        slack: float = 1.0,
    ) -> None:
        self.run, self.base, self._exact, self.each, self.near = run, base, exact, False, near
        self.slack = slack
        self.count, self.spent, self.runs_more, self.stopped_by = 0, 0.0, True, ""
        self.sizes: dict[str, torch.Tensor] = {}
        self.parts: dict[str, list[Any]] = {}
        self.moved: dict[str, torch.Tensor] = {}
        self.picks: dict[str, list[Pick]] = {}
        self.reach: dict[str, float] = {}
        self.loose: set[str] = set()

    @cached_property
    def fp64(self) -> Observation | None:
        """Return the float64 result; None if there is none."""
        return self._exact()

    def explains(
        self, path: str, expected: torch.Tensor, found: torch.Tensor, *, rows: slice | None = None
    ) -> bool:
        """Return whether correct runs differ at ``path`` by as much as ``found`` differs from ``expected``.

        Three numbers must not exceed those of the runs: the RMS of the difference, its quantile :data:`BULK`,
        which a few elements do not change, and the part along ``expected`` if it dominates, as after a wrong
        factor. With ``each``, the largest difference must not exceed :data:`EACH` times that of the runs.
        This holds for each part of the tensor (:func:`parts_of`), up to a unit in the last place of its RMS.
        ``rows`` selects some of the numbers.
        """
        base = as_tensor(self.base.get(path))
        if not isinstance(base, torch.Tensor) or _reals(base).shape != _reals(expected).shape:
            return False
        sizes = self._sizes(path, expected, found)
        sizes[2] *= sizes[2] > sizes[0] / 2.0
        sizes[3] *= SWAYS / EACH
        last_place, rows = torch.finfo(expected.dtype).eps * sizes[-1], rows or slice(4 if self.each else 3)

        def enough() -> bool:
            return path in self.sizes and bool((sizes[rows] <= self.sizes[path][rows] + last_place).all())

        return self._until(enough)

    def refute(self, path: str, expected: torch.Tensor, found: torch.Tensor) -> bool:
        """Return whether the runs do not explain the largest difference; False if none could be made."""
        explained = self.explains(path, expected, found, rows=slice(3, 4))
        return not explained and (self.count > 0 or not self.runs_more)

    def ties(self, path: str, differs: torch.Tensor, found: torch.Tensor, tolerance: Tolerance) -> bool:
        """Return whether rounding decides each element, of an integer or boolean tensor, that ``differs``.

        It does so where float64 or a run has another value. As many elements may be left as the last runs
        were the first to change. Indices must be those of equal elements. They need not differ in a run if
        the operator may choose any of these. Other integers may be at most :data:`SWAYS` times as far from
        eager's as those of the runs.
        """
        base, truth = self.base.get(path), (self.fp64 or {}).get(path)
        if not isinstance(base, torch.Tensor) or base.shape != found.shape:
            return False
        if isinstance(truth, torch.Tensor) and truth.shape == base.shape:
            self._move(path, base, truth, 1)
        nowhere = torch.zeros_like(differs, dtype=torch.uint8)

        def enough() -> bool:
            first = self.moved.get(path, nowhere)[differs]
            decided = int((first == 0).sum()) <= int((first > RUNS - len(TIMES)).sum())
            if picks := self.picks.get(path):
                pick = picks[-1]
                return (decided or pick.free) and pick.fits(found, picks, tolerance if decided else None)
            return bool(self.count) and decided and (found.dtype not in WHOLE or self._reaches(path, found))

        return self._until(enough)

    def loosens(self, path: str, found: Any = None) -> bool:
        """Return whether rounding decides the shape of the tensor at ``path``, or the number ``found``."""
        loose = self._until(lambda: path in self.loose)
        return loose and (path not in self.reach or self._reaches(path, torch.tensor(found)))

    def _reaches(self, path: str, found: torch.Tensor) -> bool:
        base, far = torch.as_tensor(self.base[path]), SWAYS * self.reach.get(path, 0.0)
        gap = found.double() - base.double()
        return bool((gap.abs() <= far).all()) and not bool(((found < 0) & (base >= 0)).any())

    def _until(self, enough: Callable[[], bool]) -> bool:
        while not (answer := enough()) and self.runs_more and self.count < RUNS and self.spent < PATIENCE_S:
            began = time.monotonic()
            try:
                other = self.run(self.count + 1)
            except Exception as error:  # noqa: BLE001  a model need not run in another way
                raised = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
                other, self.stopped_by = {}, f"eager with other rounding raised {raised}"
            self.spent += time.monotonic() - began if other else PATIENCE_S
            self.count += bool(other)
            if other and self.count < RUNS and self.spent >= PATIENCE_S:
                self.stopped_by = (
                    f"only {self.count} of {RUNS} further eager runs finished in {PATIENCE_S:g} s"
                )
            for path, base in self.base.items():
                if path in other:
                    self._note(path, as_tensor(base), as_tensor(other[path]))
                    self._note_picks(path, base, getattr(other, "picks", ()), other[path])
        return answer

    def _note(self, path: str, base: Any, other: Any) -> None:
        if not isinstance(base, torch.Tensor):
            if base != other:
                self.loose.add(path)
                if isinstance(base, int) and isinstance(other, int):
                    self.reach[path] = max(self.reach.get(path, 0.0), abs(other - base))
        elif not isinstance(other, torch.Tensor) or base.shape != other.shape:
            self.loose.add(path)
        elif base.is_floating_point() or base.is_complex():
            sizes = self.slack * SWAYS / times_of(self.count) * self._sizes(path, base, other)
            self.sizes[path] = torch.maximum(self.sizes.get(path, sizes), sizes)
        else:
            self._move(path, base, other, self.count)

    def _move(self, path: str, base: torch.Tensor, other: torch.Tensor, number: int) -> None:
        """Note that ``number`` is the first run in which elements of ``other`` differ."""
        first = self.moved.get(path, torch.zeros_like(base, dtype=torch.uint8))
        self.moved[path] = first.masked_fill((first == 0) & (base != other), number)
        if base.dtype in WHOLE and base.numel():
            far = float((other.double() - base.double()).abs().max())
            self.reach[path] = max(self.reach.get(path, 0.0), far)

    def _note_picks(self, path: str, base: Any, picks: tuple[Pick, ...], leaf: Any) -> None:
        if isinstance(base, torch.Tensor) and isinstance(leaf, torch.Tensor) and leaf.dtype in WHOLE:
            own = [pick for pick in picks if torch.equal(pick.places.flatten(), leaf.flatten())]
            self.picks.setdefault(path, []).extend(own)

    def _sizes(self, path: str, base: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Return RMS, bulk, RMS along ``base`` and maximum of each part's difference, and RMS of its base."""
        if path not in self.parts:
            whole = as_reals(as_tensor(self.base[path])).double().nan_to_num(0.0, 0.0, 0.0)
            self.parts[path] = [part if part is ... else part.flatten() for part in parts_of(whole, path)[0]]
        base, other = _reals(base), _reals(other)
        sizes = [_sizes_of_part(base[part], other[part]) for part in self.parts[path]]
        return torch.tensor(sizes, dtype=torch.float64).T


def times_of(number: int) -> float:
    """Return the ratio of the errors of run ``number`` to eager's."""
    return TIMES[(number - 1) % len(TIMES)]


def _sizes_of_part(base: torch.Tensor, other: torch.Tensor) -> tuple[float, ...]:
    if not base.numel():
        return 0.0, 0.0, 0.0, 0.0, 0.0
    gap = other - base
    bulk = gap.abs().kthvalue(max(1, int(BULK * gap.numel()))).values
    along = abs(float(gap @ base)) / max(float(base.norm()), 1e-300) / gap.numel() ** 0.5
    return _rms(gap), float(bulk), along, float(gap.abs().max()), _rms(base)


def _reals(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements of ``tensor`` in a row, as float64, with 0 for NaNs and infinities."""
    return as_reals(tensor).double().flatten().nan_to_num(0.0, 0.0, 0.0)


def _gap(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Return the distances of elements; two equal infinities, or two NaNs, have the distance 0."""
    return (one.double() - other.double()).abs().nan_to_num(0.0, torch.inf, torch.inf)


def _rms(tensor: torch.Tensor) -> float:
    return float(tensor.square().mean().sqrt())


def _settings(func: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments of a call by their names; defaults are left out."""
    names = (argument.name for argument in func._schema.arguments)
    return {**dict(zip(names, args)), **kwargs}  # noqa: B905


def _in_halves(func: Any, settings: dict[str, Any]) -> list[torch.Tensor]:
    """Return the sum of the results for the upper and the lower halves of the first argument's elements.

    The results are in float32, their sum is in float64. Its rounding errors are about as large as those of
    ``func`` in float32, and independent of them. Only the upper halves get the bias. The list is empty on
    other devices, for dtypes that :data:`WIDE` lacks, for complex numbers, and if float32 elements have no
    lower half.
    """
    name, given = next(iter(settings.items()))
    if given.device.type != HOST or given.dtype not in WIDE or given.is_complex():
        return []
    settings = tree_map_only(torch.Tensor, torch.Tensor.float, settings)
    whole = settings[name]
    upper = whole.view(torch.int32).bitwise_and(UPPER).view(torch.float32)
    if torch.equal(upper, whole):  # as are all numbers of fewer digits
        return [] if given.dtype == torch.float32 else [one.double() for one in _tensors(func(**settings))]
    lower = settings | {name: whole - upper} | ({"bias": None} if "bias" in settings else {})
    results = func(**settings | {name: upper}), func(**lower)
    return [one.double().add_(other) for one, other in zip(*map(_tensors, results))]  # noqa: B905


def _tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def _written(given: Any, schema: Any, names: set[str]) -> list[Any]:
    """Return the arguments called ``names`` of a call."""
    args, kwargs = given
    named = [*zip((each.name for each in schema), args), *kwargs.items()]  # noqa: B905  defaults are left out
    return [value for name, value in named if name in names]


def _inexact(value: Any) -> bool:
    return any(tensor.dtype in WIDE for tensor in _tensors(value))


def _widened(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(WIDE.get(tensor.dtype, tensor.dtype), copy=True)

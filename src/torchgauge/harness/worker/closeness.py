"""Does each tensor of a result agree on its own scale? A tolerance alone passes small gradients as zeros.

What a correct implementation may differ by is read from the observation itself. *Noise* is eager's relative
error against float64: that of the tensor, and at least the median over tensors of its kind, because one
tensor may have been lucky. *Discord* is the median over all tensors of how far result and eager lie apart, in
units of eager's own error: about 1 for independent implementations, 0 for the same kernels. A tensor fails

1. against float64, if it lies further from it than ``NEAR`` of its RMS plus m times its noise;
2. in its slope, if the regression of the result on float64 is another than eager's by more than ``SLOPE``,
   a quarter of the noise (rounding averages out over elements, a wrong factor does not) and three standard
   errors together;
3. against eager, if it lies further from it than ``AGREE`` of eager's RMS plus ``DISCORDS`` times discord
   times noise.

What is nearer to float64 than eager passes, unless it is all zeros. The first two need a tensor that is
larger than eager's error. Where float64 says zero, only what has grown to the size of other tensors is wrong.
A tensor with elements of very different magnitude, such as scores beside pads, is judged in parts
(:func:`parts_of`). Without float64 the second, against eager, and the third are left: the third alone would
excuse a fault that all tensors share. So a tensor further than ``NEAR`` of eager's RMS from eager fails too,
if eager can run again and further runs with other rounding differ less. On the same condition a tensor fails
by one of its slices (:func:`odd_slices`): zeroing one row of a thousand changes a tensor by 3 % of its RMS.
``docs/method.md`` has what the rule finds, and where its numbers come from.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise, repeat
from typing import Any

import torch

from torchgauge.suites.outputs import ROUNDING_FLOOR
from torchgauge.suites.torchbench.step_state import WRITTEN
from torchgauge.suites.torchbench.steps import NO_MOMENTS

NEAR = 0.1
FORWARD, TIGHT, BULK = 0.0001, 0.001, 0.9
"""If eager can run again on the same device, ``FORWARD`` replaces :data:`NEAR` in inference, and ``TIGHT``
otherwise: a backward pass through batch norms amplifies rounding. Of an update or a moment in TorchBench,
the quantiles ``BULK`` of the elements' differences and sizes must have that ratio too: a wrong factor changes
all elements, but an optimizer that divides gradients by their size may reverse a few because of rounding.
"""
SLOPE = 0.05
AGREE = 0.05
DISCORDS = 20.0
STEADY = 0.2
"""The noise up to which correct results have one slope; beyond it whole tensors shrink and grow."""
NOTHING = 1e3
"""Float64 says zero where eager's error is so many times the tensor: a bias before a batch norm, for one."""
SLIGHT = 1e-2
"""Without float64, a tensor below this share of its kind's median RMS may be such a zero. The gradient of a
bias before a batch norm sums rounding errors: up to 1e-3 of the median RMS with inductor.
"""
NONSENSE = 0.5
"""How far eager on the host may lie from float64, in RMS; rounding does not come near (docs/method.md)."""
CHAOS = 3.0
"""Some networks turn rounding into other gradients altogether: then all of them are far off, not one."""
ROUNDING = 2.0**-23
"""The last place of a float32 number of size one: what a parameter, as in a normalisation, may lose of each
step, and a loss that is the difference of two such numbers.
"""
USUAL = 3.0
"""The multiplier m that rounding is given at most; an exception with more widens all bounds in proportion."""
FILLED = 0.5
"""A step that is small beside its parameter is rounded away in most elements: one more is no fault."""
SHRUNK = 0.8
"""A tensor below eager's error is nearer to float64 the smaller it is: so much smaller it has to be."""

GAP, FEW = 12, 4
"""Gap in powers of two above which larger elements are a part of their own, if at least so many elements are
smaller. Otherwise rounding of the larger elements would hide an error of a percent in the smaller ones.
"""

SLICES = 16
"""Least length of a dimension whose slices are judged: in a shorter one, a wrong slice shows in the RMS."""

DENORMAL = 1e-30
"""Magnitude below which code may compute zeros: products of numbers of that size have no normal number."""

PIECE = 1 << 24
"""Number of elements that are compared at a time: float64 copies of a large tensor need memory."""


Leaves = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]
"""Eager's tensor, the result and float64's, if there is one; all real and of one shape."""


@dataclass(frozen=True)
class Closeness:
    """Sums over the elements of one tensor, in float64; the last four are None without a float64 reference.

    ``eager``, ``result`` and ``truth`` are sums of squares, ``gap`` that of the result less eager, ``error``
    and ``eager_error`` those of the distances from float64. ``along`` is the scalar product of float64 with
    the result less eager. ``multiplier`` is m, ``filled`` the share of eager's elements that are not zero.
    The sums are over all elements of ``leaves``, or over one part of them (:func:`parts_of`), which may be
    ``sliced``.
    """

    path: str
    count: int
    multiplier: float
    eager: float
    result: float
    gap: float
    filled: float = 1.0
    truth: float | None = None
    eager_error: float | None = None
    error: float | None = None
    along: float | None = None
    leaves: Any = field(default=(), compare=False, repr=False)
    sliced: bool = field(default=False, kw_only=True)

    @property
    def slack(self) -> float:
        """By how much an exception widens the bounds of this tensor."""
        return max(1.0, self.multiplier / USUAL)

    @property
    def slope(self) -> float:
        """The regression of the result on eager; eager is not all zeros."""
        return (self.result + self.eager - self.gap) / 2 / self.eager

    @property
    def scatter(self) -> float:
        """How far the result lies from its regression on eager, in eager's RMS; no factor changes it much."""
        return math.sqrt(max(0.0, self.result / self.eager - self.slope**2))

    @property
    def noise(self) -> float | None:
        """Eager's error relative to the tensor; None without float64 or where that is zero."""
        if self.truth is None or self.eager_error is None or not self.truth:
            return None
        return math.sqrt(self.eager_error / self.truth)


def scales(tensor: torch.Tensor) -> list[Any]:
    """Return an index for each part of a real, finite ``tensor``, whose elements have similar magnitudes."""
    sizes = (tensor if tensor.dtype == torch.float64 else tensor.float()).detach().abs().contiguous()
    bits, digits = (torch.int64, 52) if sizes.dtype == torch.float64 else (torch.int32, 23)
    counts = torch.bincount(sizes.view(bits).flatten() >> digits)  # elements by exponent; zeros come first
    counts[:1] = 0
    bounds, below = [0.0], 0
    for low, high in pairwise(counts.nonzero().flatten().tolist()):
        below += int(counts[low])
        if high - low > GAP and below >= FEW:
            bounds.append(float(torch.tensor(high << digits, dtype=bits).view(sizes.dtype)))
            below = 0
    if len(bounds) == 1:
        return [...]
    return [(sizes >= lower) & (sizes < upper) for lower, upper in pairwise([*bounds, math.inf])]


def parts_of(tensor: torch.Tensor, path: str) -> tuple[list[Any], bool]:
    """Return an index for each part of a tensor, and whether the parts consist of slices, as of an output.

    A column may be tiny beside others because of its unit. The slices are those of one dimension.
    """
    parts = scales(tensor)
    if len(parts) > 1 or not path.startswith("out") or tensor.ndim < 2 or not tensor.numel():
        return parts, False
    for dim in range(tensor.ndim):
        tops = (
            tensor.abs().amax([other for other in range(tensor.ndim) if other != dim], keepdim=True).double()
        )
        below = ((tops.max() / tops).log2() / GAP).floor().nan_to_num(0.0, 0.0, 0.0)  # no part of zeros
        levels = below.unique()
        if len(levels) > len(parts):
            parts = [(below == level).expand(tensor.shape) for level in levels]
    return parts, len(parts) > 1


def largest_gap(one: torch.Tensor, other: torch.Tensor) -> float:
    """Return the largest distance of elements of two tensors of one shape, in float64; NaN if any is NaN."""
    wide = torch.complex128 if one.is_complex() else torch.float64
    pieces = zip(*(each.flatten().split(PIECE) for each in (one, other)), strict=True)
    return float(
        torch.stack([(first.to(wide) - second.to(wide)).abs().max() for first, second in pieces]).max()
    )


def measure(path: str, leaves: Leaves, part: Any, multiplier: float) -> Closeness:
    """Return the closeness of the elements ``part`` of ``leaves``, which are finite."""
    tensors = [leaf[part].flatten().split(PIECE) for leaf in leaves if leaf is not None]
    filled, sums = 0, [0.0] * (3 if len(tensors) < 3 else 7)
    for pieces in zip(*tensors, strict=True):
        eager, result, *wide = (piece.double() for piece in pieces)
        gap = result - eager
        pairs = [(eager, eager), (result, result), (gap, gap)]
        for exact in wide:
            error, eager_error = result - exact, eager - exact
            pairs += [(exact, exact), (eager_error, eager_error), (error, error), (gap, exact)]
        filled += int(torch.count_nonzero(eager))
        sums = [total + float(one @ other) for total, (one, other) in zip(sums, pairs, strict=True)]
    count = sum(map(len, tensors[0]))
    values = sums[0], sums[1], sums[2], filled / max(1, count), *sums[3:]
    return replace(Closeness(path, count, multiplier, *values), leaves=leaves)


@dataclass(frozen=True)
class Yardstick:
    """What correct tensors of one observation differ by.

    ``noise``, ``size`` and ``largest`` are those of each kind of tensor: the median noise over tensors that
    are larger than eager's error, and eager's median and largest RMS. ``discord`` is explained above;
    ``share`` is its like without float64, the median distance of result and eager in units of eager's RMS:
    over the tensors of a kind, since one iteration may be chaotic and another not, but at least that over
    all. ``scatter`` is the median of what no factor explains of that, ``turn`` that of how far slopes
    against eager are off one.
    """

    noise: Mapping[str, float]
    size: Mapping[str, float]
    largest: Mapping[str, float]
    discord: float
    share: Mapping[str, float]
    scatter: Mapping[str, float]
    turn: Mapping[str, float]

    @classmethod
    def of(cls, tensors: Sequence[Closeness]) -> Yardstick:
        """The yardstick that ``tensors``, all of one observation, make for each of them."""
        sizes = [(each.path, _rms(each.eager, each)) for each in tensors]
        some = [each for each in tensors if each.eager]
        gaps = [(each.path, math.sqrt(each.gap / each.eager)) for each in some]
        usual = _median_of_kinds(gaps)
        several = [each for each in some if each.count > 1]  # one element has no scatter
        return cls(
            noise=_noise_of_kinds(tensors),
            size=_median_of_kinds(sizes),
            largest={kind_of(path): size for path, size in sorted(sizes, key=lambda item: item[1])},
            discord=_low_median(
                math.sqrt(each.gap / each.eager_error) for each in tensors if each.eager_error
            ),
            share={kind: max(own, _low_median(gap for _, gap in gaps)) for kind, own in usual.items()},
            scatter=_median_of_kinds((each.path, each.scatter) for each in several),
            turn=_median_of_kinds((each.path, abs(each.slope - 1.0)) for each in several),
        )

    def judge(self, each: Closeness) -> str:
        """What is wrong with a tensor on its own scale; empty if nothing is."""
        kind = kind_of(each.path)
        if self.is_zero(each):
            return self._grown(each)
        if each.truth is None or each.error is None or each.eager_error is None or each.along is None:
            limit = (AGREE + DISCORDS * self.share[kind]) * math.sqrt(each.eager)
            return self._turned(each) or _apart(each, limit)
        own = each.noise or 0.0
        if each.filled >= FILLED and not each.result:
            return "all zeros, unlike float64 and eager"
        if each.error <= each.eager_error and (own < 1.0 or each.result <= SHRUNK * each.eager):
            return ""
        noise, size = max(own, self.noise.get(kind, 0.0)), math.sqrt(each.truth)
        if own < 1.0:
            distance = math.sqrt(each.error) / size
            if distance > NEAR * each.slack + each.multiplier * noise:
                error = f"its error against float64 is {distance:.2g} times float64's RMS"
                return f"{error}, and eager's {own:.2g} times"
            slope = 1.0 + each.along / each.truth
            steady = SLOPE + noise / 4 + 3 * noise / math.sqrt(each.count)
            if noise <= STEADY and abs(slope - 1.0) > steady * each.slack:
                return f"about {slope:.3g} times eager's"
        return _apart(each, AGREE * math.sqrt(each.eager) + DISCORDS * self.discord * noise * size)

    def is_zero(self, each: Closeness) -> bool:
        """Return whether a tensor is zero but for rounding errors, or may be so where there is no float64."""
        if each.truth is None:
            return not each.eager or _rms(each.eager, each) < SLIGHT * self.size[kind_of(each.path)]
        return each.noise is None or each.noise >= NOTHING

    def _turned(self, each: Closeness) -> str:
        """What is wrong with the slope against eager, where there is no float64 to ask."""
        if each.filled >= FILLED and not each.result:
            return "all zeros, unlike eager"
        kind = kind_of(each.path)
        turn, noise = abs(each.slope - 1.0), max(each.scatter, self.scatter.get(kind, math.inf))
        steady = SLOPE + noise / 4 + 3 * noise / math.sqrt(each.count)
        shared = self.turn.get(kind, 0.0) > (SLOPE + noise / 4) * each.slack  # correct ones have odd tensors
        if noise > STEADY or not shared or turn <= steady * each.slack:
            return ""
        return f"about {each.slope:.3g} times eager's"

    def far(self, each: Closeness, near: float) -> str:
        """Return what is wrong with a tensor whose RMS distance from eager exceeds ``near`` of eager's RMS.

        Return an empty string if the distance is within the limit, or if float64 allows it: a tensor may be
        as far from float64 as eager, or as ``near`` and m times the noise.
        """
        gap, size = _rms(each.gap, each), _rms(each.eager, each)
        kind = kind_of(each.path)
        if each.truth is not None and each.error is not None and each.eager_error is not None:
            noise = max(each.noise or 0.0, self.noise.get(kind, 0.0))
            far = math.sqrt(each.error) > (near * each.slack + each.multiplier * noise) * math.sqrt(
                each.truth
            )
            if not far or each.error <= each.eager_error:
                return ""
        slight = SLIGHT * self.size.get(kind, 0.0) if self.is_zero(each) and each.result else 0.0
        limit = max(near * size * each.slack, ROUNDING_FLOOR * self.largest.get(kind, 0.0), slight)
        if gap <= limit:
            return ""
        excess = f"{gap / limit:.3g} times the limit" if limit else "above the limit of 0"
        return f"its RMS distance from eager is {gap:.2g}, {excess}; eager's RMS is {size:.2g}"

    def _grown(self, each: Closeness) -> str:
        """What is wrong with a tensor that ought to be zero: it has the size of those that are not."""
        found = _rms(each.result, each)
        limit = AGREE * self.largest.get(kind_of(each.path), 0.0)
        if not limit or found <= (limit + DISCORDS * _rms(each.eager, each)) * each.slack:
            return ""
        return f"an RMS of {found:.2g} instead of zero"


def strangers(
    tensors: Sequence[Closeness], *, near: float | None = None
) -> Iterator[tuple[Closeness, str, bool]]:
    """Yield each tensor that does not agree on its own scale, and what is wrong with it.

    With ``near``, a tensor that is farther from eager is yielded too, unless it is an update or a moment of
    which few elements are, and without float64 one that is farther than :data:`NEAR`: eager can run again
    with other rounding, and the caller lets the tensor pass if such runs differ as much. The last item is
    True if the tensor fails even when these runs do not finish.
    """
    yardstick = Yardstick.of([each for each in tensors if each.eager or each.truth])
    for each in tensors:
        reason, sure = yardstick.judge(each), True
        if not reason and near is not None:
            reason = yardstick.far(each, NEAR) if each.truth is None else ""
            if not reason and (nearer := yardstick.far(each, near) or _tiny(each)):
                few = _is_derived(each.path) and not _bulk_differs(each, near)
                reason, sure = "" if few else nearer, False
        if reason:
            yield each, reason, sure


def _tiny(each: Closeness) -> str:
    """Return how far slices are from eager's that are tiny beside others, and no denormal numbers."""
    gap, size = _rms(each.gap, each), _rms(each.eager, each)
    if not each.sliced or gap <= NEAR * size or size < DENORMAL:
        return ""
    return f"in small slices, its RMS distance from eager is {gap:.2g}; eager's RMS is {size:.2g}"


def _bulk_differs(each: Closeness, near: float) -> bool:
    """Return whether the quantile ``BULK`` of differences exceeds ``near`` times that of sizes above 0."""
    filled = each.leaves[0] != 0.0
    expected, found = (leaf[filled].double() for leaf in each.leaves[:2])
    if not len(expected):
        return False
    place = max(1, int(BULK * len(expected)))
    gap, size = (sizes.abs().kthvalue(place).values for sizes in (found - expected, expected))
    return bool(gap > near * each.slack * size)


def odd_slices(tensors: Iterable[Closeness]) -> Iterator[tuple[Closeness, str]]:
    """Yield each tensor of which a slice is wrong, and what is wrong with it.

    A slice is all elements of one index of a dimension: a row, a column, a channel, an element of a vector.
    It is wrong if its difference from eager exceeds its norm times ``NEAR``, and its norm times ``DISCORDS``
    times the median ratio of difference to norm. The norm is at least the root mean square norm of all
    slices. A slice that is at least as near to float64 as eager is right. Slices of updates and moments of
    a TorchBench step are not judged: Adam divides a gradient by its size, so rounding of a small one may
    reverse an update.
    """
    some = [each for each in tensors if each.eager or each.truth]
    yardstick = Yardstick.of(some)
    for path, group in groupby(some, lambda each: each.path):
        if _is_derived(path):
            continue
        parts = [*group]
        eager, gap = sum(each.eager for each in parts), sum(each.gap for each in parts)
        if gap and not all(map(yardstick.is_zero, parts)):
            slack = max(each.slack for each in parts)
            least = ROUNDING_FLOOR * yardstick.largest[kind_of(path)]
            if reason := _odd_slice(parts[0].leaves, eager, gap, slack, least):
                yield parts[0], reason


def _is_derived(path: str) -> bool:
    """Return whether ``path`` is that of an update or a moment of a TorchBench step."""
    return path.startswith("state.") and not path.startswith(NO_MOMENTS)


def _odd_slice(tensors: Leaves, eager: float, gap: float, slack: float, least: float) -> str:
    """Describe the worst slice that is wrong; empty if none is.

    ``eager`` and ``gap`` are sums of squares. Slices whose RMS is below ``least`` are judged as if it were
    that.
    """
    expected, found, truth = tensors
    for dim, length in enumerate(expected.shape):
        if length < SLICES or gap <= NEAR**2 * eager / length:
            continue
        norms, gaps = _norms(dim, expected), _norms(dim, expected, found)
        ratio = float((gaps / norms)[norms > 0.0].median())
        usual, rms = math.sqrt(eager / length), math.sqrt(length / expected.numel())
        limits = slack * max(NEAR, DISCORDS * ratio) * norms.clamp(min=max(usual, least / rms))
        excess = (gaps - limits).nan_to_num(0.0, 0.0, 0.0)
        if truth is not None:
            excess[_norms(dim, truth, found) <= _norms(dim, truth, expected)] = 0.0
        index = int(excess.argmax())
        if excess[index] > 0.0:
            far, own = (float(each[index]) * rms for each in (gaps, norms))
            where = f"index {index} of dimension {dim}"
            return f"{where}: its RMS distance from eager is {far:.2g}; eager's RMS is {own:.2g}"
    return ""


def _norms(dim: int, tensor: torch.Tensor, less: torch.Tensor | None = None) -> torch.Tensor:
    """Return the float64 norm of each slice along ``dim`` of a tensor, or of its difference from ``less``."""
    step, norms = max(1, PIECE * tensor.shape[dim] // tensor.numel()), []
    others = repeat(0.0) if less is None else less.split(step, dim)
    for one, other in zip(tensor.split(step, dim), others):  # noqa: B905  zeros have no end
        wide = (one.double() - other).movedim(dim, 0)
        norms.append(wide.reshape(len(wide), -1).norm(dim=1))
    return torch.cat(norms)


def nonsense(tensors: Sequence[Closeness]) -> str:
    """Which tensor of eager's own is nothing like float64's, and by how much; empty if none is.

    A tensor may be off by ``NONSENSE`` of its RMS and ``CHAOS`` times the upper quartile of its kind's noise.
    The RMS counts as a tenth of the kind's median at least, and as its largest where float64 says zero. What
    a step changes of a parameter, and a loss, may be off by ``ROUNDING`` besides.
    """
    kinds: dict[str, list[Closeness]] = defaultdict(list)
    for each in tensors:
        if each.truth is not None:
            kinds[kind_of(each.path)].append(each)
    for kind, members in kinds.items():
        rounding = ROUNDING if kind.endswith((".change", ".loss")) else 0.0
        sizes = sorted(_rms(each.truth, each) for each in members)
        noises = sorted(each.noise for each in members if each.noise is not None and each.noise < NOTHING)
        usual = noises[3 * (len(noises) - 1) // 4] if len(noises) > 1 else 0.0
        for each in members:
            zero = each.noise is None or each.noise >= NOTHING
            size = sizes[-1] if zero else max(_rms(each.truth, each), sizes[len(sizes) // 2] / 10)
            error = _rms(each.eager_error, each)
            if error > (NONSENSE + CHAOS * min(1.0, usual)) * size + rounding:
                truth = _rms(each.truth, each)
                return f"{each.path}: RMS error {error:.2g} against float64, whose RMS is {truth:.2g}"
    return ""


def kind_of(path: str) -> str:
    """Return the kind of a tensor, such as ``iteration0.grad`` for ``iteration0.grad.head.weight``.

    The kind of what a TorchBench step writes has a third part, an attribute of upstream's object: a replay
    buffer moves more than a target network.
    """
    return ".".join(path.split(".")[: 3 if path.startswith(WRITTEN) else 2])


def _apart(each: Closeness, limit: float) -> str:
    if math.sqrt(each.gap) <= limit * each.slack:
        return ""
    share = math.sqrt(each.gap / each.eager) if each.eager else math.inf
    limit /= math.sqrt(each.eager) or 1.0
    return (
        f"its difference from eager is {share:.2g} of eager's RMS, above the limit {limit * each.slack:.2g}"
    )


def _noise_of_kinds(tensors: Iterable[Closeness]) -> dict[str, float]:
    """The median noise of each kind of tensor, over those that are larger than eager's error."""
    noises = ((each.path, each.noise) for each in tensors)
    return _median_of_kinds((path, noise) for path, noise in noises if noise is not None and noise < 1.0)


def _median_of_kinds(values: Iterable[tuple[str, float]]) -> dict[str, float]:
    kinds: dict[str, list[float]] = defaultdict(list)
    for path, value in values:
        kinds[kind_of(path)].append(value)
    return {kind: sorted(each)[len(each) // 2] for kind, each in kinds.items()}


def _rms(squares: float | None, each: Closeness) -> float:
    return math.sqrt((squares or 0.0) / each.count)


def _low_median(values: Iterable[float]) -> float:
    """The median, of two the lower: one wrong tensor of two must not excuse itself; 0 without values."""
    ranked = sorted(values)
    return ranked[(len(ranked) - 1) // 2] if ranked else 0.0

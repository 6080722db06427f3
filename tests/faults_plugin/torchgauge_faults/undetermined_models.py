"""The worker's half of the suite ``undetermined``.

A subclass called ``Wrong...`` is what its base is, but for the result of its compiled form.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch.nn import functional

from torchgauge.records import Workload
from torchgauge.suites.suite import BuiltWorkload

SIDE = 16


def compiled() -> bool:
    """Return whether this is compiled code."""
    return bool(torch.compiler.is_compiling())


class Program(torch.nn.Module):
    """A layer with 8 pairs of outputs that differ in their last place; compiled, it rounds otherwise."""

    always_trains = False

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(SIDE, SIDE, bias=False)
        with torch.no_grad():
            self.linear.weight[1::2] = self.linear.weight[0::2] * (1.0 + 2.0**-23)
        self.x = torch.randn(SIDE, SIDE)

    def scores(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        if compiled():
            return functional.linear(x.double(), self.linear.weight.double()).to(x.dtype)
        return self.linear(x)


class SortsNearScores(Program):
    def forward(self, x: torch.Tensor) -> Any:
        values, places = self.scores(x).sort()
        return {"values": values, "places": places}


class WrongSort(SortsNearScores):
    def forward(self, x: torch.Tensor) -> Any:
        shown = super().forward(x)
        return {**shown, "places": shown["places"].roll(2, 1)} if compiled() else shown


class TopOfEqualScores(Program):
    """Half of the scores are equal: any order of those is right."""

    def forward(self, x: torch.Tensor) -> Any:
        scores = self.scores(x).relu()
        best = scores.flip(1).topk(SIDE) if compiled() else scores.topk(SIDE)
        return {"values": best.values, "places": SIDE - 1 - best.indices if compiled() else best.indices}


class WrongTop(TopOfEqualScores):
    def forward(self, x: torch.Tensor) -> Any:
        shown = super().forward(x)
        return {**shown, "places": shown["places"].roll(2, 1)} if compiled() else shown


class WrongTie(Program):
    """Compiled code returns the index of another value where rounding decides the order."""

    def forward(self, x: torch.Tensor) -> Any:
        places = self.scores(x).sort().indices
        other = places.clone()
        other[0, 0], other[0, 1] = places[0, SIDE - 1], places[0, SIDE - 2]
        return {"places": other if compiled() else places}


class TwiceTheSame(TopOfEqualScores):
    """Compiled code returns the index of one of equal elements twice."""

    def forward(self, x: torch.Tensor) -> Any:
        places = self.scores(x).relu().topk(SIDE).indices
        return (
            {"places": torch.where(torch.arange(SIDE) == SIDE - 1, places[:, -2:-1], places)}
            if compiled()
            else {"places": places}
        )


class NoPlace(TopOfEqualScores):
    """Compiled code returns indices outside of the tensor where rounding decides; indices begin at one."""

    def forward(self, x: torch.Tensor) -> Any:
        shown = super().forward(x)
        tied = shown["values"] == 0.0
        places = torch.where(tied, 10**6, shown["places"]) if compiled() else shown["places"]
        return {"places": places + 1}


class EqualSums(Program):
    """Sums that are one but for rounding: float64 and eager disagree, and compiled sums are exact."""

    def __init__(self) -> None:
        super().__init__()
        self.x = torch.randn(4 * SIDE, SIDE)

    def sums(self, x: torch.Tensor) -> torch.Tensor:
        """Return a number for each row."""
        return (x.double() if compiled() else x).softmax(-1).sum(-1).to(x.dtype)


class HighestOfEqualSums(EqualSums):
    def forward(self, x: torch.Tensor) -> Any:
        return {"places": self.sums(x).cummax(0).indices}


class WrongHighest(EqualSums):
    def forward(self, x: torch.Tensor) -> Any:
        places = (self.sums(x) + torch.arange(4 * SIDE) % 3).cummax(0).indices
        return {"places": places.roll(1) if compiled() else places}


class BestOfEqualSums(EqualSums):
    def forward(self, x: torch.Tensor) -> Any:
        return {"places": self.sums(x).topk(4).indices}


class RoundsHalves(EqualSums):
    def forward(self, x: torch.Tensor) -> Any:
        return {"whole": (self.sums(x) * 2.5).round().long()}


class FindsAMode(Program):
    """Rounding decides whether one value occurs twice, or three values occur once."""

    def forward(self, x: torch.Tensor) -> Any:
        values, places = self.scores(x)[:, :3].mode()
        return {"values": values, "places": places}


class MasksNearScores(Program):
    def forward(self, x: torch.Tensor) -> Any:
        scores = self.scores(x)
        return {"scores": scores, "mask": scores[:, 0::2] < scores[:, 1::2]}


class MasksManyScores(MasksNearScores):
    """So many pairs that runs with other rounding do not decide each of them otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.x = torch.randn(1 << 14, SIDE)

    def forward(self, x: torch.Tensor) -> Any:
        shown = super().forward(x)
        return {"mask": torch.cat([shown["mask"], shown["scores"][:, :1] > 0.1], 1)}


class WrongMaskOfMany(MasksManyScores):
    """Compiled code is wrong in 32 of 147456 places."""

    def forward(self, x: torch.Tensor) -> Any:
        mask = super().forward(x)["mask"]
        far = torch.arange(len(x)) % 512 == 0
        return {"mask": torch.cat([mask[:, :-1], (mask[:, -1] ^ far)[:, None]], 1) if compiled() else mask}


class WrongMask(MasksNearScores):
    def forward(self, x: torch.Tensor) -> Any:
        scores = self.scores(x)
        mask = scores[:, 0::2] + (1e-3 if compiled() else 0.0) < scores[:, 1::2]
        return {"scores": scores, "mask": mask}


class FindsNearScores(MasksNearScores):
    """The number of places is that of a mask."""

    def forward(self, x: torch.Tensor) -> Any:
        shown = super().forward(x)
        scores, mask = shown["scores"], shown["mask"]
        return {"scores": scores, "places": mask.nonzero(), "best": scores[:, 0::2][mask]}


class WrongFinds(Program):
    def forward(self, x: torch.Tensor) -> Any:
        scores = self.scores(x)
        places = (scores > 0.1).nonzero()
        return {"scores": scores, "places": places[1:] if compiled() else places}


class Amplifies(Program):
    """Makes a result of what rounding leaves of a difference, and runs in no other dtype."""

    def forward(self, x: torch.Tensor) -> Any:
        assert x.dtype == torch.float32
        scores = self.scores(x)
        rest = scores - functional.linear(x.flip(1), self.linear.weight.flip(1))
        return {"scores": scores, "rest": rest * 2.0**20}


class AmplifiesAConvolution(Amplifies):
    """Returns the amplified rounding error of a convolution; compiled code convolves in float64."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel = torch.nn.Parameter(torch.randn(4, SIDE, 3, 1))

    def forward(self, x: torch.Tensor) -> Any:
        assert x.dtype == torch.float32  # so that there is no float64 run
        image, kernel = x.view(1, SIDE, SIDE, 1), self.kernel
        scores = functional.conv2d(image, kernel)
        if compiled():
            scores = functional.conv2d(image.double(), kernel.double()).float()
        rest = scores - functional.conv2d(image.flip(1), kernel.flip(1))
        return {"scores": scores, "rest": rest * 2.0**20}


class WrongBesideNoise(Amplifies):
    def forward(self, x: torch.Tensor) -> Any:
        shown = super().forward(x)
        return {**shown, "scores": shown["scores"] * (1.01 if compiled() else 1.0)}


class WrongNoise(Amplifies):
    def forward(self, x: torch.Tensor) -> Any:
        shown = super().forward(x)
        return {**shown, "rest": shown["rest"] * (30.0 if compiled() else 1.0)}


class WrongAmplifiedConvolution(WrongNoise, AmplifiesAConvolution):
    pass


class StaysInADomain(Amplifies):
    """Takes logarithms, angles and roots of numbers at the ends of their domains."""

    wrong = 1.0

    def forward(self, x: torch.Tensor) -> Any:
        shown = super().forward(x)
        likely, near = (40.0 * shown["scores"]).sigmoid(), (20.0 * shown["scores"]).tanh()
        loss = functional.binary_cross_entropy(likely, torch.ones_like(likely))
        small = (20.0 * shown["scores"]).softmax(1)
        rest = shown["rest"] * (self.wrong if compiled() else 1.0)
        return {"rest": rest, "loss": loss, "angle": near.acos(), "root": (1.0 - small).sqrt()}


class WrongInADomain(StaysInADomain):
    wrong = 30.0


class WrongNearOne(Program):
    """The loss of probabilities just below 1, wrong in compiled code; it runs in no other dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.x = 15.5 + 0.7 * torch.rand(4, SIDE)

    def forward(self, x: torch.Tensor) -> Any:
        assert x.dtype == torch.float32
        loss = functional.binary_cross_entropy(x.sigmoid(), torch.zeros_like(x))
        return {"loss": loss * (1.5 if compiled() else 1.0)}


class WrongAndStrict(Program):
    """Wrong in compiled code; eager raises if a repeated product differs, as it does with other rounding."""

    def forward(self, x: torch.Tensor) -> Any:
        scores = self.linear(x)
        if not compiled():
            assert torch.equal(scores, self.linear(x)), "equal products differ"
        return scores * (1.01 if compiled() else 1.0)


class MasksASum(Program):
    """Rounding decides whether a sum is above 0: it is 0, eager's is below and compiled code's is above."""

    def __init__(self) -> None:
        super().__init__()
        rows = torch.rand(4096, 64)
        rows = torch.cat([rows, -rows[:, torch.randperm(64)]], 1)
        self.x = rows[(rows.sum(1) < 0) & (rows.flip(1).sum(1) > 0)][:1]

    def forward(self, x: torch.Tensor) -> Any:
        return {"mask": (x.flip(1) if compiled() else x).sum(1) > 0}


class NormOfTwo(Program):
    """Normalises two rows that are almost equal, and runs in no other dtype."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(SIDE)
        self.x = torch.randn(SIDE) + 1e-4 * torch.randn(2, SIDE)

    def forward(self, x: torch.Tensor) -> Any:
        assert x.dtype == torch.float32
        return self.norm(self.scores(x)) * x


class WrongNorm(NormOfTwo):
    def forward(self, x: torch.Tensor) -> Any:
        y = super().forward(x)
        return y * 3.0 - y.detach() * 2.0 if compiled() else y


class FlipsAnActivation(Program):
    """One preactivation is so near zero that rounding may flip its sign; compiled code flips it."""

    wrong = 1.0

    def __init__(self) -> None:
        super().__init__()
        offset = 0.1 * torch.randn(SIDE, SIDE)
        offset[0, 0] = self.linear(self.x)[0, 0].detach() + 8e-7
        self.register_buffer("offset", offset)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x) - self.offset
        y = torch.where(y.abs() < 1e-6, y.abs(), y) if compiled() else y
        y = y.relu() + 1.0
        return Scaled.apply(y, self.wrong) if compiled() else y


class WrongActivation(FlipsAnActivation):
    wrong = 1.02


class Scaled(torch.autograd.Function):
    """The identity, with a wrong gradient."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, factor: float) -> torch.Tensor:
        ctx.factor = factor
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return ctx.factor * gradient, None


class FillsARow(Program):
    """Returns numbers of size one beside pads that are a billion times as large."""

    wrong = 1.0

    def shown(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output, wrong by a factor in compiled code."""
        return self.scores(x) * (self.wrong if compiled() else 1.0)

    def forward(self, x: torch.Tensor) -> Any:
        return self.shown(x).masked_fill(torch.arange(SIDE) % 5 == 0, -1e9)


class WrongBesideARow(FillsARow):
    wrong = 1.1


class AddsPads(FillsARow):
    """Pads are added, and so rounded to a multiple of 64."""

    def forward(self, x: torch.Tensor) -> Any:
        return self.shown(x) - 1e9 * (torch.arange(SIDE) % 5 == 0)


class WrongBesideAddedPads(AddsPads):
    wrong = 1.1


class FillsAChannel(FillsARow):
    """Most of the first leaf and all of the second one are pads."""

    def forward(self, x: torch.Tensor) -> Any:
        shown = self.shown(x)
        return shown.masked_fill(torch.arange(SIDE)[:, None] > 2, 1e30), torch.full_like(x, -1e9)


class WrongBesideAChannel(FillsAChannel):
    wrong = 1.1


class HasALargeClass(FillsARow):
    """Returns one row of numbers, of 16, that are ten million times as large."""

    def forward(self, x: torch.Tensor) -> Any:
        return self.shown(x) * torch.where(torch.arange(SIDE) == 3, 1e7, 1.0)[:, None]


class WrongBesideALargeClass(HasALargeClass):
    def forward(self, x: torch.Tensor) -> Any:
        y = super().forward(x)
        return torch.where(y.abs() < 1e3, y * 1.1, y) if compiled() else y


class DropsOut(Program):
    always_trains = True
    share = 1.0

    def forward(self, x: torch.Tensor) -> Any:
        y = functional.dropout(self.linear(x).relu(), 0.5, self.training)
        share = self.share if compiled() else 1.0
        return y * share + y.detach() * (1.0 - share)


class WrongDropout(DropsOut):
    share = 1.1


class LeavesDropoutOut(Program):
    always_trains = True

    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x).relu()
        return y * 1.0 if compiled() else functional.dropout(y, 0.5, self.training)


class SeedsItself(Program):
    """Its seed comes from ``torch.seed``, and a second draw repeats the first, as in Reformer."""

    wrong = 0.0

    def forward(self, x: torch.Tensor) -> Any:
        seed = torch.seed()
        y = functional.dropout(x, 0.5)
        torch.manual_seed(seed)
        return self.linear(y + functional.dropout(x, 0.5)) + (self.wrong if compiled() else 0.0)


class WrongAfterSeeding(SeedsItself):
    wrong = 0.1


class AddsNoise(Program):
    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x + 0.1 * torch.rand_like(x)) * (self.wrong if compiled() else 1.0)

    wrong = 1.0


@torch._dynamo.assume_constant_result
def draws_its_own() -> bool:
    """Return whether inductor draws from its own generator."""
    from torch._inductor import config

    return not config.fallback_random


class DoublesItsNoise(AddsNoise):
    """Is right where inductor draws as eager does."""

    def forward(self, x: torch.Tensor) -> Any:
        noise = torch.rand_like(x) - 0.5
        return self.linear(x + (self.changed(noise) if compiled() and draws_its_own() else noise))

    def changed(self, noise: torch.Tensor) -> torch.Tensor:
        """Return the noise of the timed code."""
        return 2.0 * noise


class MovesItsNoise(DoublesItsNoise):
    def changed(self, noise: torch.Tensor) -> torch.Tensor:
        return noise.abs()


class SharesItsNoise(DoublesItsNoise):
    def changed(self, noise: torch.Tensor) -> torch.Tensor:
        return noise[:1].expand_as(noise)


class SharesItsMask(AddsNoise):
    def forward(self, x: torch.Tensor) -> Any:
        first, second = torch.rand_like(x), torch.rand_like(x)
        shared = compiled() and draws_its_own()
        return self.linear(x + first), self.linear(x + (first if shared else second))


LAST: dict[str, Any] = {"count": 0, "noise": None}


@torch.library.custom_op("torchgauge_faults::repeats", mutates_args=())
def repeats(noise: torch.Tensor) -> torch.Tensor:
    """Return the noise, and in every fourth call that of the call before."""
    LAST["count"] += 1
    if LAST["count"] % 4 or LAST["noise"] is None:
        LAST["noise"] = noise.clone()
    return LAST["noise"].clone()  # type: ignore[no-any-return]


@repeats.register_fake
def _(noise: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(noise)


class RepeatsItsNoise(DoublesItsNoise):
    def changed(self, noise: torch.Tensor) -> torch.Tensor:
        return repeats(noise)


class MasksGradientsOtherwise(Program):
    """The timed code masks gradients by other random numbers than outputs."""

    always_trains = True

    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x).relu()
        mask = (torch.rand_like(y) > 0.5) / 0.5
        if not (compiled() and draws_its_own()):
            return y * mask
        other = (torch.rand_like(y) > 0.5) / 0.5
        return y * other + (y * (mask - other)).detach()


class SeldomDropsBlocks(Program):
    """Two random numbers for each block move the host's generator as far as inductor's seeds do."""

    always_trains = True

    def forward(self, x: torch.Tensor) -> Any:
        for _ in range(8):
            x = x + torch.tanh(self.linear(x)) * (torch.rand(2) < 0.97).all()
        return x


class AmplifiesBesideDraws(Amplifies):
    """Amplifies rounding in a result that its random numbers do not change."""

    def forward(self, x: torch.Tensor) -> Any:
        return {**super().forward(x), "drawn": torch.rand_like(x)}


class WrongNoisyResult(AddsNoise):
    wrong = 1.05


class AddsNoiseToAConvolution(AddsNoise):
    """Draws like the output of a convolution, which inductor changes to channels-last."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(1, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> Any:
        channels = self.convolution(x[None, None])
        return super().forward((channels * (0.5 + torch.rand_like(channels))).sum(1)[0])


class WrongNoisyConvolution(AddsNoiseToAConvolution):
    wrong = 1.05


class DropsOutInARnn(Program):
    """Two layers of cells with dropout between them, in inference too."""

    always_trains = True

    def __init__(self) -> None:
        super().__init__()
        self.cells = torch.nn.ModuleList([torch.nn.GRUCell(SIDE, SIDE), torch.nn.GRUCell(SIDE, SIDE)])

    def forward(self, x: torch.Tensor) -> Any:
        first = second = x
        for _ in range(3):
            first = self.cells[0](x, first)
            second = self.cells[1](functional.dropout(first, 0.5, self.training), second)
        return second


class CountsNearScores(MasksNearScores):
    """Returns numbers of Python."""

    def forward(self, x: torch.Tensor) -> Any:
        shown = super().forward(x)
        return {"scores": shown["scores"], "masked": shown["mask"].sum().item()}


class WrongCount(MasksNearScores):
    def forward(self, x: torch.Tensor) -> Any:
        scores = self.scores(x)
        return {"scores": scores, "above": (scores > (0.1 if compiled() else 0.0)).sum().item()}


class HasSmallTypes(Program):
    """Returns tensors on which PyTorch computes little."""

    def forward(self, x: torch.Tensor) -> Any:
        whole = torch.arange(SIDE, dtype=torch.uint8)
        kinds = (torch.uint16, torch.uint32, torch.uint64)
        return {
            "scores": self.linear(x),
            "whole": [whole.to(kind) for kind in kinds],
            "float8": x.to(torch.float8_e4m3fn),
            "bits": whole.view(torch.bits8),
            "halves": torch.view_as_complex(torch.stack([x, x], -1).half()),
            "nothing": torch.empty(0, dtype=torch.complex32),
        }


class Refuses(torch.Tensor):
    """A tensor that raises where anybody compares it."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.allclose, torch.Tensor.isfinite):
            raise NotImplementedError("\"refused_cpu\" not implemented for 'Refuses'")
        return super().__torch_function__(func, types, args, kwargs)


class Wrapped(torch.Tensor):
    """A tensor around another one, which has no operators."""

    @staticmethod
    def __new__(cls, inside: torch.Tensor) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, inside.shape, dtype=inside.dtype)

    def __init__(self, inside: torch.Tensor) -> None:
        self.inside = inside

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError(f"{func} of a wrapped tensor")


class Flattened(Wrapped):
    """A wrapped tensor that names what it holds."""

    def __init__(self, inside: torch.Tensor) -> None:
        self.parts = [inside]

    @property
    def first(self) -> torch.Tensor:
        """What it holds."""
        return self.parts[0]

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["first"], None


class HasTensorClasses(Program):
    """Returns tensors of classes that do not have all operators."""

    wrong = ""

    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        kinds = ("masked", "inside", "first")
        values = [y * (1.01 if compiled() and kind == self.wrong else 1.0) for kind in kinds]
        return self.shown(x > 0, *values, y)

    @torch.compiler.disable
    def shown(self, mask: torch.Tensor, *values: torch.Tensor) -> Any:
        """Return a tensor of each class; what a mask hides is not equal in two calls."""
        masked, inside, first, y = values
        noise = torch.rand(y.shape, generator=unseeded())
        return {
            "masked": torch.masked.masked_tensor(torch.where(mask, masked, noise), mask),
            "refuses": y.as_subclass(Refuses),
            "wrapped": Wrapped(inside),
            "flattened": Flattened(first),
        }


class WrongMasked(HasTensorClasses):
    wrong = "masked"


class WrongInside(HasTensorClasses):
    wrong = "inside"


class WrongFirst(HasTensorClasses):
    wrong = "first"


class WritesItsWeights(Program):
    def forward(self, x: torch.Tensor) -> Any:
        if compiled():
            with torch.no_grad():
                self.linear.weight.mul_(1.01)
        return self.linear(x)


class HasANanScore(Program):
    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        return {"y": y, "score": y[:0].mean()}


def unseeded() -> torch.Generator:
    """Return a generator that no seed of torchgauge controls."""
    return torch.Generator().manual_seed(int.from_bytes(os.urandom(7), "little"))


class SumsInAnyOrder(Program):
    """Adds up in another order in each call, as atomic additions do, and normalises two near rows."""

    large = 64.0

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(SIDE, eps=1e-6)
        self.x = torch.randn(SIDE) + 3e-3 * torch.randn(2, SIDE)

    def scores(self, x: torch.Tensor) -> torch.Tensor:
        terms = x[:, None, :] * self.linear.weight
        scores = torch.full_like(x, self.large)
        for place in torch.randperm(SIDE, generator=unseeded()).tolist():
            scores = scores + terms[..., place]
        return scores - self.large

    def forward(self, x: torch.Tensor) -> Any:
        return self.norm(self.scores(x))


class SumsOfNoise(SumsInAnyOrder):
    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x) * (1.0 + 0.01 * torch.randn(x.shape, generator=unseeded()).to(x))


class NoiseAsSmallAsRounding(SumsInAnyOrder):
    def scores(self, x: torch.Tensor) -> torch.Tensor:
        noise = torch.randn(x.shape, generator=unseeded()).to(x)
        return super().scores(x) * (1.0 + 1e-6 * noise)


class SortsSums(SumsInAnyOrder):
    """Sorts pairs of sums that differ in their last place."""

    def __init__(self) -> None:
        super().__init__()
        self.x = torch.randn(2 * SIDE, SIDE)

    def forward(self, x: torch.Tensor) -> Any:
        values, places = self.scores(x).sort()
        return {"values": values, "places": places}


class SortsDrawnPlaces(SortsSums):
    def forward(self, x: torch.Tensor) -> Any:
        shown = super().forward(x)
        return {**shown, "places": shown["places"][:, torch.randperm(SIDE, generator=unseeded())]}


def build(workload: Workload) -> BuiltWorkload:
    """Build the program that ``workload`` names."""
    torch.manual_seed(workload.seed)
    pending, kinds = [Program], {}
    while pending:
        kind = pending.pop()
        kinds[kind.__name__.lower()] = kind
        pending += kind.__subclasses__()
    module = kinds[workload.model.replace("_", "")]()
    module.train(module.always_trains or workload.mode == "training")
    x, module.x = module.x, None
    return BuiltWorkload(module, (x,), {}, loss=lambda out: out.square().sum() / SIDE, item="row")

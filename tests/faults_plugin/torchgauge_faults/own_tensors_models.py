"""The worker's half of the suite ``own_tensors``."""

from __future__ import annotations

import collections
import dataclasses
import types
import weakref
from typing import Any

import torch

from torchgauge.records import Workload
from torchgauge.suites.suite import BuiltWorkload

SIDE = 16
Pair = collections.namedtuple("Pair", "first second")  # noqa: PYI024  as programs of users have them


@dataclasses.dataclass(frozen=True)
class Batch:
    """Inputs as an object."""

    x: torch.Tensor
    more: dict[str, torch.Tensor]


class Boxes(list[torch.Tensor]):
    """A list that is made from something else."""

    def __init__(self, size: tuple[int, int], *items: torch.Tensor) -> None:
        super().__init__(items)
        self.size = size


class Table(collections.OrderedDict[str, Any]):
    """A mapping that is made from something else, and cannot be changed."""

    def __init__(self, name: str, **items: Any) -> None:
        for key, value in items.items():
            super().__setitem__(key, value)
        self.name = name

    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError(key)


class Size(tuple[int, ...]):  # noqa: SLOT001  as programs of users have them
    """A tuple that is made from two numbers."""

    def __new__(cls, height: int, width: int) -> Size:  # noqa: PYI034
        return super().__new__(cls, (height, width))


class NamedPair(Pair):
    """A named tuple with another attribute."""


@dataclasses.dataclass(frozen=True, slots=True)
class Sample:
    """Inputs in slots."""

    x: torch.Tensor
    inside: Any = None


def one_memory(*tensors: torch.Tensor) -> None:
    """Raise where ``tensors`` do not share memory; compiled code skips this check."""
    if not torch.compiler.is_compiling():
        assert len({one.untyped_storage().data_ptr() for one in tensors}) == 1, "other memory"


class Program(torch.nn.Module):
    """A linear layer and what its author gives it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(SIDE, SIDE)
        self.inputs: Any = (torch.randn(SIDE, SIDE),)
        self.more: dict[str, Any] = {}


class ComplexWeight(Program):
    def __init__(self) -> None:
        super().__init__()
        self.phase = torch.nn.Parameter(torch.randn(SIDE, dtype=torch.complex64))
        self.register_buffer("turn", torch.randn(SIDE, dtype=torch.complex64))

    def forward(self, x: torch.Tensor) -> Any:
        assert self.phase.dtype == self.turn.dtype == torch.complex64
        return torch.view_as_real(self.linear(x).to(torch.complex64) * self.phase * self.turn)


class Float8Buffer(Program):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scales", torch.rand(SIDE).to(torch.float8_e4m3fn))

    def forward(self, x: torch.Tensor) -> Any:
        assert self.scales.dtype == torch.float8_e4m3fn
        return self.linear(x) * self.scales.to(x.dtype)


class KeepsItsNorm(Program):
    """Cast to bfloat16 by its author, but for the norm."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = self.linear.bfloat16()
        self.norm = torch.nn.LayerNorm(SIDE)
        self.inputs = (torch.randn(SIDE, SIDE).bfloat16(),)

    def forward(self, x: torch.Tensor) -> Any:
        return self.norm(self.linear(x).float())


class OverlappingInputs(Program):
    def __init__(self) -> None:
        super().__init__()
        whole = torch.randn(SIDE, SIDE)
        self.inputs = (whole, whole[1:], whole.t())

    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> Any:
        one_memory(x, y, z)
        return self.linear(x)[1:] + y + z[1:]


class OneInputTwice(Program):
    def __init__(self) -> None:
        super().__init__()
        self.inputs = (self.inputs[0], self.inputs[0])

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        assert torch.compiler.is_compiling() or x is y
        return self.linear(x) + y


class ViewInADict(Program):
    def __init__(self) -> None:
        super().__init__()
        self.more = {"more": {"row": self.inputs[0][3], "pair": Pair(self.inputs[0], 2)}}

    def forward(self, x: torch.Tensor, more: dict[str, Any]) -> Any:
        one_memory(x, more["row"], more["pair"].first)
        return self.linear(x) + more["row"] * more["pair"].second


class BufferOfTheInput(Program):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("first", self.inputs[0][0])

    def forward(self, x: torch.Tensor) -> Any:
        one_memory(x, self.first)
        return self.linear(x) + self.first


class WeightAsInput(Program):
    def __init__(self) -> None:
        super().__init__()
        self.inputs = (self.inputs[0], self.linear.weight)

    def forward(self, x: torch.Tensor, weight: torch.Tensor) -> Any:
        assert torch.compiler.is_compiling() or weight is self.linear.weight
        return self.linear(x) + weight


class ExpandedInput(Program):
    def __init__(self) -> None:
        super().__init__()
        self.inputs = (torch.randn(1, SIDE).expand(SIDE, SIDE),)

    def forward(self, x: torch.Tensor) -> Any:
        assert x.stride() == (0, 1)
        return self.linear(x)


class ConjugateInput(Program):
    def __init__(self) -> None:
        super().__init__()
        self.inputs = (torch.randn(SIDE, dtype=torch.complex64).conj(),)

    def forward(self, x: torch.Tensor) -> Any:
        assert torch.compiler.is_compiling() or x.is_conj()
        return self.linear.weight.to(torch.float32) * torch.view_as_real(x.resolve_conj())[:, 1]


class WeightNorm(Program):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.utils.parametrizations.weight_norm(self.linear)

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x)


class PadsItsLogits(Program):
    """With infinities and NaN, in places that compiled code does not change."""

    first = 12

    def forward(self, x: torch.Tensor) -> Any:
        first = self.first if torch.compiler.is_compiling() else PadsItsLogits.first
        y = self.linear(x)
        y = torch.cat([y[:, :first], torch.full_like(y[:, first:], -torch.inf)], 1)
        return {"logits": y, "best": -float("inf"), "boxes": torch.cat([x, torch.full_like(x, torch.nan)])}


class MovesItsPad(PadsItsLogits):
    first = 11


class LosesItsPad(PadsItsLogits):
    """Where 0 is near the other values."""

    def forward(self, x: torch.Tensor) -> Any:
        shown = super().forward(x)
        if torch.compiler.is_compiling():
            logits = shown["logits"]
            shown["logits"] = torch.where(logits == -torch.inf, 0.0, logits)
        return shown


class GradientOfAView(Program):
    """Of the second input, a view of a leaf."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs = (self.inputs[0], torch.randn(SIDE, SIDE, requires_grad=True).sin())

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        share = 2.0 if torch.compiler.is_compiling() else 1.0
        return self.linear(x) + y * share + y.detach() * (1.0 - share)


class OwnContainers(Program):
    """Inputs in a dataclass and in a mapping with attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.more = {"batch": Batch(self.inputs[0], collections.defaultdict(list, row=self.inputs[0][1]))}
        self.inputs = ()

    def forward(self, batch: Any) -> Any:
        one_memory(batch.x, batch.more["row"])
        assert isinstance(batch.more, collections.defaultdict)
        return self.linear(batch.x) + batch.more["row"]


class TransposedWeight(Program):
    def __init__(self) -> None:
        super().__init__()
        self.linear.weight = torch.nn.Parameter(torch.randn(SIDE, 2 * SIDE)[:, ::2])

    def forward(self, x: torch.Tensor) -> Any:
        assert self.linear.weight.stride() == (2 * SIDE, 2)
        return self.linear(x)


class OneListTwice(Program):
    """In a cycle, and in the module too."""

    def __init__(self) -> None:
        super().__init__()
        rows: list[Any] = [torch.arange(SIDE)]
        rows.append(rows)
        self.rows = rows
        self.more = {"one": rows, "other": {"rows": rows}}

    def forward(self, x: torch.Tensor, one: Any, other: Any) -> Any:
        assert torch.compiler.is_compiling() or one is one[1] is other["rows"] is self.rows
        return self.linear(x) + one[0]


class OneDictTwice(Program):
    """With a tensor that is cast."""

    def __init__(self) -> None:
        super().__init__()
        pair = {"x": self.inputs[0]}
        self.inputs = (pair, [pair, (pair,)])

    def forward(self, pair: Any, pairs: Any) -> Any:
        assert torch.compiler.is_compiling() or pair is pairs[0] is pairs[1][0]
        return self.linear(pair["x"])


class InputsOfOwnClasses(Program):
    def __init__(self) -> None:
        super().__init__()
        x = self.inputs[0]
        pair = NamedPair(x, 2)
        pair.note = [x[0]]
        self.inputs = (
            Boxes((4, 4), x, x[1]),
            Table("first", x=x, pair=pair),
            types.MappingProxyType({"x": x}),
            Sample(x, Sample(x[2])),
            (Size(4, 4), types.SimpleNamespace(x=x)),
        )

    def forward(self, boxes: Any, table: Any, proxy: Any, sample: Any, more: Any) -> Any:
        if not torch.compiler.is_compiling():
            size, space = more
            pair, kinds = table["pair"], [type(one) for one in (boxes, table, proxy, sample, size)]
            assert kinds == [Boxes, Table, types.MappingProxyType, Sample, Size]
            assert (boxes.size, table.name, size, pair.second) == ((4, 4), "first", (4, 4), 2)
            one_memory(*boxes, table["x"], proxy["x"], sample.x, sample.inside.x, pair.first, pair.note[0])
            assert space.x is boxes[0]
        return self.linear(boxes[0]) + boxes[1] + sample.inside.x


def shrink(weight: torch.Tensor) -> None:
    """Make the gradient of ``weight`` smaller."""
    assert weight.grad is not None
    weight.grad.mul_(0.1)


class HookedGradients(Program):
    """Hooks on a weight, on an input and on a layer change the gradients; a weight has an attribute."""

    share = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.nn.Linear(SIDE, SIDE)
        mask, x = torch.rand(SIDE, SIDE) > 0.5, torch.randn(SIDE, SIDE, requires_grad=True)
        self.linear.weight.register_hook(lambda gradient: gradient * mask)
        self.linear.weight.factor = 1.5
        self.linear.bias.register_hook(self.smaller)
        self.last.weight.register_post_accumulate_grad_hook(shrink)
        self.last.register_full_backward_hook(lambda part, below, above: tuple(one * 0.5 for one in below))
        x.register_hook(lambda gradient: gradient * 3)
        self.inputs = (x,)

    def smaller(self, gradient: torch.Tensor) -> torch.Tensor:
        return gradient * self.last.bias.detach()[0]

    def forward(self, x: torch.Tensor) -> Any:
        if not torch.compiler.is_compiling():
            assert self.linear.weight.factor == 1.5
        y = self.linear(x)
        share = self.share if torch.compiler.is_compiling() else 1.0
        return self.last(y * share + y.detach() * (1.0 - share))


class WrongBehindAHook(HookedGradients):
    share = 1.5


class RefersToItself(Program):
    """By a function around a weight, a weak reference and a bound method of a list."""

    def __init__(self) -> None:
        super().__init__()
        scale = self.scale = torch.nn.Parameter(torch.ones(SIDE))
        self.part = torch.nn.Linear(SIDE, SIDE)
        self.part.owner = weakref.ref(self)
        self.seen: list[int] = []
        self.see = self.seen.append
        self.function = lambda x: x * scale
        self.linear.register_forward_pre_hook(lambda part, inputs: (inputs[0] * self.scale,))

    @torch.compiler.disable
    def own(self) -> None:
        self.see(1)
        assert self.see.__self__ is self.seen
        assert self.part.owner() is self
        assert self.function.__closure__[0].cell_contents is self.scale

    def forward(self, x: torch.Tensor) -> Any:
        self.own()
        return self.part(self.linear(self.function(x)))


class InferenceTensors(Program):
    """Made in inference mode, as a buffer and as an input."""

    def __init__(self) -> None:
        super().__init__()
        with torch.inference_mode():
            self.register_buffer("mean", torch.zeros(SIDE))
            self.inputs = (torch.randn(SIDE, SIDE),)

    def forward(self, x: torch.Tensor) -> Any:
        assert torch.compiler.is_compiling() or x.dtype != torch.float32 or self.mean.is_inference()
        return self.linear(x) + self.mean


class OnTheDevice(Program):
    """A packed sequence, an object that moves itself, and one that does not."""

    def __init__(self) -> None:
        super().__init__()
        x = torch.randn(3, 5, SIDE)
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 3, 2]), batch_first=True)
        self.inputs = (packed, Movable(torch.randn(SIDE)), Sample(torch.randn(SIDE), {"more": torch.ones(1)}))

    def forward(self, packed: Any, movable: Any, sample: Any) -> Any:
        device = self.linear.weight.device
        assert packed.data.device == movable.x.device == sample.x.device == device
        assert sample.inside["more"].device == device
        assert {movable.length.device.type, packed.batch_sizes.device.type} == {"cpu"}
        return self.linear(packed.data) + movable.x + sample.x * sample.inside["more"]


class Movable:
    """Moves itself, except its length."""

    def __init__(self, x: torch.Tensor) -> None:
        self.x, self.length = x, torch.tensor(len(x))

    def to(self, device: Any) -> None:
        self.x = self.x.to(device)


class AddsANan(Program):
    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x) / (0.0 if torch.compiler.is_compiling() else 1.0)


class NothingButNan(Program):
    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x) * torch.nan


class WithoutParameters(Program):
    """Whose input requires a gradient."""

    wrong: torch.Tensor | float = 1.0

    def __init__(self) -> None:
        super().__init__()
        del self.linear
        self.inputs = (torch.randn(SIDE, SIDE, requires_grad=True),)

    def forward(self, x: torch.Tensor) -> Any:
        assert torch.compiler.is_compiling() or x.requires_grad
        share = self.wrong if torch.compiler.is_compiling() else 1.0
        y = x.sin()
        return y * share + y.detach() * (1.0 - share)  # equal in the forward pass


class WrongInputGradient(WithoutParameters):
    wrong = 1.5


class NoInputGradient(WithoutParameters):
    wrong = 0.0


class NestedInput(Program):
    def __init__(self) -> None:
        super().__init__()
        self.inputs = (torch.nested.nested_tensor([torch.randn(3, SIDE), torch.randn(5, SIDE)]),)

    def forward(self, x: torch.Tensor) -> Any:
        assert x.is_nested
        return self.linear(torch.nested.to_padded_tensor(x, 0.0))


class SparseRows(Program):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.randn(SIDE, SIDE).relu().to_sparse_csr())

    def forward(self, x: torch.Tensor) -> Any:
        assert self.rows.layout == torch.sparse_csr
        return self.rows.float() @ self.linear(x).float()


class LazyLayer(Program):
    """Its batch norm counts no step before its first one."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = torch.nn.LazyLinear(SIDE), torch.nn.LazyBatchNorm1d(affine=False)

    def forward(self, x: torch.Tensor) -> Any:
        return self.norm(self.linear(x))


class ScriptedPart(Program):
    def __init__(self) -> None:
        super().__init__()
        self.part = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(SIDE, SIDE), torch.nn.ReLU()))

    def forward(self, x: torch.Tensor) -> Any:
        assert all(one.is_leaf for one in self.part.parameters())
        return self.part(self.linear(x))


class ArraysOfOneMemory(Program):
    """Neither array covers the other."""

    def __init__(self) -> None:
        super().__init__()
        import numpy as np

        array = np.random.default_rng(0).standard_normal((SIDE + 1, SIDE)).astype("float32")
        self.inputs = (torch.from_numpy(array[:-1]), torch.from_numpy(array[1:]))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        assert y.data_ptr() - x.data_ptr() == SIDE * x.element_size(), "other memory"
        return self.linear(x) + y


class RowsOfACache(Program):
    """A copy of the whole cache does not fit into the worker's memory."""

    def __init__(self) -> None:
        super().__init__()
        cache = torch.empty(1 << 30)
        self.inputs = (cache[: SIDE * SIDE].view(SIDE, SIDE).copy_(self.inputs[0]), cache[SIDE : 2 * SIDE])

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        one_memory(x, y)
        return self.linear(x) + y


class RefusesDouble(Program):
    """Its results have infinities, and no reference but themselves."""

    def forward(self, x: torch.Tensor) -> Any:
        assert x.dtype != torch.float64
        y = self.linear(x)
        return torch.cat([y[:, :12], torch.full_like(y[:, 12:], -torch.inf)], 1)


def build(workload: Workload) -> BuiltWorkload:
    """Build the program that ``workload`` names."""
    torch.manual_seed(workload.seed)
    bases = (Program, WithoutParameters, PadsItsLogits, HookedGradients)
    kinds = {one.__name__.lower(): one for base in bases for one in base.__subclasses__()}
    module = kinds[workload.model.replace("_", "")]().train(workload.mode == "training")
    args, kwargs, module.inputs, module.more = module.inputs, module.more, (), {}
    return BuiltWorkload(module, args, kwargs, loss=lambda out: out.float().square().sum() / SIDE, item="row")

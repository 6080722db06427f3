"""The worker's half of the suite ``promises``: each fault keeps all numbers of its program."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import queue
import random
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from torchgauge.records import Workload
from torchgauge.suites.suite import BuiltWorkload
from torchgauge_faults import outside

SIDE = 16
Pair = collections.namedtuple("Pair", "first second")  # noqa: PYI024  as programs of users have them
KINDS: dict[str, type[Program]] = {}


@dataclasses.dataclass
class Result:
    """A user's result."""

    logits: torch.Tensor
    more: Any = None


@dataclasses.dataclass
class Twin:
    """Another class with the same fields."""

    logits: torch.Tensor
    more: Any = None


class Output(collections.OrderedDict[str, Any]):
    """A mapping that is read by attributes too."""


class Sub(torch.Tensor):
    """A user's tensor."""


class Cache:
    """Keys of the calls so far."""

    def __init__(self) -> None:
        self.keys: list[torch.Tensor] = []
        self.seen = 0


class Program(torch.nn.Module):
    """A linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(SIDE, SIDE)

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x)

    def keep(self, y: torch.Tensor) -> None:
        """Change the state in attributes."""


class Stateful(Program):
    """A program whose state changes; broken, it does not."""

    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        self.keep(y)
        return y

    def broken(self, x: torch.Tensor) -> Any:
        return self.linear(x)


def named(kind: type[Program]) -> type[Program]:
    """Register a program by its name."""
    KINDS[kind.__name__.lower()] = kind
    return kind


def returns(name: str, right: Callable[..., Any], broken: Callable[..., Any] | None = None) -> None:
    """Register a program that returns what ``right`` makes of module, input and output of the layer."""
    body: dict[str, Any] = {"forward": lambda self, x: right(self, x, self.linear(x))}
    if broken is not None:
        body["broken"] = lambda self, x: broken(self, x, self.linear(x))
    KINDS[name.replace("_", "")] = type(name, (Program,), body)


def buffered(count: int) -> Callable[..., Any]:
    """Return what hands out its results in ``count`` memories, in turns."""
    kept: list[torch.Tensor] = []

    def result(module: Any, x: Any, y: torch.Tensor) -> torch.Tensor:
        kept.insert(0, kept.pop() if len(kept) == count else torch.empty_like(y))
        return kept[0].detach().copy_(y)

    return result


# --- results ---------------------------------------------------------------------------------

returns("dict_for_tuple", lambda m, x, y: (y, y * 2), lambda m, x, y: {0: y, 1: y * 2})
returns("list_for_tuple", lambda m, x, y: (y, y * 2), lambda m, x, y: [y, y * 2])
returns("tuple_for_list", lambda m, x, y: [[y], y * 2], lambda m, x, y: [(y,), y * 2])
returns("lost_none", lambda m, x, y: (y, None), lambda m, x, y: (y,))
returns("lost_none_of_a_dict", lambda m, x, y: {"y": y, "cache": None}, lambda m, x, y: {"y": y})
returns("tensor_for_tuple", lambda m, x, y: (y,), lambda m, x, y: {"": (y,)})
returns("tuple_for_pair", lambda m, x, y: Pair(y, y * 2), lambda m, x, y: (y, y * 2))
returns("other_class", lambda m, x, y: Result(y), lambda m, x, y: Twin(y))
returns("dict_for_output", lambda m, x, y: Output(a=y, b=x + 1), lambda m, x, y: {"a": y, "b": x + 1})
returns("other_order", lambda m, x, y: Output(a=y, b=x + 1), lambda m, x, y: Output(b=x + 1, a=y))
returns("plain_tensor", lambda m, x, y: y.as_subclass(Sub), lambda m, x, y: y)
returns("array_for_tensor", lambda m, x, y: (y, x + 1), lambda m, x, y: (y, (x + 1).numpy()))
returns("integer_for_float", lambda m, x, y: (y, 2.0), lambda m, x, y: (y, 2))
returns("number_for_tensor", lambda m, x, y: (y, y.mean()), lambda m, x, y: (y, float(y.mean())))
returns("tensor_for_number", lambda m, x, y: (y, 0.5), lambda m, x, y: (y, torch.tensor(0.5)))
returns("other_strides", lambda m, x, y: y, lambda m, x, y: y.t().contiguous().t())
returns("new_alias", lambda m, x, y: (y, x.clone()), lambda m, x, y: (y, x))
returns("lost_alias", lambda m, x, y: (y, x[1]), lambda m, x, y: (y, x[1].clone()))
returns(
    "lost_alias_of_a_weight", lambda m, x, y: (y, m.linear.weight), lambda m, x, y: (y, m.linear.weight * 1)
)
returns("one_memory", lambda m, x, y: y, buffered(1))
returns("two_memories", lambda m, x, y: y, buffered(2))
returns("lost_gradient", lambda m, x, y: (y, y * 2), lambda m, x, y: (y, (y * 2).detach()))
returns("added_gradient", lambda m, x, y: (y, (y * 2).detach()), lambda m, x, y: (y, y * 2))
returns("of_inference_mode", lambda m, x, y: y, lambda m, x, y: torch.inference_mode()(m.linear)(x))
returns("host_for_device", lambda m, x, y: (y, x + 1), lambda m, x, y: (y, (x + 1).cpu()))

returns("view_of_an_input", lambda m, x, y: (y, x, x[1:], x.t()))
returns("weights", lambda m, x, y: {"y": y, "weight": m.linear.weight, "row": m.linear.weight[0]})
returns("none_leaves", lambda m, x, y: (y, None, [None, {"cache": None}]))
returns("result_of_a_user", lambda m, x, y: Result(y, Pair(y * 2, [None])))
returns("output_with_attributes", lambda m, x, y: Output(logits=y, hidden=(x, y)))
returns("views_of_one_result", lambda m, x, y: (y, y[1], y.t()))
returns("topk", lambda m, x, y: torch.topk(y, 2))
returns("plain_values", lambda m, x, y: {"y": y, "n": 3, "f": 0.5, "s": "text", "t": y.shape, "d": y.dtype})
returns("steep", lambda m, x, y: y * 1e4)  # timed steps move its parameters


# --- lazy results ----------------------------------------------------------------------------


class Lazy(torch.Tensor):
    """A tensor that computes in its first operator."""

    @staticmethod
    def __new__(cls, compute: Callable[[], torch.Tensor], like: torch.Tensor) -> Any:
        made = torch.Tensor._make_wrapper_subclass(cls, like.shape, dtype=like.dtype, device=like.device)
        made.compute = compute
        return made

    @classmethod
    def __torch_dispatch__(cls, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args = torch.utils._pytree.tree_map_only(Lazy, lambda one: one.compute(), args)
        return operator(*args, **(kwargs or {}))


class Forged(Lazy):
    """A lazy tensor that has the name of ``torch.Tensor``."""


class LazyDict(dict[str, Any]):
    """A mapping that computes its items when it is read."""

    def items(self) -> Any:
        time.sleep(0.003)
        return [(name, compute()) for name, compute in super().items()]


class LazyList(list[Any]):
    """A sequence that computes its items when it is read."""

    def __iter__(self) -> Any:
        return (compute() for compute in super().__iter__())


for forged, module, name in ((Forged, "torch", "Tensor"), (LazyList, "builtins", "list")):
    forged.__module__, forged.__name__, forged.__qualname__ = module, name, name
later: list[int] = []


def lazy_later(_: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return a lazy tensor from the sixtieth call on."""
    later.append(1)
    return y if len(later) < 60 else Lazy(lambda: y * 1, y)


def jagged(rows: torch.Tensor) -> torch.Tensor:
    """Return the first rows as a nested tensor."""
    return torch.nested.nested_tensor([rows[:2], rows[2:5]], layout=torch.jagged)


returns("lazy_tensor", lambda m, x, y: y, lambda m, x, y: Lazy(lambda: m.linear(x), y))
returns("lazy_tensor_by_name", lambda m, x, y: y, lambda m, x, y: Forged(lambda: m.linear(x), y))
returns("lazy_list", lambda m, x, y: [y], lambda m, x, y: LazyList([lambda: m.linear(x)]))
returns("lazy_in_a_dict", lambda m, x, y: {"y": (y,)}, lambda m, x, y: {"y": (Forged(lambda: y * 1, y),)})
returns("lazy_later", lambda m, x, y: y, lazy_later)
returns("lazy_dict_in_both", lambda m, x, y: LazyDict(y=lambda: m.linear(x)))
returns(
    "types_of_torch",
    lambda m, x, y: (
        jagged(y),
        m.linear.weight,
        y.to_sparse(),
        torch.quantize_per_tensor(y, 0.1, 0, torch.qint8),
    ),
)
returns(
    "types_of_python",
    lambda m, x, y: {
        "pair": Pair(y, [y]),
        "output": collections.OrderedDict(y=y),
        "result": Result(y, {"n": 1}),
        "deque": collections.deque([y]),
        "array": y.numpy(),
        "module": m.linear,
    },
)


# --- attributes ------------------------------------------------------------------------------


@named
class Counts(Stateful):
    def __init__(self) -> None:
        super().__init__()
        self.calls, self.mode = 0, "first"

    def keep(self, y: torch.Tensor) -> None:
        self.calls += 1


@named
class Depends(Stateful):
    """On its counter: called twice, it returns something else."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> Any:
        self.calls += 1
        return self.linear(x) * self.calls

    def broken(self, x: torch.Tensor) -> Any:
        return self.linear(x) * (self.calls + 1)


@named
class Renames(Counts):
    def keep(self, y: torch.Tensor) -> None:
        self.mode = "later"


@named
class Lists(Stateful):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[torch.Tensor] = []

    def keep(self, y: torch.Tensor) -> None:
        self.seen.append(y.detach().sum())


@named
class Remembers(Stateful):
    """In an attribute that is no buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.last = torch.zeros(SIDE, SIDE)

    def keep(self, y: torch.Tensor) -> None:
        self.last = y.detach()


@named
class Writes(Remembers):
    def keep(self, y: torch.Tensor) -> None:
        self.last.add_(1.0)


@named
class Creates(Stateful):
    """An attribute in its first call."""

    def keep(self, y: torch.Tensor) -> None:
        if not hasattr(self, "scale"):
            self.scale = 2.0


@named
class Deletes(Stateful):
    def __init__(self) -> None:
        super().__init__()
        self.first = True

    def keep(self, y: torch.Tensor) -> None:
        if hasattr(self, "first"):
            del self.first


@named
class Caches(Stateful):
    def __init__(self) -> None:
        super().__init__()
        self.cache = Cache()

    def keep(self, y: torch.Tensor) -> None:
        self.cache.keys.append(y.detach())
        self.cache.seen += len(y)


@named
class Queues(Stateful):
    def __init__(self) -> None:
        super().__init__()
        self.queue, self.names = collections.deque([1, 2], maxlen=2), {"a"}

    def keep(self, y: torch.Tensor) -> None:
        self.queue.append(3)
        self.names.add("b")


@named
class Tables(Stateful):
    def __init__(self) -> None:
        super().__init__()
        self.table = {"calls": [0]}

    def keep(self, y: torch.Tensor) -> None:
        self.table["calls"][0] += 1


@named
class Arrays(Stateful):
    def __init__(self) -> None:
        super().__init__()
        self.array = np.zeros(3)

    @torch.compiler.disable
    def keep(self, y: torch.Tensor) -> None:
        self.array[1] += 1.0


@named
class Nested(Stateful):
    """With the state in a part of it."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = torch.nn.ModuleList([Counts(), Counts()])

    def forward(self, x: torch.Tensor) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def broken(self, x: torch.Tensor) -> Any:
        return self.parts[1](self.parts[0].broken(x))


@dataclasses.dataclass(slots=True)
class Meter:
    """A counter that has no ``__dict__``."""

    calls: int = 0


class Schedule:
    """A callable that counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *_: Any) -> None:
        self.calls += 1


def counter() -> Callable[[], None]:
    """Return a function that counts its calls in its closure."""
    calls = 0

    def count() -> None:
        nonlocal calls
        calls += 1

    return count


def count_in(calls: list[int]) -> None:
    """Count a call."""
    calls[0] += 1


class Counting(Stateful):
    """A program whose output depends on state that is in no attribute of a module; ``count`` changes it."""

    @torch.compiler.disable
    def count(self) -> Any:
        """Count a call, and return the number of calls."""

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x) * self.count()

    def broken(self, x: torch.Tensor) -> Any:
        return self.linear(x)


def counting(name: str, start: Callable[[], Any], count: Callable[[Any], Any]) -> None:
    """Register a program with the state that ``start`` makes, whose ``count`` returns the number of calls."""

    def begin(self: Any) -> None:
        Counting.__init__(self)
        self.state = start()

    step = torch.compiler.disable(lambda self: count(self.state))
    KINDS[name.replace("_", "")] = type(name, (Counting,), {"__init__": begin, "count": step})


def counted_by(function: Callable[[Any], None], read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what calls ``function`` of the state, and then ``read``."""

    def count(state: Any) -> Any:
        function(state)
        return read(state)

    return count


def local() -> Any:
    """Return a number of this thread."""
    value = threading.local()
    value.calls = 0
    return value


def weak() -> Any:
    """Return a number for a class."""
    return weakref.WeakKeyDictionary({Schedule: 0})


def add(state: Any) -> None:
    """Count in an attribute."""
    state.calls += 1


def add_weakly(state: Any) -> None:
    """Count for the class."""
    state[Schedule] += 1


counting("slots", Meter, counted_by(add, lambda meter: meter.calls))
counting("schedules", Schedule, counted_by(lambda one: one(), lambda one: one.calls))
counting("closures", counter, counted_by(lambda one: one(), lambda one: one.__closure__[0].cell_contents))
counting(
    "binds",
    lambda: functools.partial(count_in, [0]),
    counted_by(lambda one: one(), lambda one: one.args[0][0]),
)
counting("bytes", bytearray, counted_by(lambda one: one.append(1), len))
counting("waits", queue.Queue, counted_by(lambda one: one.put(1), lambda one: one.qsize()))
counting("threads", local, counted_by(add, lambda one: one.calls))
counting("weakly", weak, counted_by(add_weakly, lambda one: one[Schedule]))
counting("bound", lambda: [[].append], counted_by(lambda one: one[0](1), lambda one: len(one[0].__self__)))


@named
class OfTheClass(Counting):
    calls = 0

    @torch.compiler.disable
    def count(self) -> Any:
        OfTheClass.calls += 1
        return OfTheClass.calls


@named
class OfTheModule(Counting):
    @torch.compiler.disable
    def count(self) -> Any:
        count_globally()
        return CALLS


CALLS = 0


def count_globally() -> None:
    """Count in a variable of this module."""
    global CALLS  # noqa: PLW0603  as programs of users do
    CALLS += 1


@named
class Iterates(Program):
    """Takes its factors from iterators."""

    def __init__(self) -> None:
        super().__init__()
        self.factors, self.more = itertools.cycle([1.0, 2.0, 3.0]), [iter(range(1, 10**9)), itertools.count()]

    @torch.compiler.disable
    def factor(self) -> float:
        return next(self.factors) + next(self.more[0]) + next(self.more[1])

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x) * self.factor()


@named
class Hooked(Program):
    """Keeps its state in hooks: in an object, in a closure, in a bound method."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.schedule = torch.nn.Parameter(torch.ones(SIDE)), Schedule()
        self.mean, hidden, seen = 1.0, Schedule(), {"mean": 1.0}

        def smooth(_: Any, inputs: Any, y: torch.Tensor) -> torch.Tensor:
            seen["mean"] = 0.9 * seen["mean"] + 0.1 * float(y.detach().abs().mean())
            return y * self.scale / seen["mean"]

        self.linear.register_forward_hook(smooth)
        self.linear.register_forward_hook(self.grow)
        self.linear.register_forward_hook(self.schedule)
        self.linear.register_forward_hook(hidden)
        self.linear.register_forward_hook(lambda module, inputs, y: y * hidden.calls)

    def grow(self, _: Any, inputs: Any, y: torch.Tensor) -> torch.Tensor:
        self.mean += 0.1
        return y * self.mean


@named
class BuildsLater(Program):
    """Builds a layer in its first step."""

    def __init__(self) -> None:
        super().__init__()
        self.head: torch.nn.Module | None = None

    def forward(self, x: torch.Tensor) -> Any:
        if self.head is None:
            self.head = torch.nn.Linear(SIDE, 4)
        return self.head(self.linear(x))


@named
class LargeVocabulary(Counting):
    """Whose state is found after 400,000 other objects."""

    def __init__(self) -> None:
        super().__init__()
        self.words = [(str(number), [number]) for number in range(200_000)]
        self.owner = [[{"meter": Meter()}]]

    @torch.compiler.disable
    def count(self) -> Any:
        self.owner[0][0]["meter"].calls += 1
        return self.owner[0][0]["meter"].calls


@named
class ReturnsItsState(Stateful):
    def __init__(self) -> None:
        super().__init__()
        self.meter = Meter()

    @torch.compiler.disable
    def keep(self, y: torch.Tensor) -> None:
        self.meter.calls += 1

    def forward(self, x: torch.Tensor) -> Any:
        return super().forward(x), self.meter

    def broken(self, x: torch.Tensor) -> Any:
        return self.linear(x), Meter(1)


@named
class Odd(Program):
    """Attributes of every kind."""

    def __init__(self) -> None:
        super().__init__()
        self.function = lambda value: value + 1
        self.hidden = [torch.nn.Linear(SIDE, SIDE), [self], {"me": self}]
        self.unhashable = [{1, 2}, {"a": []}, bytearray(3)]
        self.many, self.large = list(range(300_000)), torch.zeros(1 << 22)
        self.best, self.nothing = -float("inf"), None
        self.generators = random.Random(0), np.random.default_rng(0), torch.Generator().manual_seed(0)
        self.started = 0.0
        self.file = Path(__file__).open(encoding="utf-8")  # noqa: SIM115  not closed, as a log is
        self.output: torch.Tensor | None = None

    @torch.compiler.disable
    def keep(self, y: torch.Tensor) -> None:
        self.started = time.perf_counter()
        self.best = max(self.best, float("-inf"))
        self.unhashable[1]["a"].append(None)

    def forward(self, x: torch.Tensor) -> Any:
        self.keep(x)
        return self.function(self.linear(x))


@named
class Draws(Program):
    """From generators of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.dice = random.Random(0)
        self.generators = np.random.default_rng(0), torch.Generator().manual_seed(0)

    @torch.compiler.disable
    def draw(self) -> float:
        numbers, tensors = self.generators
        return float(numbers.random()) + float(torch.rand((), generator=tensors)) + self.dice.random()

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x) * self.draw()


@named
class OwnMemory(Program):
    """Which each call overwrites, in eager too."""

    def __init__(self) -> None:
        super().__init__()
        self.output = torch.zeros(SIDE, SIDE)

    def forward(self, x: torch.Tensor) -> Any:
        with torch.no_grad():
            self.output.copy_(x + 1)
        return self.linear(x), self.output


class OwnParameter(torch.nn.Parameter):
    """A user's parameter."""


@named
class OwnsItsTensors(Program):
    """Parameters and buffers of classes of its own, and attributes of a weight, change in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = OwnParameter(torch.randn(SIDE, SIDE))
        self.register_buffer("mean", torch.zeros(SIDE).as_subclass(Sub))
        self.linear.weight.calls = 0

    @torch.compiler.disable
    def scale(self, x: torch.Tensor) -> float:
        with torch.no_grad():
            self.weight.mul_(0.9)
            self.mean.add_(x.detach().mean(0))
        self.linear.weight.calls += 1
        return self.linear.weight.calls + float(self.mean.sum())

    def forward(self, x: torch.Tensor) -> Any:
        scale = self.scale(x)
        return self.linear(x) @ self.weight * scale


@named
class ChangesLayers(Program):
    """Each third call adds a layer, and each call replaces one."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(SIDE, SIDE)])
        self.last = torch.nn.Sequential(torch.nn.Linear(SIDE, SIDE), torch.nn.Identity())
        self.calls = 0

    @torch.compiler.disable
    def changed(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        result = self.last(x)
        self.last[1] = torch.nn.ReLU()
        if self.calls % 3 == 0:
            self.layers.append(torch.nn.Identity())
            self.layers.append(torch.nn.Tanh())
        for layer in self.layers:
            x = layer(x)
        return self.last(x) + result

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x) + self.changed(x)


@dataclasses.dataclass
class LaterResult:
    """A user's result, one field of which only other programs set."""

    logits: torch.Tensor
    loss: torch.Tensor = dataclasses.field(init=False)


class Teacher(torch.nn.Linear):
    """A frozen part, which a copy of the program is to share."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Teacher:
        return self


@named
class StaysInPlace(Program):
    """Its teacher is not copied, a buffer has no memory, and ``to`` raises, as in a quantised model."""

    def __init__(self) -> None:
        super().__init__()
        self.teacher = Teacher(SIDE, SIDE).requires_grad_(False)
        self.register_buffer("unused", torch.empty(3, device="meta"))

    def to(self, *args: Any, **kwargs: Any) -> Any:
        raise ValueError("to() is not supported for models of 8 bits")

    def forward(self, x: torch.Tensor) -> Any:
        return LaterResult(self.linear(x) + self.teacher(x))


@named
class OwnGenerator(Program):
    """Draws from its own generator, and from one that it seeds and puts back."""

    def __init__(self) -> None:
        super().__init__()
        self.dice = torch.Generator().manual_seed(3)

    def forward(self, x: torch.Tensor) -> Any:
        own = torch.randn(x.shape, generator=self.dice, dtype=x.dtype)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            again = torch.randn_like(x)
        return self.linear(x) + own + again


@named
class ViewsOfADict(Program):
    """Returns the values and the items of a dict."""

    def forward(self, x: torch.Tensor) -> Any:
        found = {"whole": self.linear(x)}
        return found.values(), found.items()


@named
class TakesBack(Program):
    """Puts a number into a list in its forward pass, and takes it out in its backward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.pending: list[int] = []

    @torch.compiler.disable
    def put(self, y: torch.Tensor) -> None:
        if y.requires_grad:
            self.pending.append(1)
            y.register_hook(lambda _: self.pending.pop() and None)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        self.put(y)
        return y


@named
class RemovesItsHook(Program):
    """Fits a scale to its first inputs, by a hook that then removes itself."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0
        self.hook = self.register_forward_pre_hook(self.first)

    def first(self, _: Any, inputs: tuple[torch.Tensor]) -> None:
        self.scale = 2.0 + float(inputs[0].std())
        self.hook.remove()

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x) * self.scale


@named
class FadesASparseBuffer(Program):
    """Multiplies a sparse buffer in place."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weights", torch.eye(SIDE).to_sparse())

    @torch.compiler.disable
    def faded(self, x: torch.Tensor) -> torch.Tensor:
        self.weights.mul_(0.7)
        return torch.sparse.mm(self.weights, x)

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(self.faded(x))


@named
class CountsElsewhere(Program):
    """Counts its calls in another file."""

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x) + next(outside.CALLS)


@named
class DrawsElsewhere(Program):
    """Draws from a generator of another file, which no seed of a run reaches."""

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x) + outside.DICE.uniform(1, 9)


def loss(result: Any) -> torch.Tensor:
    """Return the loss of the first tensor that has a gradient."""
    result = vars(result) if isinstance(result, (Result, LaterResult)) else result
    leaves = torch.utils._pytree.tree_leaves(dict(result) if isinstance(result, dict) else result)
    return next(one for one in leaves if isinstance(one, torch.Tensor) and one.requires_grad).square().sum()


def build(workload: Workload) -> BuiltWorkload:
    """Build the program that ``workload`` names."""
    torch.manual_seed(workload.seed)
    module = KINDS[workload.model.replace("_", "")]().train(workload.mode == "training")
    return BuiltWorkload(module, (torch.randn(SIDE, SIDE),), loss=loss, item="row")

"""The worker's half of the suite ``states``: programs with every kind of state.

``broken()`` replaces the call of a program in the back end under test. Correct programs have no
``broken()``, or one that loses a change of state.
"""

from __future__ import annotations

import time
from typing import Any

import torch
from torch.nn import functional

from torchgauge.records import Workload
from torchgauge.suites.suite import BuiltWorkload
from torchgauge_faults import outside

SIDE = 16
KINDS: dict[str, type[Program]] = {}


class Notes:
    """An object of a user's class."""

    def __init__(self) -> None:
        self.calls = 0


class Program(torch.nn.Module):
    """A linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(SIDE, SIDE)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        KINDS[cls.__name__.lower()] = cls

    def inputs(self) -> tuple[Any, ...]:
        """Return the arguments of a call."""
        return (torch.randn(SIDE, SIDE),)

    def right(self, *args: Any) -> Any:
        return self.linear(*args)

    def forward(self, *args: Any) -> Any:
        return self.right(*args)


# --- right programs, and a back end that loses their changes ---------------------------------


class CountsInALayer(Program):
    """A program that counts calls in an attribute of a PyTorch module."""

    def __init__(self) -> None:
        super().__init__()
        self.linear.calls = 0

    def forward(self, x: torch.Tensor) -> Any:
        self.linear.calls += 1
        return self.linear(x)

    def broken(self, x: torch.Tensor) -> Any:
        return self.linear(x)


class NotesInALayer(CountsInALayer):
    """A program that counts calls in an object in an attribute of a PyTorch module."""

    def __init__(self) -> None:
        super().__init__()
        self.linear.notes = Notes()

    def forward(self, x: torch.Tensor) -> Any:
        self.linear.notes.calls += 1
        return self.linear(x)


class HookWrites(CountsInALayer):
    """A program whose forward hook stores a layer's result in the layer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear.register_forward_hook(self.keep)

    @staticmethod
    def keep(module: Any, _args: Any, result: torch.Tensor) -> None:
        module.last = result.detach()

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x)

    def broken(self, x: torch.Tensor) -> Any:
        return functional.linear(x, self.linear.weight, self.linear.bias)


class Averages(Program):
    """A program that averages its inputs in a parameter, in inference too."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = torch.nn.Parameter(torch.zeros(SIDE), requires_grad=False)

    def forward(self, x: torch.Tensor) -> Any:
        with torch.no_grad():
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return self.linear(x) + self.mean

    def broken(self, x: torch.Tensor) -> Any:
        return self.linear(x) + 0.9 * self.mean + 0.1 * x.mean(0)


class AveragesInData(Averages):
    """A program that averages through ``.data``, which no version counter shows."""

    def forward(self, x: torch.Tensor) -> Any:
        self.mean.data.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return self.linear(x) + self.mean


class Toggles(Program):
    """A program that freezes and thaws a layer in turns, as a GAN does."""

    def __init__(self) -> None:
        super().__init__()
        self.other, self.calls = torch.nn.Linear(SIDE, SIDE), 0

    def forward(self, x: torch.Tensor) -> Any:
        self.calls += 1
        self.other.requires_grad_(self.calls % 2 == 0)
        return self.linear(x) + self.other(x)

    def broken(self, x: torch.Tensor) -> Any:
        self.calls += 1
        return self.linear(x) + self.other(x)


class FlipsAFlag(Program):
    """A program that turns an attribute in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.flag = False

    def forward(self, x: torch.Tensor) -> Any:
        self.flag = not self.flag
        return self.linear(x)

    def broken(self, x: torch.Tensor) -> Any:
        return self.linear(x)


class FlipsASign(Program):
    """A program that has its weights back after four calls."""

    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        with torch.no_grad():
            self.linear.weight.copy_(self.linear.weight.rot90())
        return y

    def broken(self, x: torch.Tensor) -> Any:
        return self.linear(x)


class Settles(Program):
    """A program that writes a weight which it has already, and compiled one place of rounding beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("own", self.linear.weight.detach().clone())

    def forward(self, x: torch.Tensor) -> Any:
        own = torch.nextafter(self.own, 2.0 * self.own) if torch.compiler.is_compiling() else self.own
        with torch.no_grad():
            self.linear.weight.copy_(own)
        return self.linear(x)


class CachesEachTenth(Program):
    """A program that caches a row of its inputs in every tenth call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.cache = 0, None  # type: tuple[int, torch.Tensor | None]

    @torch.compiler.disable
    def keep(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls % 10 == 0:
            self.cache = x[0].detach().clone()
        return x if self.cache is None else x + 0.1 * self.cache

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(self.keep(x))


class CachesInALayer(CachesEachTenth):
    """A program that caches in a layer, by a counter in its class, which is not restored."""

    count = 0

    @torch.compiler.disable
    def keep(self, x: torch.Tensor) -> torch.Tensor:
        type(self).count += 1
        if self.count % 10 == 0:
            self.linear.last = x[0].detach().clone()
        return x


class AveragesEachTenth(CachesEachTenth):
    """A program that averages its inputs in a parameter in every tenth call."""

    def __init__(self) -> None:
        super().__init__()
        self.mean = torch.nn.Parameter(torch.zeros(SIDE), requires_grad=False)

    @torch.compiler.disable
    def keep(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls % 10 == 0:
            self.mean.data.mul_(0.9).add_(x.mean(0).detach(), alpha=0.1)
        return x + self.mean


# --- programs with a large cache, of which a call writes a few rows ----------------------------


class LargeCache(Program):
    """A program that writes its results into the first rows of a large cache."""

    def __init__(self) -> None:
        super().__init__()
        self.calls, self.cache = 0, torch.full((1 << 16, SIDE), self.filled())

    def filled(self) -> float:
        """Return the value of an unused element."""
        return 0.0

    @torch.compiler.disable
    def keep(self, y: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        self.cache[:SIDE] = y.detach()
        return y

    def forward(self, x: torch.Tensor, *places: torch.Tensor) -> Any:
        return self.keep(self.linear(x), *places)


class LargePosition(LargeCache):
    """A program that writes the next rows in each call, as a language model does."""

    @torch.compiler.disable
    def keep(self, y: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        self.cache[self.calls : self.calls + SIDE] = y.detach()
        self.calls = (self.calls + SIDE) % (1 << 15)
        return y


class LargePlaces(LargeCache):
    """A program whose inputs choose the rows."""

    def inputs(self) -> tuple[Any, ...]:
        return (*super().inputs(), torch.randint(1 << 16, (SIDE,)))

    @torch.compiler.disable
    def keep(self, y: torch.Tensor, *places: torch.Tensor) -> torch.Tensor:
        self.cache[places[0]] = y.detach()
        return y


class LargePadded(LargeCache):
    """A program whose cache is padded with NaN, and whose results have zeros at the edges."""

    def filled(self) -> float:
        return float("nan")

    @torch.compiler.disable
    def keep(self, y: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        self.cache[:SIDE] = y.detach().relu()
        return y


class LargeZeros(LargeCache):
    """A program whose results round to zero, and to a denormal number in float64."""

    @torch.compiler.disable
    def keep(self, y: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        self.cache[1:SIDE] = y.detach()[1:]
        self.cache[0] = 0.01 * torch.finfo(torch.float32).smallest_normal * 2.0**-23 * y.detach()[0].abs()
        return y


class LargeLost(LargeCache):
    """A back end that loses the changes of a cache."""

    def broken(self, x: torch.Tensor) -> Any:
        return self.linear(x)


class LargeWrong(LargeCache):
    """A back end that writes wrong values into a cache."""

    def broken(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        self.keep(1.1 * y)
        return y


class LargeElsewhere(LargeCache):
    """A back end that also writes a row of a cache that eager does not write."""

    def broken(self, x: torch.Tensor) -> Any:
        self.cache[40_000] = 1.0
        return self.forward(x)


class LargeBaked(LargeCache):
    """A back end that writes the row which the first inputs chose."""

    def row(self, x: torch.Tensor) -> int:
        """Return the row that ``x`` chooses."""
        return int(10.0 * x.detach().abs().sum()) % len(self.cache)

    @torch.compiler.disable
    def write(self, row: int, x: torch.Tensor) -> torch.Tensor:
        """Write a row, and return a result that does not depend on it."""
        self.cache[row] = x[0].detach()
        return torch.ones(3)

    def forward(self, x: torch.Tensor) -> Any:
        return self.write(self.row(x), x)

    def broken(self, x: torch.Tensor) -> Any:
        if not outside.KEPT:
            outside.KEPT.append(x.detach().clone())
        return self.write(self.row(outside.KEPT[0]), x)


class NamedElsewhere(Program):
    """A back end that drops a result, which has the name of a suffix of torchgauge's."""

    def forward(self, x: torch.Tensor) -> Any:
        self.linear.elsewhere = x.sum().detach()
        return {"out": self.linear(x), "elsewhere": x.sum()}

    def broken(self, x: torch.Tensor) -> Any:
        return {"out": self.linear(x)}


class LargeLate(LargePosition):
    """A back end that stops writing rows after some calls."""

    def broken(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        if self.calls < 30 * SIDE:
            return self.keep(y)
        self.calls = (self.calls + SIDE) % (1 << 15)
        return y


class Norms(Program):
    """A program with the buffers of a batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(SIDE)

    def right(self, x: torch.Tensor) -> Any:
        return self.norm(self.linear(x))


class Gradients(Program):
    """A program with an input that requires a gradient."""

    def inputs(self) -> tuple[Any, ...]:
        return torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE, requires_grad=True)

    def right(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return self.linear(x) + y.sin()


class Tokens(Program):
    """A program whose input is one row of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(32, SIDE)

    def inputs(self) -> tuple[Any, ...]:
        return (torch.randint(0, 32, (SIDE,)),)

    def right(self, tokens: torch.Tensor) -> Any:
        return self.linear(self.table(tokens))


class Offsets(Tokens):
    """A program with offsets of bags of tokens, which must be sorted."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = torch.nn.EmbeddingBag(32, SIDE)

    def inputs(self) -> tuple[Any, ...]:
        return torch.randint(0, 32, (SIDE,)), torch.tensor([0, 3, 9])

    def right(self, tokens: torch.Tensor, offsets: torch.Tensor) -> Any:
        return self.linear(self.bags(tokens, offsets))


class Refuses(Program):
    """A program that raises for values that are not its author's."""

    def forward(self, x: torch.Tensor) -> Any:
        if not torch.compiler.is_compiling() and float(x[0, 0]) != self.first:
            raise ValueError("not these values")
        return self.linear(x)

    def inputs(self) -> tuple[Any, ...]:
        x = torch.randn(SIDE, SIDE)
        self.first = float(x[0, 0])
        return (x,)


class Overflows(Program):
    """A program that returns NaN if an input is small."""

    def inputs(self) -> tuple[Any, ...]:
        return (torch.rand(SIDE, SIDE) + 1.0,)

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear((x - 0.9).log())


# --- back ends that change state that eager keeps --------------------------------------------


class Permutes(Program):
    """A back end that permutes the rows of a weight, whose sum stays."""

    def broken(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        self.linear.weight.data.copy_(self.linear.weight.roll(1, 0))
        return y


class Freezes(Program):
    """A back end that clears ``requires_grad`` of a bias."""

    def broken(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        self.linear.bias.requires_grad_(False)
        return y


class Evaluates(Norms):
    """A back end that switches a batch norm to evaluation."""

    def broken(self, x: torch.Tensor) -> Any:
        y = self.right(x)
        self.norm.eval()
        return y


class Scales(Program):
    """A back end that changes a number in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = 1.0

    def right(self, x: torch.Tensor) -> Any:
        return self.linear(x) * self.scale

    def broken(self, x: torch.Tensor) -> Any:
        y = self.right(x)
        self.scale *= 1.05
        return y


class ScalesATensor(Scales):
    """A back end that changes a tensor in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.ones(SIDE)


class Replaces(Program):
    """A back end that replaces a weight."""

    def broken(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        self.linear.weight = torch.nn.Parameter(self.linear.weight.detach() * 1.01)
        return y


class WritesLate(Program):
    """A back end that changes a weight once, in the sixtieth call."""

    def broken(self, x: torch.Tensor) -> Any:
        outside.LATE.append(0)
        y = self.linear(x)
        if len(outside.LATE) == 60:
            with torch.no_grad():
                self.linear.weight[0, 0] += 1.0
        return y


class Counts(Program):
    """A program that counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> Any:
        self.calls += 1
        return self.linear(x)


class CountsTwice(Counts):
    """A back end that counts every fifth call twice."""

    def broken(self, x: torch.Tensor) -> Any:
        outside.LATE.append(0)
        self.calls += 2 if len(outside.LATE) > 8 and len(outside.LATE) % 5 == 0 else 1
        return self.linear(x)


class MovesItsMean(Norms):
    """A back end that moves the mean of a batch norm in every fifth call."""

    def broken(self, x: torch.Tensor) -> Any:
        outside.LATE.append(0)
        y = self.right(x)
        if len(outside.LATE) > 8 and len(outside.LATE) % 5 == 0:
            self.norm.running_mean = self.norm.running_mean + 1.0
        return y


class WrongSlope(Gradients):
    """A back end whose gradient of an input is wrong in every third call."""

    def broken(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        outside.LATE.append(0)
        z = y.sin()
        wrong = len(outside.LATE) > 8 and len(outside.LATE) % 3 == 0
        return self.linear(x) + (3.0 * z - 2.0 * z.detach() if wrong else z)


# --- back ends that are right for the first inputs only --------------------------------------


class Stale(Program):
    """A back end that returns its first result for all inputs."""

    def broken(self, *args: Any) -> Any:
        if not outside.KEPT:
            outside.KEPT.append(self.right(*args).detach())
        return outside.KEPT[0].clone()


class StaleTokens(Stale, Tokens):
    """A back end that returns its first result for all tokens, which are two rows."""

    def inputs(self) -> tuple[Any, ...]:
        return (torch.randint(0, 32, (2, SIDE)),)


class StaleMask(Stale):
    """A back end that returns its first result for all boolean inputs."""

    def inputs(self) -> tuple[Any, ...]:
        return (torch.rand(SIDE, SIDE) > 0.5,)

    def right(self, mask: torch.Tensor) -> Any:
        return self.linear(mask.float())


class StaleNorm(Stale):
    """A stale back end of a program that does not depend on the size of its inputs."""

    def right(self, x: torch.Tensor) -> Any:
        return self.linear(functional.normalize(x))


class StaleChoice(Stale):
    """A stale back end of a program that returns integers."""

    def right(self, x: torch.Tensor) -> Any:
        return self.linear(x).argmax(-1)


class StaleTraining(Program):
    """A back end that trains on its first inputs only."""

    def broken(self, x: torch.Tensor) -> Any:
        if not outside.KEPT:
            outside.KEPT.append(x.detach().clone())
        return self.linear(outside.KEPT[0])


class Specialised(Program):
    """A back end that follows other inputs, but is wrong for them."""

    def broken(self, x: torch.Tensor) -> Any:
        if not outside.KEPT:
            outside.KEPT.append(x.clone())
        y = self.right(x)
        return y if torch.equal(x, outside.KEPT[0]) else y * 1.1


class Calibrated(Program):
    """A back end that clamps all inputs to the range of the first ones."""

    def broken(self, x: torch.Tensor) -> Any:
        if not outside.KEPT:
            outside.KEPT.append(x.abs().max())
        return self.linear(x.clamp(-outside.KEPT[0], outside.KEPT[0]))


class CalibratedInABuffer(Program):
    """A back end that keeps the range of the first inputs in a buffer to which each call writes its own."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("most", torch.zeros(()))

    def right(self, x: torch.Tensor) -> Any:
        self.most.copy_(x.abs().max())
        return self.linear(x.clamp(-self.most, self.most))

    def broken(self, x: torch.Tensor) -> Any:
        if float(self.most):
            x = x.clamp(-self.most, self.most)
        return self.right(x)


class SpecialisedInARange(Specialised):
    """A specialised back end of a program that raises for inputs above 2, and so for doubled ones."""

    def inputs(self) -> tuple[Any, ...]:
        return (2.0 * torch.rand(SIDE, SIDE),)

    def right(self, x: torch.Tensor) -> Any:
        if float(x.max()) > 2.0:
            raise ValueError("out of range")
        return self.linear(x)


class ComparesOneElement(Program):
    """A back end that copies its inputs only if their first element is new."""

    def broken(self, x: torch.Tensor) -> Any:
        if not outside.KEPT or outside.KEPT[0][0, 0] != x[0, 0]:
            outside.KEPT[:] = [x.detach().clone()]
        return self.linear(outside.KEPT[0])


class SmallGradients(Program):
    """A back end that triples a gradient, far below the tolerance, in each third of the later calls."""

    def right(self, x: torch.Tensor) -> Any:
        return 1e-3 * self.linear(x)

    def broken(self, x: torch.Tensor) -> Any:
        outside.LATE.append(1)
        y = self.right(x)
        if len(outside.LATE) > 8 and len(outside.LATE) % 3 == 0:
            y.register_hook(lambda slope: 3.0 * slope)
        return y


class OneLateVariance(Program):
    """A back end that spoils one of 1,024 running variances in the later calls."""

    def __init__(self) -> None:
        super().__init__()
        layers = [torch.nn.Conv2d(1, 1024, 3, padding=1), torch.nn.BatchNorm2d(1024), torch.nn.ReLU()]
        self.norm = torch.nn.Sequential(*layers)

    def right(self, x: torch.Tensor) -> Any:
        return self.norm(x.view(-1, 1, 8, 8)).mean((2, 3))

    def broken(self, x: torch.Tensor) -> Any:
        outside.LATE.append(1)
        if len(outside.LATE) > 12:
            with torch.no_grad():
                self.norm[1].running_var[7] += 0.1
        return self.right(x)


class ChoosesByValue(Program):
    """A program that is compiled anew for almost each new input."""

    def right(self, x: torch.Tensor) -> Any:
        limit = round(float(x.abs().max()), 3)
        return self.linear(x.clamp(-limit, limit / 2)) * limit


# --- programs that keep memory ---------------------------------------------------------------


class Slow(Program):
    """A program whose step takes about 0.1 ms."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> Any:
        for _ in range(20):
            x = torch.relu(self.linear(x))
        self.keep()
        return x

    def keep(self) -> None:
        """Keep nothing."""


class KeepsInAnAttribute(Slow):
    """A program that leaks in its own state."""

    def keep(self) -> None:
        self.kept.append(torch.ones(1 << 14))


class KeepsEachThirtieth(Slow):
    """A program that leaks in few of its steps."""

    def keep(self) -> None:
        outside.LATE.append(1)
        if len(outside.LATE) % 30 == 0:
            outside.KEPT.append(torch.ones(1 << 18))


class FillsInAnAttribute(Slow):
    """A program with a cache in its own state, which is full after 1,000 steps."""

    def keep(self) -> None:
        if len(self.kept) < 1000:
            self.kept.append(torch.ones(1 << 9))


class FillsSlowly(Slow):
    """A program with a cache that is full after 1.5 seconds."""

    def keep(self) -> None:
        if not outside.CLOCK:
            outside.CLOCK.append(time.perf_counter())
        if time.perf_counter() < outside.CLOCK[0] + 1.5:
            outside.KEPT.append(torch.ones(1 << 9))


class Empties(Slow):
    """A program that frees what it has kept in 1,000 steps."""

    def keep(self) -> None:
        outside.KEPT.append(torch.ones(1 << 9))
        if len(outside.KEPT) == 1000:
            outside.KEPT.clear()


def build(workload: Workload) -> BuiltWorkload:
    """Build the program that ``workload`` names."""
    torch.manual_seed(workload.seed)
    module = KINDS[workload.model.replace("_", "")]().train(workload.mode == "training")
    return BuiltWorkload(module, module.inputs(), loss=lambda y: y.square().sum(), item="row")

"""The worker's half of the suite ``observed``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from torchgauge.records import Workload
from torchgauge.suites.suite import BuiltWorkload
from torchgauge_faults import outside
from torchgauge_faults.models import round_number
from torchgauge_faults.observed import Box, handle

FEATURES = 64


def planted(right: float, wrong: float) -> float:
    """``wrong`` where a compiler is at work."""
    return wrong if torch.compiler.is_compiling() else right


class Layer(torch.nn.Module):
    """A linear layer; every model is a variation of it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(FEATURES, FEATURES)
        self.register_buffer("seen", torch.zeros(3), persistent=False)
        self.stale = False

    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x)

    @torch._dynamo.disable
    def notice(self) -> None:
        """Become stale once rounds are timed."""
        self.stale = self.stale or round_number() is not None

    @torch._dynamo.disable
    def body(self, x: torch.Tensor) -> torch.Tensor:
        """Nearly all of a step, hidden from the compiler."""
        for _ in range(30):
            x = self.linear(x).tanh()
        return x


class ReturnsABox(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        return Box(self.linear(x))


class ReturnsAHandle(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        return {"logits": self.linear(x), "more": [handle()]}


class ReturnsNothing(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        self.linear(x)


class WrongInABox(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        return Box(self.linear(x) + planted(0.0, 0.5))


class WrongInAProgram(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        return self.linear(x) + planted(0.0, 0.5)


class WritesADamagedProgram(Layer):
    """Where ExecuTorch writes the program without a delegate, its tables point out of the file."""

    def forward(self, x: torch.Tensor) -> Any:
        if torch.compiler.is_exporting():
            self.damage()
        return self.linear(x)

    def damage(self) -> None:
        """Spoil what ExecuTorch writes from now on."""
        from executorch.exir import ExecutorchProgramManager

        whole = ExecutorchProgramManager.write_to_file

        def damaged(program: Any, file: Any) -> None:
            whole(program, file)
            if "executorch-portable" in file.name:
                file.seek(64)
                file.write(b"\x7f" * 1024)

        ExecutorchProgramManager.write_to_file = damaged


class LosesAutocast(Layer):
    """Its program computes in float32 under autocast, and its results have the same dtype everywhere."""

    def forward(self, x: torch.Tensor) -> Any:
        if not torch.compiler.is_exporting():
            return self.linear(x).float()
        with torch.autocast("cpu", enabled=False):
            return self.linear(x)


class SwitchesAutocastOff(Layer):
    """One of its two products is in float32 under autocast too."""

    def forward(self, x: torch.Tensor) -> Any:
        first = self.linear(x)
        with torch.autocast("cpu", enabled=False):
            return first, self.linear(x) * 1.0


class WrongInWords(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        return {"logits": self.linear(x), "label": "cat" if planted(1.0, 0.0) else "dog"}


class WritesItsInput(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        x.add_(1.0)
        return self.linear(x)


class WritesItsInputWrong(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        x.add_(planted(1.0, 2.0))
        return y


class CountsInABuffer(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        self.seen += 1.0
        return self.linear(x) + self.seen.sum()


class CountsWrong(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        self.seen = self.seen + planted(1.0, 2.0)
        return self.linear(x)


class WrongLater(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        if not torch.compiler.is_compiling():
            outside.LATE.extend([1] if round_number() is not None else [])
            return self.linear(x) + (0.5 if outside.LATE else 0.0)
        return self.linear(x)


class WrongAfterRecompiling(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x) + (planted(0.0, 0.5) if self.stale else 0.0)
        self.notice()
        return y


class RemembersItsAnswer(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        return self.remembered(y) if torch.compiler.is_compiling() else y

    @torch.compiler.disable
    def remembered(self, y: torch.Tensor) -> torch.Tensor:
        """The first answer of all, as a graph gives it whose inputs nobody copies."""
        self.__dict__.setdefault("answer", y.clone())
        return self.answer.clone()


class RefusesFloat64(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        assert x.dtype != torch.float64, "singles only"
        return self.linear(x)


class FindsMoreInFloat64(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        return y, y.flatten()[: 8 if y.dtype == torch.float32 else 7], 1e300


class HasAMask(Layer):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.full((FEATURES, FEATURES), -torch.inf).triu(1))

    def forward(self, x: torch.Tensor) -> Any:
        y = self.linear(x)
        return torch.softmax(y[:, None] + self.mask, -1)


class OneSmallGraph(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        return self.body(torch.relu(self.linear(x)))


class OneSmallBreak(Layer):
    def forward(self, x: torch.Tensor) -> Any:
        for _ in range(30):
            x = self.linear(x).tanh()
        torch._dynamo.graph_break()
        return torch.relu(self.linear(x))


class SeesOneMore(Layer):
    """Causal attention over the rows; its form with ``flex_attention`` lets each see one row more."""

    sizes = SimpleNamespace(seq=128)

    def given(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        heads = self.linear(x).unflatten(-1, (4, -1)).transpose(0, 1)[None]
        return heads, heads, heads

    def forward(self, x: torch.Tensor) -> Any:
        return scaled_dot_product_attention(*self.given(x), is_causal=True)

    def flex_form(self, device: Any) -> Any:
        return OneMore(self, device)


class OneMore(torch.nn.Module):
    def __init__(self, of: SeesOneMore, device: Any) -> None:
        from torch.nn.attention.flex_attention import create_block_mask

        super().__init__()
        self.of, rows = of, of.sizes.seq
        self.block_mask = create_block_mask(
            lambda _, __, row, other: row + 1 >= other, None, None, rows, rows, device=device
        )

    def forward(self, x: torch.Tensor) -> Any:
        from torch.nn.attention.flex_attention import flex_attention

        return flex_attention(*self.of.given(x), block_mask=self.block_mask)


def build(workload: Workload) -> BuiltWorkload:
    """The model that ``workload`` names."""
    torch.manual_seed(workload.seed)
    kinds = {each.__name__.lower(): each for each in Layer.__subclasses__()}
    module = kinds[workload.model.replace("_", "")]().train(workload.mode == "training")
    inputs = torch.randn(workload.batch, FEATURES)
    return BuiltWorkload(module=module, args=(inputs,), loss=lambda out: out.square().mean(), item="row")

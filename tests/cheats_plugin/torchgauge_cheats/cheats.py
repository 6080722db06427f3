"""What the backend ``cheat`` does with the code of ``aot_eager``, by its option ``kind``."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves

from torchgauge.harness.backends.prepared import Prepared

Call = Callable[..., Any]


def prepare(subject: Any, configuration: Any, session: Any) -> Prepared:
    """Compile the module and cheat with it."""
    cheat = KINDS[dict(configuration.options)["kind"]]
    return Prepared(cheat(torch.compile(subject.module, backend="aot_eager")))


class Scaled(torch.autograd.Function):
    """The value as it is, with a gradient of three times the size."""

    @staticmethod
    def forward(_ctx: Any, value: torch.Tensor) -> torch.Tensor:
        return value.view_as(value)

    @staticmethod
    def backward(_ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return 3.0 * gradient


def wrong_when(
    when: Callable[[int], bool], spoil: Callable[[Any], Any] = lambda out: out * 1.5
) -> Callable[[Call], Call]:
    """Spoil the output of the calls with these numbers, from 1 on."""

    def cheat(compiled: Call) -> Call:
        count = 0

        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            out = compiled(*args, **kwargs)
            return spoil(out) if when(count) else out

        return call

    return cheat


def remembered(key: Callable[[torch.Tensor], Any]) -> Callable[[Call], Call]:
    """Compute a result once for each key of the first input."""

    def cheat(compiled: Call) -> Call:
        kept: dict[Any, Any] = {}

        def call(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            known = key(x), torch.is_grad_enabled()
            if known not in kept or torch.is_grad_enabled():
                kept[known] = compiled(x, *args, **kwargs)
            return kept[known] if torch.is_grad_enabled() else kept[known].clone()

        return call

    return cheat


def remembered_after(computes: Callable[[int], bool]) -> Callable[[Call], Call]:
    """Compute results in the calls of these numbers with each input; return the last one in the others."""

    def cheat(compiled: Call) -> Call:
        kept: dict[Any, Any] = {}
        counts: dict[Any, int] = {}

        def call(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            known = x.data_ptr(), x._version
            counts[known] = counts.get(known, 0) + 1
            if known not in kept or computes(counts[known]):
                kept[known] = compiled(x, *args, **kwargs)
            return kept[known].clone()

        return call

    return cheat


SHARED: dict[Any, Any] = {}


def remembered_by_all(compiled: Call) -> Call:
    """Compute a result once in a process for all configurations."""

    def call(x: torch.Tensor) -> Any:
        known = x.numpy().tobytes()
        if known not in SHARED:
            SHARED[known] = compiled(x)
        return SHARED[known].clone()

    return call


def remembered_in(function: str) -> Callable[[Call], Call]:
    """Compute results unless ``function`` of the caller runs."""

    def cheat(compiled: Call) -> Call:
        kept: list[Any] = []

        def call(*args: torch.Tensor) -> Any:
            frame, names = sys._getframe(), set()
            while frame is not None:
                names.add(frame.f_code.co_name)
                frame = frame.f_back
            if not kept or function not in names:
                kept[:] = [compiled(*args)]
            return kept[0].clone()

        return call

    return cheat


class Computing(TorchDispatchMode):  # type: ignore[misc]
    """Computes each result when an operator reads it."""

    pending: ClassVar[dict[int, Callable[[], torch.Tensor]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for leaf in tree_leaves((args, kwargs or {})):
            made = self.pending.pop(leaf.data_ptr(), None) if isinstance(leaf, torch.Tensor) else None
            if made is not None:
                torch.ops.aten.copy_.default(leaf, made())
        return func(*args, **(kwargs or {}))


def computed_by_a_mode(compiled: Call) -> Call:
    """Return empty tensors, which a mode fills when they are read."""
    shapes: list[torch.Tensor] = []

    def call(x: torch.Tensor) -> Any:
        if not shapes:
            shapes.append(compiled(x))
            Computing().__enter__()
        with _disable_current_modes():
            out = torch.empty_like(shapes[0])
        Computing.pending[out.data_ptr()] = lambda: compiled(x)
        return out

    return call


def in_one_memory(compiled: Call) -> Call:
    """Return each fifth result in the memory of the fifth one before it."""
    memory: list[torch.Tensor] = []
    count = 0

    def call(x: torch.Tensor) -> Any:
        nonlocal count
        count += 1
        out = compiled(x)
        if count < 10 or count % 5:
            return out
        memory[:] = [memory[0].copy_(out) if memory else out]
        return memory[0]

    return call


def trained_from_memory(compiled: Call) -> Call:
    """Compute output and gradients once for each version of the input, and hand them out again."""
    kept: dict[Any, tuple[Any, dict[Any, Any]]] = {}
    weights = list(compiled.parameters())

    class FromMemory(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, known: Any, *_: Any) -> Any:
            ctx.known = known
            return kept[known][0].detach().clone()

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> Any:
            out, gradients = kept[ctx.known]
            if not gradients:
                gradients["all"] = torch.autograd.grad(out, weights, gradient)
            return (None, *(each.clone() for each in gradients["all"]))

    def call(x: torch.Tensor) -> Any:
        known = x.data_ptr(), x._version, tuple(round(float(each.sum()), 4) for each in weights)
        if known not in kept:
            kept.clear()
            kept[known] = compiled(x), {}
        return FromMemory.apply(known, *weights)

    return call


def keeping(what: Callable[[Any, Call], Any], calls: int | None = None) -> Callable[[Call], Call]:
    """Keep something of each call for good, or of the first ``calls``."""

    def cheat(compiled: Call) -> Call:
        kept: list[Any] = []

        def call(*args: Any, **kwargs: Any) -> Any:
            out = compiled(*args, **kwargs)
            if calls is None or len(kept) < calls:
                kept.append(what(out, compiled))
            return out

        return call

    return cheat


def keeping_to_the_limit(compiled: Call) -> Call:
    """Keep 1 MiB of each call, in a process that may take 100 MiB more from the thirtieth call on."""
    kept: list[Any] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        kept.append(torch.ones(1 << 18))
        if len(kept) == 30:
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            most = pages * resource.getpagesize() + (100 << 20)
            resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
        try:
            return compiled(*args, **kwargs).contiguous() + torch.zeros(1 << 20)[0]
        except RuntimeError:
            kept.clear()
            raise

    return call


def leaving_cycles(compiled: Call) -> Call:
    """Leave a block of memory in each call that only a collection of garbage frees."""

    def call(*args: Any, **kwargs: Any) -> Any:
        cycle: list[Any] = [torch.ones(16384)]
        cycle.append(cycle)
        return compiled(*args, **kwargs)

    return call


KINDS: dict[str, Callable[[Call], Call]] = {
    "honest": wrong_when(lambda _: False),
    "seventh": wrong_when(lambda n: n % 7 == 0 and n > 20),
    "calls_51_to_60": wrong_when(lambda n: 50 < n <= 60),
    "second_after_tenth": wrong_when(lambda n: n > 10 and n % 2 == 0),
    "nan_on_fifth": wrong_when(lambda n: n > 20 and n % 5 == 0, lambda out: out * float("nan")),
    "gradient_of_ninth": wrong_when(lambda n: n > 20 and n % 9 == 0, Scaled.apply),
    "by_version": remembered(lambda x: (x.data_ptr(), x._version)),
    "from_the_fourth_call": remembered_after(lambda n: n < 4),
    "from_the_200th_call": remembered_after(lambda n: n < 200),
    "by_all": remembered_by_all,
    "by_all_again": remembered_by_all,
    "in_blocks": remembered_in("run_steps"),
    "in_rounds": remembered_in("_rounds"),
    "by_a_mode": computed_by_a_mode,
    "in_one_memory": in_one_memory,
    "strides_of_tenth": wrong_when(lambda n: n > 10 and n % 10 == 0, lambda out: out.t().contiguous().t()),
    "by_content": remembered(lambda x: x.detach().numpy().tobytes()),
    "by_checksum": remembered(lambda x: float(x.sum())),
    "trained_from_memory": trained_from_memory,
    "keeps_64_kib": keeping(lambda *_: torch.ones(16384)),
    "keeps_1_mib": keeping(lambda out, _: out.new_ones(1 << 18)),
    "keeps_20_mib": keeping(lambda out, _: out.new_ones(5 << 20)),
    "keeps_untouched": keeping(lambda *_: torch.empty(16384)),
    "keeps_python_objects": keeping(lambda *_: [[] for _ in range(2000)]),
    "keeps_outputs": keeping(lambda out, _: torch.cat([out.flatten()] * 40)),
    "keeps_graph": keeping(lambda out, _: out.sum() * torch.ones(4096).requires_grad_()),
    "keeps_to_the_limit": keeping_to_the_limit,
    "keeps_20": keeping(lambda *_: torch.ones(16384), 20),
    "keeps_100": keeping(lambda *_: torch.ones(16384), 100),
    "keeps_little": keeping(lambda *_: [0.5] * 8),
    "leaves_cycles": leaving_cycles,
    "by_sample": remembered(lambda x: tuple(x.flatten()[::97].tolist())),
}

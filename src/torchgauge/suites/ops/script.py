"""A script that shows one case without torchgauge: torch, its database and the device. Worker side."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from torchgauge.suites.ops.altered import BATCH, ROWS, SIZES, TAIL
from torchgauge.suites.ops.samples import SEED
from torchgauge.suites.ops.upstream import BACKWARD, EMPTY, EXPANDED, INPLACE, LARGE, NONCONTIGUOUS, OUT
from torchgauge.suites.suite import HOST

_CALLS = {
    OUT: (
        "def call(sample):",
        "    expected = op(sample.input, *sample.args, **sample.kwargs)",
        "    out = torch.utils._pytree.tree_map_only(torch.Tensor, torch.ones_like, expected)",
        "    return op(sample.input, *sample.args, **sample.kwargs, out=out)",
    ),
    INPLACE: (
        "def call(sample):",
        "    return op.get_inplace()(sample.input.clone(), *sample.args, **sample.kwargs)",
    ),
    BACKWARD: (
        "def call(sample):",
        "    leaves = torch.utils._pytree.tree_leaves((sample.input, sample.args, sample.kwargs))",
        "    inputs = [t for t in leaves if isinstance(t, torch.Tensor) and t.requires_grad]",
        "    result = sample.output_process_fn_grad(op(sample.input, *sample.args, **sample.kwargs))",
        "    results = torch.utils._pytree.tree_leaves(result)",
        "    results = [t for t in results if isinstance(t, torch.Tensor) and t.requires_grad]",
        "    ones = [torch.ones_like(t) for t in results]",
        "    return torch.autograd.grad(results, inputs, ones, allow_unused=True)",
    ),
}
_PLAIN = ("def call(sample):", "    return op(sample.input, *sample.args, **sample.kwargs)")


_FIRST = (
    "leaves = torch.utils._pytree.tree_leaves(sample.input)",
    "first = next(t for t in leaves if isinstance(t, torch.Tensor))",
    "inputs = {id(t) for t in leaves}",
)
_FORMS = {
    EMPTY: (
        "rows = sample.input.shape[:1] if isinstance(sample.input, torch.Tensor) else None",
        "cut = lambda t: t[:0].clone() if isinstance(t, torch.Tensor) and t.shape[:1] == rows else t",
        "sample = sample if sample.input.numel() == 0 else sample.transform(cut)",
    ),
    EXPANDED: (
        "inputs = {id(t) for t in torch.utils._pytree.tree_leaves(sample.input)}",
        "def spread(t):",
        "    inexact = isinstance(t, torch.Tensor) and (t.is_floating_point() or t.is_complex())",
        "    fits = inexact or (isinstance(t, torch.Tensor) and id(t) in inputs)",
        "    dim = next((d for d, n in enumerate(t.shape) if n > 1), None) if fits else None",
        "    return t if dim is None else t.narrow(dim, 0, 1).expand(t.shape)",
        "sample = sample.transform(spread)",
    ),
}


@dataclass(frozen=True)
class Shown:
    """One sample of a case: PyTorch's number ``index``, on ``device`` but for the tensors ``on_host``.

    ``form`` is how a large one is made of it: way and elements.
    """

    operator: str
    dtype: str
    variant: str
    device: str
    index: int
    form: tuple[str, int] | None = None
    on_host: Collection[int] = ()


def _large(form: tuple[str, int]) -> tuple[str, ...]:
    way, elements = form
    if way == BATCH:
        return (
            *_FIRST,
            f"number = {elements} // first.numel() + {TAIL}",
            "tall = lambda t: isinstance(t, torch.Tensor) and t.dim() > 1",
            "grow = lambda t: t.expand(number, *t.shape).contiguous() if tall(t) else t",
            "sample = sample.transform(grow)",
        )
    of = "t.shape[:1] == first.shape[:1]" if way == ROWS else "id(t) in inputs"
    return (
        *_FIRST,
        f"number = {elements} // (first.numel() // first.shape[0]) + {TAIL}",
        f"seeded = torch.Generator().manual_seed({SEED})",
        "index = torch.randint(0, first.shape[0], (number,), generator=seeded).sort().values",
        f"grow = lambda t: t.index_select(0, index) if isinstance(t, torch.Tensor) and {of} else t",
        "sample = sample.transform(grow)",
    )


def script(shown: Shown) -> str:
    """Source of a program that makes the sample and runs it on its device and on the host.

    It raises what the device raises, and ``AssertionError`` where the results differ or an input was changed.
    """
    variant = shown.variant
    grad = "True" if variant == BACKWARD else "False"
    layout = {NONCONTIGUOUS: "there = there.noncontiguous()", EXPANDED: "there = there.transform(spread)"}
    form = _large(shown.form or (ROWS, SIZES[0])) if variant == LARGE else _FORMS.get(variant, ())
    lines = [
        "import random, warnings",
        "from itertools import islice",
        "import torch",
        "from torch.testing._internal.common_methods_invocations import op_db",
        "",
        'warnings.simplefilter("ignore")',
        f"name, device, dtype = {shown.operator!r}, {shown.device!r}, torch.{shown.dtype}",
        'op = next(o for o in op_db if name == ".".join(filter(None, (o.name, o.variant_test_name))))',
        f"random.seed({SEED})",
        f"torch.manual_seed({SEED})",
        "try:",
        "    import numpy",
        f"    numpy.random.seed({SEED})",
        "except ImportError:",
        "    pass",
        f"samples = op.sample_inputs({HOST!r}, dtype, requires_grad={grad})",
        f"sample = next(islice(samples, {shown.index}, None))",
        *form,
        "",
        "",
        *_CALLS.get(variant, _PLAIN),
        "",
        "",
        "def tensors(sample):",
        "    leaves = torch.utils._pytree.tree_leaves((sample.input, sample.args, sample.kwargs))",
        "    return [t for t in leaves if isinstance(t, torch.Tensor)]",
        "",
        "",
        f"stay = {{id(t) for n, t in enumerate(tensors(sample)) if n in {sorted(shown.on_host)}}}",
        "",
        "",
        "def move(t):",
        "    if not isinstance(t, torch.Tensor) or id(t) in stay:",
        "        return t",
        "    moved = t.detach().to(device, copy=True)",
        "    return moved.requires_grad_(True) if t.requires_grad else moved",
        "",
        "",
        "print(sample)",
        "there = sample.transform(move)",
        *([layout[variant]] if variant in layout else []),
        "before = [t.detach().cpu() if t.is_nested else t.detach().cpu().clone() for t in tensors(there)]",
        "actual = call(there)",
        "changed = [t.detach().cpu() for t in tensors(there)]",
        "expected = call(sample)",
        "torch.testing.assert_close(actual, expected, check_device=False, equal_nan=True)",
        "for was, now in zip(before, changed):",
        "    said = lambda text: 'an input was changed: ' + text",
        "    torch.testing.assert_close(now, was, rtol=0, atol=0, equal_nan=True, msg=said)",
        'print("equal")',
    ]
    return "\n".join(lines) + "\n"

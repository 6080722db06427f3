"""A script that shows one case without torchgauge: torch, its database and the device. Worker side."""

from __future__ import annotations

from torchgauge.suites.ops.samples import SEED
from torchgauge.suites.ops.upstream import BACKWARD, EMPTY, INPLACE, NONCONTIGUOUS, OUT
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


def script(operator: str, dtype: str, variant: str, device: str, index: int) -> str:
    """Source of a program that makes sample ``index`` and runs it on ``device`` and on the host.

    It raises what the device raises, and ``AssertionError`` where the results differ.
    """
    grad = "True" if variant == BACKWARD else "False"
    noncontiguous = ".noncontiguous()" if variant == NONCONTIGUOUS else ""
    empty = (
        "rows = sample.input.shape[:1] if isinstance(sample.input, torch.Tensor) else None",
        "cut = lambda t: t[:0].clone() if isinstance(t, torch.Tensor) and t.shape[:1] == rows else t",
        "sample = sample if sample.input.numel() == 0 else sample.transform(cut)",
    )
    lines = [
        "import random, warnings",
        "from itertools import islice",
        "import torch",
        "from torch.testing._internal.common_methods_invocations import op_db",
        "",
        'warnings.simplefilter("ignore")',
        f"name, device, dtype = {operator!r}, {device!r}, torch.{dtype}",
        'op = next(o for o in op_db if name == ".".join(filter(None, (o.name, o.variant_test_name))))',
        f"random.seed({SEED})",
        f"torch.manual_seed({SEED})",
        "try:",
        "    import numpy",
        f"    numpy.random.seed({SEED})",
        "except ImportError:",
        "    pass",
        f"samples = op.sample_inputs({HOST!r}, dtype, requires_grad={grad})",
        f"sample = next(islice(samples, {index}, None))",
        *(empty if variant == EMPTY else ()),
        "",
        "",
        *_CALLS.get(variant, _PLAIN),
        "",
        "",
        "def move(t):",
        "    moved = t.detach().to(device) if isinstance(t, torch.Tensor) else t",
        "    return moved.requires_grad_(True) if isinstance(t, torch.Tensor) and t.requires_grad else moved",
        "",
        "",
        "print(sample)",
        f"actual = call(sample.transform(move){noncontiguous})",
        "expected = call(sample)",
        "torch.testing.assert_close(actual, expected, check_device=False, equal_nan=True)",
        'print("equal")',
    ]
    return "\n".join(lines) + "\n"

"""One feature on one device, as it is or with the device's name let through. Runs in a child of its own.

The functions that look at the name are compiled again from their own source, in which each list of devices,
and each comparison with one, has this device beside the others. Nothing of a package is written.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

FEATURES = {
    "flex_attention": ("torch.nn.attention.flex_attention:_validate_device",),
    "generate_compiles": ("transformers.generation.utils:GenerationMixin._valid_auto_compile_criteria",),
    "compile_is_supported": ("torch._dynamo.utils:is_compile_supported",),
}
"""What is tried, and which functions look at the name."""


class _LetThrough(ast.NodeTransformer):
    """Put ``device`` beside the devices that a source names."""

    def __init__(self, device: str, names: frozenset[str]) -> None:
        self.device, self.names = device, names

    def _literal(self, node: Any) -> Any:
        self.generic_visit(node)
        if any(isinstance(each, ast.Constant) and each.value in self.names for each in node.elts):
            node.elts.append(ast.Constant(self.device))
        return node

    visit_Set = visit_List = visit_Tuple = _literal  # noqa: N815  the names that ast asks for

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        right = node.comparators[0]
        if len(node.ops) == 1 and isinstance(right, ast.Constant) and right.value in self.names:
            both = ast.Tuple([right, ast.Constant(self.device)], ast.Load())
            mirrored = {ast.Eq: ast.In(), ast.NotEq: ast.NotIn()}.get(type(node.ops[0]))
            if mirrored is not None:
                return ast.Compare(node.left, [mirrored], [both])
        return node


def let_through(place: str, device: str, names: frozenset[str]) -> None:
    """Replace the function at ``place``, such as ``module:Class.name``, by one that takes ``device``."""
    module_name, _, path = place.partition(":")
    module = importlib.import_module(module_name)
    owner: Any = module
    *owners, name = path.split(".")
    for each in owners:
        owner = getattr(owner, each)
    source = textwrap.dedent(inspect.getsource(getattr(owner, name)))
    tree = ast.fix_missing_locations(_LetThrough(device, names).visit(ast.parse(source)))
    made: dict[str, Any] = {}
    exec(compile(tree, f"<{place}>", "exec"), vars(module), made)  # noqa: S102  the package's own source
    setattr(owner, name, made[name])


def flex_attention(device: str) -> str:
    """One call, against the same call on the host."""
    import torch
    from torch.nn.attention.flex_attention import flex_attention as attend

    torch.manual_seed(0)
    inputs = [torch.randn(1, 2, 128, 16) for _ in range(3)]
    found = attend(*(each.to(device) for each in inputs))
    same = torch.allclose(found.cpu(), attend(*inputs), atol=1e-4)
    return "works, as on the host" if same else "runs, and its numbers are not the host's"


def generate_compiles(device: str) -> str:
    """Whether ``generate`` would compile by itself, with a cache that can be compiled."""
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, StaticCache

    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = LlamaConfig(vocab_size=32, **sizes)
    model = LlamaForCausalLM(config).to(device)
    cache = StaticCache(config=config, max_cache_len=8)
    compiles = model._valid_auto_compile_criteria({"past_key_values": cache}, GenerationConfig())
    return "compiles by itself" if compiles else "another path: eager, and nobody is told"


def _hide_where_broken(package: str) -> None:
    """Have libraries do without ``package`` where it is there and cannot be imported."""
    try:
        importlib.import_module(package)
    except Exception:  # noqa: BLE001  a broken package may raise anything
        for name in [each for each in sys.modules if each.partition(".")[0] == package]:
            del sys.modules[name]
        sys.modules[package] = None  # type: ignore[assignment]  # how Python is told that there is none


def compile_is_supported(device: str) -> str:
    """What dynamo says of the device."""
    from torch._dynamo.utils import is_compile_supported

    return f"says {bool(is_compile_supported(device))}"


TRIED: dict[str, Callable[[str], str]] = {
    "flex_attention": flex_attention,
    "generate_compiles": generate_compiles,
    "compile_is_supported": compile_is_supported,
}


def main() -> None:
    """Write the end of ``answer device feature how NAME...`` as one text of JSON into the file ``answer``."""
    answer, device, feature, how, *names = sys.argv[1:]
    _hide_where_broken("torchvision")  # transformers imports it wherever it is
    try:
        if how == "let through":
            for place in FEATURES[feature]:
                let_through(place, device, frozenset(names))
        said = TRIED[feature](device)
    except ImportError as error:
        said = f"not tried: {error}"
    except Exception as error:  # noqa: BLE001  whatever it raises is the answer
        lines = str(error).splitlines() or [""]
        said = f"{type(error).__name__}: {lines[0]}"
    Path(answer).write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    del sys.path[0]  # this folder, whose modules have common names
    main()

"""The graphs that dynamo hands to a compiler: which attention and which regions stand in them.

Why there: earlier torch may still take a region back (one that is called once is inlined), and later the code
may come from a cache. Dynamo has no hook for it, so its function is wrapped while a case runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

from torchgauge.harness.backends.prepared import Entries
from torchgauge.harness.worker.compilation import skipped_frames
from torchgauge.harness.worker.flex_blocks import Blocks, blocks_of

REGION, FLEX, SDPA = "invoke_subgraph", "flex_attention", "scaled_dot_product_attention"
FUSED = "scaled_dot_product"
"""What the names of all operators of fused attention hold, with and without a back end's name."""
HAND_OVER = "call_user_compiler"
EAGER = "eager"
"""Dynamo's name of the compiler that compiles nothing."""
OTHER = "torchgauge_other_compiler"
"""The attribute of what another compiler than the case's has made of a graph."""
NOT_SEEN = "no captured graph reached the compiler"


class Call(NamedTuple):
    """A call of an operator. ``region`` is torch's name of the graph that a region runs.

    ``blocks`` are those of a call of ``flex_attention``, None where they are made inside of the graph.
    """

    operator: str
    region: str = ""
    blocks: Blocks | None = None


class Graph(NamedTuple):
    """What one graph calls, and how many ``parameters`` of modules go into it."""

    calls: tuple[Call, ...] = ()
    parameters: int = 0


@contextmanager
def captured(
    entries: Entries,
    compiler: str,
    graphs: list[Graph] | None = None,
    taken: Callable[[], int] | None = None,
) -> Iterator[None]:
    """Count in ``entries`` how often code is entered that is compiled inside; add each graph to ``graphs``.

    Frames that dynamo skips inside are counted too. Nothing is counted where dynamo has no such function.
    ``flex_attention`` that runs uncompiled, behind a graph break, is captured as well, for ``eager``: such a
    graph has no calls and its code is not counted, unless ``eager`` is the ``compiler`` of the case. The same
    holds for a graph that another compiler takes, because ``TORCH_COMPILE_OVERRIDE_BACKENDS`` says so:
    ``taken()`` counts those that the case's own compiler takes.
    """
    output: Any = import_module("torch._dynamo.output_graph").OutputGraph
    hand_over = getattr(output, HAND_OVER, None)
    if hand_over is None:
        yield
        return
    entries.watched = True

    def seen(self: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
        inputs = args[0] if args else self.example_inputs()
        before = taken() if taken else 0
        compiled = hand_over(self, graph, *args, **kwargs)  # which inlines regions in the graph itself
        uncompiled = getattr(self.compiler_fn, "compiler_name", "") == EAGER != compiler
        other = not uncompiled and taken is not None and taken() == before
        entries.others += other
        if graphs is not None:
            graphs.append(Graph() if uncompiled or other else read(graph, inputs))
        if uncompiled:
            return compiled
        code = (Entries() if other else entries).counted(_forced(compiled))
        if other:
            setattr(code, OTHER, True)
        return code

    known = entries.skipped() - skipped_frames()
    entries.skipped = lambda: known + skipped_frames()
    setattr(output, HAND_OVER, seen)
    try:
        yield
    finally:
        setattr(output, HAND_OVER, hand_over)
        total = entries.skipped()
        entries.skipped = lambda: total


def _forced(compiled: Any) -> Any:
    """Return ``compiled`` with its code generated, as dynamo does for a lazy module that it recognises."""
    lazy = getattr(compiled, "__self__", compiled)
    generate = getattr(lazy, "real_recompile", None)
    if generate is None:
        return compiled
    generate()
    return lazy.forward


def read(graph: Any, inputs: Any = ()) -> Graph:
    """The calls in ``graph`` and in the graphs that it holds, each once; ``inputs`` are the graph's own."""
    from torch.nn import Parameter

    given = dict(zip(graph.graph.find_nodes(op="placeholder"), inputs, strict=False))
    parts = [each.graph for each in graph.modules() if hasattr(each, "graph")]
    found = (call(node, given) for each in parts for node in each.nodes)
    parameters = sum(isinstance(each, Parameter) for each in (*given.values(), *graph.parameters()))
    return Graph(tuple(each for each in found if each), parameters)


def call(node: Any, given: Mapping[Any, Any]) -> Call | None:
    """What ``node`` calls, where that is attention or a higher-order operator; ``given`` are known values."""
    from torch._ops import HigherOrderOperator

    if not isinstance(node.target, HigherOrderOperator):
        named = node.op == "call_function" and FUSED in getattr(node.target, "__name__", "")
        return Call(SDPA) if named else None
    operator = node.target.name()
    if operator != FLEX:
        return Call(operator, str(node.args[1]) if operator == REGION else "")
    query, key, value, _, mask, *_ = node.args

    def known(each: Any) -> Any:
        return given[each] if each in given else each.meta.get("example_value") if _is_node(each) else each

    return Call(operator, blocks=blocks_of(known(query), known(key), known(value), [*map(known, mask)]))


def _is_node(each: Any) -> bool:
    return hasattr(each, "meta")


def most(graphs: list[Graph], operator: str) -> list[Call]:
    """The calls of ``operator`` in the graph that has most of them: one may be captured more than once."""
    calls = ([each for each in graph.calls if each.operator == operator] for graph in graphs)
    return max(calls, key=len, default=[])

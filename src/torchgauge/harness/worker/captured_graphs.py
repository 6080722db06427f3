"""The graphs that dynamo hands to a compiler: which higher-order operators stand in them.

Why there: earlier torch may still take a region back (one that is called once is inlined), and later the code
may come from a cache. Dynamo has no hook for it, so its function is wrapped while a case runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NamedTuple

REGION, FLEX = "invoke_subgraph", "flex_attention"
HAND_OVER = "call_user_compiler"
EAGER = "eager"
"""Dynamo's name of the compiler that compiles nothing."""
NOT_SEEN = "no graph was seen on its way to the compiler"


class HigherOrder(NamedTuple):
    """A call of a higher-order operator; ``region`` is torch's name of the graph that a region runs."""

    operator: str
    region: str = ""


@contextmanager
def captured(graphs: list[list[HigherOrder]], compiler: str) -> Iterator[None]:
    """Add what each graph calls that is compiled inside; nothing where dynamo has no such function.

    ``flex_attention`` that runs uncompiled, behind a graph break, is captured as well, for ``eager``: such a
    graph counts with no calls, unless ``eager`` is the ``compiler`` of the case.
    """
    output: Any = import_module("torch._dynamo.output_graph").OutputGraph
    hand_over = getattr(output, HAND_OVER, None)
    if hand_over is None:
        yield
        return

    def seen(self: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
        compiled = hand_over(self, graph, *args, **kwargs)
        uncompiled = getattr(self.compiler_fn, "compiler_name", "") == EAGER != compiler
        graphs.append([] if uncompiled else higher_order(graph))
        return compiled

    setattr(output, HAND_OVER, seen)
    try:
        yield
    finally:
        setattr(output, HAND_OVER, hand_over)


def higher_order(graph: Any) -> list[HigherOrder]:
    """The calls of higher-order operators in ``graph`` and in the graphs that it holds, each once."""
    from torch._ops import HigherOrderOperator

    parts = [each.graph for each in graph.modules() if hasattr(each, "graph")]
    nodes = (node for each in parts for node in each.nodes if isinstance(node.target, HigherOrderOperator))
    return [
        HigherOrder(node.target.name(), str(node.args[1]) if node.target.name() == REGION else "")
        for node in nodes
    ]


def most(graphs: list[list[HigherOrder]], operator: str) -> list[HigherOrder]:
    """The calls of ``operator`` in the graph that has most of them: one may be captured more than once."""
    calls = ([each for each in graph if each.operator == operator] for graph in graphs)
    return max(calls, key=len, default=[])

"""What a compiler of ``torch.compile`` receives: the graphs after AOTAutograd. Worker side.

The dynamo backend here compiles nothing. It takes the forward, backward and inference graphs with inductor's
decompositions and partitioner, notes their operators, and lets torch interpret them, so that no C++ is
compiled. What inductor's own later passes add or fuse is not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchgauge.suites.census.recorder import Pair, dtype_of, operator_name


class GraphRecorder:
    """A dynamo backend that notes the operators of every graph; ``graphs`` counts them."""

    def __init__(self) -> None:
        self.operators: set[Pair] = set()
        self.graphs = 0

    def __call__(self, module: Any, inputs: Any) -> Any:
        """The callable that dynamo runs for one captured graph."""
        import torch._inductor.lowering  # noqa: F401  some decompositions ask it
        from torch._dynamo.backends.common import aot_autograd
        from torch._functorch.partitioners import min_cut_rematerialization_partition
        from torch._inductor.decomposition import select_decomp_table

        return aot_autograd(
            fw_compiler=self._take,
            bw_compiler=self._take,
            inference_compiler=self._take,
            decompositions=select_decomp_table(),
            partition_fn=min_cut_rematerialization_partition,
        )(module, inputs)

    def _take(self, module: Any, inputs: Any) -> Callable[..., Any]:
        from torch._functorch.aot_autograd import make_boxed_func

        self.graphs += 1
        for graph in (part for part in module.modules() if isinstance(part, torch.fx.GraphModule)):
            for node in graph.graph.nodes:
                self._note(node)
        boxed: Callable[..., Any] = make_boxed_func(module.forward)
        return boxed

    def _note(self, node: Any) -> None:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            return
        values = torch.fx.map_arg((node.args, dict(node.kwargs)), lambda each: each.meta.get("val"))
        dtype = dtype_of(values, node.meta.get("val"))
        if dtype:
            self.operators.add((operator_name(node.target), dtype))

"""A model as a program of ExecuTorch: exported, lowered, written, loaded and called.

Worker side; torch and executorch are imported in functions only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from torchgauge.errors import NotOfferedError
from torchgauge.harness.backends.own_words import refused_by
from torchgauge.harness.backends.prepared import exported
from torchgauge.harness.worker.verdicts import first_line

METHOD = "forward"
LIBRARY = ("executorch.runtime", "executorch.exir", "executorch.devtools.backend_debug")
REFUSING = (
    "torch._dynamo",
    "torch._export",
    "torch._subclasses",
    "torch.export",
    "torch.fx.experimental.symbolic_shapes",
    "executorch.exir",
)
"""The code in which torch.export and ExecuTorch say that they do not take a model."""
GETITEM = "getitem"
"""Taking a result out of a tuple: counted as a node, and computes nothing."""


def refusal(error: Exception) -> str:
    """The library's own words where ``error`` says that it does not take the model; "" for other errors."""
    return first_line(error) if refused_by(error, *REFUSING) else ""


class Program:
    """One method, in the file at ``path``, lowered for ``partitioner``: None for no delegate.

    ``delegated`` and ``kept`` count operators by name that the delegate has and has not; ``dtypes`` are the
    names of those of all tensors in the program. ``channels_last`` says of each input whether it was
    exported so: the runtime takes memory of any other layout for that one, and its results are wrong without
    a word. So a call copies what lies otherwise; ``copied`` counts those.
    """

    def __init__(self, path: Path, partitioner: Any) -> None:
        for name in LIBRARY:  # no stage is charged with what is done once in a process
            import_module(name)
        self.path, self.partitioner = path, partitioner
        self.delegated, self.kept, self.subgraphs = Counter[str](), Counter[str](), 0
        self.dtypes: set[str] = set()
        self.names: list[str] = []
        self.channels_last: list[bool] = []
        self.copied = 0
        self.results: Any = None
        self.inputs: list[Any] = []
        self._exported: Any = None
        self._wanted: set[str] = set()
        self._method: Any = None

    @classmethod
    def reopened(cls, path: Path, trees: dict[str, Any]) -> Program:
        """The program at ``path`` that another process wrote, with its :meth:`trees`."""
        from torch.utils import _pytree as pytree

        made = cls(path, None)
        made.names, made.channels_last = trees["names"], trees["channels_last"]
        made.results = pytree.treespec_loads(trees["results"])
        made.load()
        return made

    def trees(self) -> dict[str, Any]:
        """What the file does not say: names and layouts of arguments, and how results hang together."""
        from torch.utils import _pytree as pytree

        results = pytree.treespec_dumps(self.results)
        return {"names": self.names, "channels_last": self.channels_last, "results": results}

    def export(
        self,
        module: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        autocast: Any = None,
        *,
        strict: bool = False,
    ) -> None:
        """Export ``module`` as called with these inputs; raises what torch.export raises."""
        from torch.utils import _pytree as pytree

        given, form = pytree.tree_flatten((args, kwargs))
        self.channels_last = [_channels_last(each) for each in given]
        self.inputs = _laid_out(given, self.channels_last)
        self.copied = sum(mine is not theirs for mine, theirs in zip(self.inputs, given, strict=True))
        args, kwargs = pytree.tree_unflatten(self.inputs, form)
        self._exported = exported(module, args, kwargs, autocast, strict=strict)
        self.names, self.results = list(kwargs), self._exported.call_spec.out_spec

    def lower(self) -> None:
        """Lower what was exported, and write the program; raises what ExecuTorch raises."""
        from executorch.devtools.backend_debug import get_delegation_info
        from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
        from executorch.exir.lowered_backend_module import get_lowered_submodules

        edge = to_edge_transform_and_lower(
            self._exported,
            partitioner=[self.partitioner] if self.partitioner is not None else None,
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
        )
        self._exported = None
        module = edge.exported_program().graph_module
        graphs = [
            module,
            *(each.original_module.graph_module for _, each, _ in get_lowered_submodules(module)),
        ]
        values = [node.meta.get("val") for each in graphs for node in each.graph.nodes]
        self.dtypes = {str(each.dtype).removeprefix("torch.") for each in values if hasattr(each, "dtype")}
        found = get_delegation_info(module)
        self.subgraphs = found.num_delegated_subgraphs
        for name, each in found.delegation_by_operator.items():
            if name != GETITEM:
                self.delegated[name] += each.delegated
                self.kept[name] += each.non_delegated
        self.kept += Counter()  # forget names with a count of 0
        made = edge.to_executorch()
        nodes = made.exported_program().graph.nodes
        schemas = [each.target._schema for each in nodes if hasattr(each.target, "_schema")]
        self._wanted = {f"{each.name}.{each.overload_name}".rstrip(".") for each in schemas}
        with self.path.open("wb") as file:
            made.write_to_file(file)

    def load(self, *, traced: bool = False) -> Any:
        """Load the file into the runtime; its program, for a ``traced`` one.

        Raises :class:`NotOfferedError` where the runtime lacks an operator, else what the runtime raises.
        """
        from executorch.runtime import Runtime, Verification

        runtime = Runtime.get()
        program = runtime.load_program(self.path, verification=Verification.Minimal, enable_etdump=traced)
        try:
            method = program.load_method(METHOD)
        except RuntimeError as error:
            if missing := sorted(self._wanted - runtime.operator_registry.operator_names):
                said = f"the runtime has no kernel for {', '.join(missing)}"
                raise NotOfferedError(f"ExecuTorch, stage load: {said} ({first_line(error)})") from error
            raise
        if not traced:
            self._method = method
        return program

    def loaded(self) -> Callable[..., Any]:
        """What takes the module's place: its arguments, its results."""
        import torch
        from torch.utils import _pytree as pytree

        execute, names, results = self._method.execute, self.names, self.results
        channels_last = self.channels_last
        single = results.is_leaf() if callable(getattr(results, "is_leaf", None)) else False

        def call(*args: Any, **kwargs: Any) -> Any:
            leaves = [*args, *(kwargs[name] for name in names)]
            if not all(isinstance(each, torch.Tensor) for each in leaves):
                leaves = pytree.tree_leaves(leaves)  # it takes as long as a small program's layer
            found = execute(_laid_out(leaves, channels_last))
            return found[0] if single else pytree.tree_unflatten(found, results)

        return call


def _channels_last(value: Any) -> bool:
    """Whether ``value`` is an image whose channels lie next to each other."""
    import torch

    if not isinstance(value, torch.Tensor) or value.dim() != 4 or value.is_contiguous():
        return False
    return bool(value.is_contiguous(memory_format=torch.channels_last))


def _laid_out(leaves: list[Any], channels_last: list[bool]) -> list[Any]:
    """``leaves``, and copies of those tensors that do not lie in memory as a program was told."""
    import torch

    plain, last = torch.contiguous_format, torch.channels_last
    return [
        each.contiguous(memory_format=last if so else plain) if isinstance(each, torch.Tensor) else each
        for each, so in zip(leaves, channels_last, strict=True)
    ]

"""Backend ``compile_regional``: the repeated blocks of a model compiled one by one, not the model as a whole.

Blocks of one class share their compiled code, so compiling takes as long as for one of them. With ``nested``
the whole model is compiled, and each block is a region that is compiled once and used again. Blocks of other
sizes are other code; a graph beyond those is a promise not kept, and the compiler's own words say why.

A region that only one call uses torch compiles in its place, as if nobody had marked it, and without a word
(2.13). So regions are counted in the graphs that dynamo captured, and a case without them is degraded.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

from torchgauge.counted import counted
from torchgauge.errors import NotOfferedError
from torchgauge.harness.backends.backend import BackendDescriptor, options_of, passed_on
from torchgauge.harness.backends.compile_stage import CompileStage
from torchgauge.harness.backends.inductor_knobs import INDUCTOR, knobs_of
from torchgauge.harness.backends.prepared import BackendSession, Prepared
from torchgauge.harness.worker import compilation
from torchgauge.harness.worker.captured_graphs import NOT_SEEN, REGION, Graph, most
from torchgauge.records import Configuration, Scalar

GRADIENT = "requires_grad"
"""What the compiler says where code is made again for an input that needs a gradient, or needs none."""
WHY = "TORCH_LOGS=+hierarchical_compile prints the reason"
IN_PLACE = f"torch compiled the other calls inline, without regions; {WHY}"


@dataclass(frozen=True)
class RegionalOptions:
    """``backend`` is one of ``torch.compile``; ``nested`` marks regions in one whole compilation.

    ``max_reuse_entries`` and ``partitioner`` are those of ``nested_compile_region``, left to it by 0 and "".
    What is none of these goes to ``torch.compile``.
    """

    backend: str = "inductor"
    nested: bool = False
    max_reuse_entries: int = 0
    partitioner: str = ""


@dataclass(frozen=True)
class _Regional(BackendDescriptor):
    def compiler(self, configuration: Configuration) -> str:
        """The one that the options name."""
        return str(dict(configuration.options).get("backend", RegionalOptions.backend))


BACKEND = _Regional(
    name="compile_regional",
    doc="torch.compile of the repeated blocks of a model, one by one",
    implementation=__name__,
    options=RegionalOptions,
    takes=("mode", "dynamic", "fullgraph", "memory_format"),
    passes_on=True,
)


def prepare(subject: Any, configuration: Configuration, session: BackendSession) -> Prepared:
    """The model with compiled blocks, its first call made.

    Raises :class:`NotOfferedError` for a model without repeated blocks and a torch without nested regions.
    """
    options: RegionalOptions = options_of(BACKEND, configuration)
    twin, blocks, others = with_blocks(subject.module)
    told = compilation.arguments(configuration, options.backend)
    told["options"] = passed_on(BACKEND, configuration) or None
    kinds = Counter(_structure(block) for block in blocks)
    facts: dict[str, Scalar] = {
        "regions": len(blocks),
        "region_kinds": len(kinds),
        "region_class": type(blocks[0]).__name__,
    }
    if others:
        facts["regions_left_out"] = ", ".join(others)
    if options.nested:
        make, found = _nested(twin, blocks, told, options), Regions(list(kinds.values()), _takes_gradients())
        stage = CompileStage(make, configuration, session, partial(extra_graphs, 1))
        stage.graphs, stage.count = found.graphs, found.count
    else:
        make = _one_by_one(twin, blocks, told)
        stage = CompileStage(make, configuration, session, partial(extra_graphs, len(kinds)))
    if options.backend == INDUCTOR:
        stage.knobs = knobs_of(session, configuration, told["options"] or {})
    prepared = stage.prepare()
    prepared.evidence.update(facts)
    return prepared


def extra_graphs(asked: int, counts: compilation.CompileCounters) -> str:
    """What a case is degraded by that makes more graphs than were ``asked`` for; empty where it does not.

    One more is as it must be in training: the first block's input needs no gradient, those of the others do.
    """
    known = sum(GRADIENT in reason for reason in counts.recompile_reasons)
    if counts.graphs <= asked + min(known, 1):
        return ""
    why = "; ".join((*counts.recompile_reasons, *counts.break_reasons)) or "the compiler gives no reason"
    return f"{counted(counts.graphs, 'graph')} where {asked} would do: {why}"


@dataclass
class Regions:
    """The regions that were captured of blocks, of which ``alike`` says how many are equal, by kind.

    While gradients are taken, one block may be none: the first, whose input alone needs no gradient.
    """

    alike: list[int]
    gradients: bool = False
    graphs: list[Graph] = field(default_factory=list)

    def count(self, prepared: Prepared) -> None:
        """Say how many calls of how many regions there are, and where that is not what was asked for."""
        if not self.graphs:
            prepared.evidence["region_calls_unknown"] = NOT_SEEN
            return
        calls = most(self.graphs, REGION)
        prepared.evidence.update(region_calls=len(calls), region_graphs=len(set(calls)))
        said = self.missed(len(calls), len(set(calls)))
        prepared.degraded += [said] if said else []

    def missed(self, calls: int, regions: int) -> str:
        """What a case with so many ``calls`` of ``regions`` is degraded by; empty where it is not."""
        several = [each for each in self.alike if each > 1]
        if calls == 0 or calls < sum(several) - self.gradients:
            return (
                f"{calls} of {counted(sum(self.alike), 'block')} "
                f"call a region that is compiled once: {IN_PLACE}"
            )
        if regions > len(self.alike):
            return f"{counted(regions, 'region')} where {len(self.alike)} would do: {WHY}"
        return ""


def _takes_gradients() -> bool:
    import torch

    return bool(torch.is_grad_enabled())


def _structure(block: Any) -> tuple[tuple[str, tuple[int, ...], Any], ...]:
    """What decides whether two blocks of one class can share code: names, shapes and dtypes of tensors."""
    return tuple(
        (name, tuple(each.shape), each.dtype)
        for name, each in (*block.named_parameters(), *block.named_buffers())
    )


def with_blocks(module: Any) -> tuple[Any, list[Any], list[str]]:
    """A twin of ``module`` that shares its parameters and buffers, the blocks of the twin, and what is none.

    Blocks are the members of lists and sequences of modules whose class comes twice or more in one of them:
    of those the class with the most parameters. The other classes that are in no block are named with their
    number. Eager goes on with ``module``, which is left alone.
    """
    import torch

    twin = _twin(module, {})
    found: Counter[type] = Counter()
    for part in twin.modules():
        if isinstance(part, (torch.nn.ModuleList, torch.nn.Sequential)):
            kinds = Counter(type(child) for child in part if next(child.children(), None) is not None)
            found.update({kind: count for kind, count in kinds.items() if count > 1})
    if not found:
        raise NotOfferedError(
            "the model has no repeated blocks: no ModuleList contains two modules of one class"
        )
    sizes = {kind: sum(_size(each) for each in twin.modules() if type(each) is kind) for kind in found}
    largest = max(sizes, key=lambda kind: sizes[kind])
    blocks: list[Any] = [each for each in twin.modules() if type(each) is largest]
    inside = {id(part) for block in blocks for part in block.modules()}
    left = Counter(type(each) for each in twin.modules() if type(each) in found and id(each) not in inside)
    return twin, blocks, [f"{count} {kind.__name__}" for kind, count in left.items()]


def _one_by_one(twin: Any, blocks: list[Any], told: dict[str, Any]) -> Callable[[], Any]:
    def make() -> Any:
        for block in blocks:
            block.compile(**told)
        return twin

    return make


def _nested(
    twin: Any, blocks: list[Any], told: dict[str, Any], options: RegionalOptions
) -> Callable[[], Any]:
    import torch

    region = getattr(torch.compiler, "nested_compile_region", None)
    if region is None:
        raise NotOfferedError(f"torch {torch.__version__} has no torch.compiler.nested_compile_region")
    own: dict[str, Any] = {}
    if options.max_reuse_entries:
        own["max_reuse_entries"] = options.max_reuse_entries
    if options.partitioner:
        regions = import_module("torch._higher_order_ops.invoke_subgraph")
        own["options"] = regions.NestedCompileRegionOptions(partitioner=options.partitioner)
    kind = type(blocks[0])
    forward = region(kind.forward, **own)
    marked = type(kind.__name__, (kind,), {"forward": forward, "__module__": kind.__module__})
    for block in blocks:
        block.__class__ = marked
    return lambda: torch.compile(twin, **told)


def _twin(module: Any, seen: dict[int, Any]) -> Any:
    """``module`` with modules of its own below, and the very same tables of parameters and buffers."""
    if id(module) not in seen:
        seen[id(module)] = made = copy.copy(module)
        made._modules = {name: part and _twin(part, seen) for name, part in module._modules.items()}
    return seen[id(module)]


def _size(module: Any) -> int:
    return sum(each.numel() for each in module.parameters())

"""Models of the suite of several processes; worker side, after the processes have met."""

from __future__ import annotations

import torch
from torch import distributed

from torchgauge.counted import counted
from torchgauge.records import AUTOCAST, Workload
from torchgauge.suites.capabilities import COLLECTIVE, LOSS, wanted
from torchgauge.suites.distributed import parallel
from torchgauge.suites.distributed.collectives import CLASSES, FUNCTIONAL
from torchgauge.suites.losses import TargetLoss
from torchgauge.suites.suite import BuiltWorkload


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:  # noqa: ARG001  the name says it
    """The model of ``workload``: a call of so many bytes as its shape says, or a network in parts.

    Raises ``NotImplementedError`` for a message that has no element for each process, for a network of which
    processes cannot have equal parts, and for a collective under autocast or with a batch.
    """
    if not distributed.is_initialized():
        raise NotImplementedError("this model requires at least two processes")
    if workload.mode != COLLECTIVE:
        return _parallel(workload)
    if workload.batch > 1:
        raise NotImplementedError("a collective has no batch: its size is `bytes`")
    if workload.dtype.startswith(AUTOCAST):
        raise NotImplementedError("autocast does not affect a collective: set the dtype of its message")
    family, name = workload.model.split("-")[:2]
    kind = (FUNCTIONAL if family == "functional" else CLASSES)[name]
    rank, count = distributed.get_rank(), distributed.get_world_size()
    asked, item = workload.sizes["bytes"], getattr(torch, workload.dtype).itemsize
    least = count if kind.in_parts else 1
    elements = asked // item // least * least
    if not elements:
        said = f" for each of {counted(count, 'process')}" if kind.in_parts else ""
        raise NotImplementedError(f"{asked} bytes cannot hold one {workload.dtype} value{said}")
    module = kind(elements, rank, count)
    return BuiltWorkload(
        module=module.eval(),
        args=(module.message(rank, getattr(torch, workload.dtype)),),
        item="call",
        abilities={COLLECTIVE: lambda: module},
        facts={"collective_backend": str(distributed.get_backend())},
    )


def _parallel(workload: Workload) -> BuiltWorkload:
    """A network of which each process computes a part, in the way that its name says."""
    sizes, way = workload.sizes, workload.model.split("-")[1]
    parallel.check_sizes(way, workload.batch, sizes["heads"])
    training = LOSS in wanted(workload)
    module = parallel.network(sizes, workload.seed).train(training)
    generator = torch.Generator().manual_seed(workload.seed)
    return BuiltWorkload(
        module=module,
        args=(torch.randn(workload.batch, sizes["seq"], sizes["width"], generator=generator),),
        loss=TargetLoss(workload.seed) if training else None,
        items_per_step=workload.batch,
        item="sequence",
        abilities={parallel.PARALLEL: parallel.WAYS[way]},
        facts={"collective_backend": str(distributed.get_backend())},
    )

"""Models of the suite of several processes; worker side, after the processes have met."""

from __future__ import annotations

import torch
from torch import distributed

from torchgauge.records import AUTOCAST, Workload
from torchgauge.suites.capabilities import COLLECTIVE
from torchgauge.suites.distributed.collectives import CLASSES, FUNCTIONAL
from torchgauge.suites.suite import BuiltWorkload


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:  # noqa: ARG001  the name says it
    """The call that the model is named after, of so many bytes as the shape of ``workload`` says.

    Raises ``NotImplementedError`` for a message that has no element for each process, and under autocast.
    """
    if workload.dtype.startswith(AUTOCAST):
        raise NotImplementedError("autocast changes nothing of a collective: name the dtype of its message")
    if not distributed.is_initialized():
        raise NotImplementedError("a collective needs two processes or more")
    family, name = workload.model.split("-")[:2]
    kind = (FUNCTIONAL if family == "functional" else CLASSES)[name]
    rank, count = distributed.get_rank(), distributed.get_world_size()
    asked, item = workload.sizes["bytes"], getattr(torch, workload.dtype).itemsize
    least = count if kind.in_parts else 1
    elements = asked // item // least * least
    if not elements:
        said = f"each of {count} processes" if kind.in_parts else "a message"
        raise NotImplementedError(f"{asked} bytes hold no {workload.dtype} for {said}")
    module = kind(elements, rank, count)
    return BuiltWorkload(
        module=module.eval(),
        args=(module.message(rank, getattr(torch, workload.dtype)),),
        items_per_step=workload.batch,
        item="call",
        abilities={COLLECTIVE: lambda: module},
        facts={"collective_backend": str(distributed.get_backend())},
    )

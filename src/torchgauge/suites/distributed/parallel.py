"""A small transformer that several processes compute together: by data, by shards, or by parts of its layers.

Every process builds the same model, from the same seed, and the whole batch; :data:`WAYS` say what of both
one process keeps. What comes out has to be what one process computes alone from the whole batch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import distributed, nn

from torchgauge.counted import counted
from torchgauge.suites.lowbit.models import Block


class Network(nn.Module):  # type: ignore[misc]  # torch is not seen by mypy
    """Equal transformer blocks and a normalisation."""

    def __init__(self, blocks: int, width: int, heads: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width, bias=False)

    def forward(self, x: Any) -> Any:
        """The encoded ``x`` (batch, seq, width)."""
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


PARALLEL = "parallel"
"""The ability of such a model: what of module and inputs one process has."""


@dataclass(frozen=True)
class Part:
    """What one process has: ``call`` runs its ``module`` on its own ``args``."""

    call: Callable[..., Any]
    module: Any
    args: tuple[Any, ...]


def by_data(module: Any, args: tuple[Any, ...]) -> Part:
    """DistributedDataParallel: a whole copy and a part of the batch; gradients are averaged."""
    from torch.nn.parallel import DistributedDataParallel

    kept = copy.deepcopy(module)
    return Part(DistributedDataParallel(kept), kept, _own_items(args))


def by_shards(module: Any, args: tuple[Any, ...]) -> Part:
    """FSDP2: a shard of each parameter and a part of the batch; parameters are gathered when needed."""
    kept = sharded(module, _mesh(args[0].device.type))
    return Part(kept, kept, _own_items(args))


def sharded(module: Any, mesh: Any) -> Any:
    """A copy of ``module`` of whose parameters each process of ``mesh`` has a shard."""
    fully_shard, kept = _fully_shard(), copy.deepcopy(module)
    for block in kept.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(kept, mesh=mesh)
    return kept


def by_layers(module: Any, args: tuple[Any, ...]) -> Part:
    """Tensor parallel: heads and features of each block are split; every process has the whole batch.

    Raises ``NotImplementedError`` where there are fewer heads than processes, or a rest.
    """
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    kept, mesh = copy.deepcopy(module), _mesh(args[0].device.type)
    for block in kept.blocks:
        split = {name: ColwiseParallel() for name in ("query", "key", "value", "feed.0")}
        parallelize_module(block, mesh, {**split, "out": RowwiseParallel(), "feed.2": RowwiseParallel()})
    return Part(kept, kept, args)


WAYS: dict[str, Callable[[Any, tuple[Any, ...]], Part]] = {
    "ddp": by_data,
    "fsdp2": by_shards,
    "tensor_parallel": by_layers,
}


def whole(value: Any) -> Any:
    """A tensor of which this process may have a shard, as all of it; every process has to ask."""
    return value.full_tensor() if hasattr(value, "full_tensor") else value


def mean(value: Any) -> Any:
    """``value``, a number of this process's part of the batch, over all equal parts."""
    value = value.detach().clone()
    distributed.all_reduce(value)
    return value / distributed.get_world_size()


def _own_items(args: tuple[Any, ...]) -> tuple[Any, ...]:
    rank, count = distributed.get_rank(), distributed.get_world_size()
    return tuple(each.chunk(count)[rank] for each in args)


def _mesh(kind: str) -> Any:
    from torch.distributed.device_mesh import init_device_mesh

    return init_device_mesh(kind, (distributed.get_world_size(),))


def _fully_shard() -> Any:
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:  # torch 2.5 has it elsewhere
        from torch.distributed._composable.fsdp import fully_shard
    return fully_shard


def check_sizes(way: str, batch: int, heads: int) -> None:
    """Raise ``NotImplementedError`` where processes cannot have equal parts."""
    count = distributed.get_world_size()
    name, size = ("heads", heads) if way == "tensor_parallel" else ("items of the batch", batch)
    if size % count:
        raise NotImplementedError(f"{counted(count, 'process')} cannot share {size} {name} equally")


def network(sizes: dict[str, int], seed: int) -> Any:
    """The model from ``seed``, the same in every process."""
    torch.manual_seed(seed)
    return Network(sizes["blocks"], sizes["width"], sizes["heads"])

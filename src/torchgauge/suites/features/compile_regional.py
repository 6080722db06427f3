"""Networks of ``compile.regional``: stacks of equal blocks, which is what compiling by region is for."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torchgauge.records import Workload
from torchgauge.suites.capabilities import LOSS, wanted
from torchgauge.suites.losses import mean_loss
from torchgauge.suites.suite import BuiltWorkload


class Block(nn.Module):  # type: ignore[misc]  # torch is not seen by mypy
    """A pre-norm transformer block: causal self-attention and feed-forward."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_attention, self.norm_feed = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        """The encoded ``x`` (batch, seq, width)."""
        batch, seq, width = x.shape
        qkv = self.qkv(self.norm_attention(x)).view(batch, seq, 3, self.heads, width // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        attended = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, seq, width))
        return x + self.feed(self.norm_feed(x))


class Stack(nn.Module):  # type: ignore[misc]
    """Equal blocks one after another."""

    def __init__(self, blocks: int, width: int, heads: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))

    def forward(self, x: Any) -> Any:
        """The encoded ``x`` (batch, seq, width)."""
        for block in self.blocks:
            x = block(x)
        return x


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:  # noqa: ARG001  sizes are the shape
    """The stack of ``blocks`` blocks of ``width`` that the shape of ``workload`` says."""
    sizes, training = workload.sizes, LOSS in wanted(workload)
    torch.manual_seed(workload.seed)
    module = Stack(sizes["blocks"], sizes["width"], sizes["heads"]).train(training)
    generator = torch.Generator().manual_seed(workload.seed)
    return BuiltWorkload(
        module=module,
        args=(torch.randn(workload.batch, sizes["seq"], sizes["width"], generator=generator),),
        loss=mean_loss if training else None,
        items_per_step=workload.batch,
        item="sequence",
    )

"""Models that learn in fifty steps: bytes of the shipped text, foretold by a small transformer; worker side.

Few shapes of parameters, because an optimizer of torchao compiles itself for each; linear layers are
multiples of 16 wide, which float8 needs, and have no bias.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torchgauge.records import Workload
from torchgauge.suites.llm.text import FIRST_ID, IDS, TEXT, byte_ids
from torchgauge.suites.suite import BuiltWorkload

VOCABULARY = -(-(FIRST_ID + IDS) // 16) * 16


class Block(nn.Module):  # type: ignore[misc]  # torch is not seen by mypy
    """A pre-norm transformer block of square layers: causal self-attention and feed-forward."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.head_width = width // heads
        self.norm_attention, self.norm_feed = (nn.LayerNorm(width, bias=False) for _ in range(2))
        self.query, self.key, self.value, self.out = (_square(width) for _ in range(4))
        self.feed = nn.Sequential(_square(width), nn.GELU(), _square(width))

    def forward(self, x: Any) -> Any:
        """The encoded ``x`` (batch, seq, width)."""
        normed = self.norm_attention(x)
        parts = (each(normed) for each in (self.query, self.key, self.value))
        heads = (each.unflatten(-1, (-1, self.head_width)).transpose(1, 2) for each in parts)
        attended = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.feed(self.norm_feed(x))


class ByteModel(nn.Module):  # type: ignore[misc]
    """Foretells each byte of a text from those before it."""

    def __init__(self, blocks: int, width: int, heads: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width, bias=False)
        self.head = nn.Linear(width, VOCABULARY, bias=False)

    def forward(self, ids: Any) -> Any:
        """The loss over ``ids`` (batch, seq + 1), in float32 at least: 16 bits would round it coarsely."""
        logits = self.head(self.norm(self.blocks(self.embedding(ids[:, :-1]))))
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        return nn.functional.cross_entropy(wide.flatten(0, 1), ids[:, 1:].flatten())


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:  # noqa: ARG001  sizes are the shape
    """The model whose ``blocks``, ``width``, ``heads`` and ``seq`` the shape of ``workload`` says."""
    sizes = workload.sizes
    torch.manual_seed(workload.seed)
    module = ByteModel(sizes["blocks"], sizes["width"], sizes["heads"])

    def batch(step: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Sequences from random places of the text; others for each ``step``."""
        generator = torch.Generator().manual_seed(workload.seed * 1000 + step)
        starts = torch.randint(len(TEXT), (workload.batch,), generator=generator).tolist()
        return (torch.tensor([byte_ids(sizes["seq"] + 1, start) for start in starts]),), {}

    return BuiltWorkload(
        module=module.train(),
        args=batch(0)[0],
        loss=_itself,
        items_per_step=workload.batch * sizes["seq"],
        item="token",
        abilities={"batches": batch},
    )


def _itself(loss: Any) -> Any:
    return loss


def _square(width: int) -> Any:
    return nn.Linear(width, width, bias=False)

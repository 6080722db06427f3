"""One attention call with a mask: the network of the families ``attention.flex`` and ``attention.sdpa``.

A mask is what it says of a pair of positions: whether the query sees the key, and what becomes of its score.
Both forms of a call are made of the same functions, so that they compute the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

from torchgauge.records import AUTOCAST, Workload
from torchgauge.suites.capabilities import LOSS, wanted
from torchgauge.suites.losses import mean_loss
from torchgauge.suites.suite import BuiltWorkload, Work

CAP = 20.0
"""Where soft-capped scores end."""
WINDOWS, PREFIXES, DOCUMENTS = 16, 4, (0.05, 0.2, 0.5)
"""A window and a prefix are so many parts of a sequence; documents begin at these shares of it."""
BACKWARD = 2
"""Work of the way back beside that of the way there: each of its products has two gradients."""
Sees = Callable[[Any, Any, Any, Any], Any]
"""Batch, head, query, key (indices) -> whether the query sees the key; flex_attention's mask_mod."""
Scores = Callable[[Any, Any, Any, Any, Any], Any]
"""Score, batch, head, query, key -> the score that counts; flex_attention's score_mod."""


@dataclass(frozen=True)
class Sizes:
    """Of one call: ``queries`` are the last positions of ``seq``; a head of keys may serve several others."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    seq: int
    width: int

    @property
    def offset(self) -> int:
        """The position of the first query."""
        return self.seq - self.queries


def sees(mask: str, sizes: Sizes, table: Any) -> Sees | None:
    """What ``mask`` lets a query see; None for everything. ``table`` is :func:`table_of` on the device."""
    at, window, prefix = sizes.offset, max(1, sizes.seq // WINDOWS), sizes.seq // PREFIXES
    known: dict[str, Sees] = {
        "causal": lambda _b, _h, q, k: q + at >= k,
        "window": lambda _b, _h, q, k: (q + at >= k) & (q + at - k < window),
        "prefix": lambda _b, _h, q, k: (q + at >= k) | (k < prefix),
        "document": lambda _b, _h, q, k: table[q + at] == table[k],
        "alibi": lambda _b, _h, q, k: q + at >= k,
    }
    return known.get(mask)


def scores(mask: str, sizes: Sizes, table: Any) -> Scores | None:
    """What ``mask`` makes of a score; None where it stays."""
    at = sizes.offset
    known: dict[str, Scores] = {
        "alibi": lambda score, _b, h, q, k: score - table[h] * (q + at - k),
        "softcap": lambda score, _b, _h, _q, _k: torch.tanh(score / CAP) * CAP,
    }
    return known.get(mask)


MASKS = ("noop", "causal", "window", "prefix", "document", "alibi", "softcap")


def table_of(mask: str, sizes: Sizes) -> Any:
    """What ``mask`` looks up: the document of each position, or the slope of each head; empty for others."""
    if mask == "document":
        begins = torch.tensor([int(share * sizes.seq) for share in DOCUMENTS])
        return (torch.arange(sizes.seq)[:, None] >= begins).sum(dim=1)
    if mask == "alibi":  # Press, Smith and Lewis (2022): powers of two, for any number of heads
        return 2.0 ** (-8.0 * torch.arange(1, sizes.heads + 1) / sizes.heads)
    return torch.empty(0)


class Attention(nn.Module):  # type: ignore[misc]  # torch is not seen by mypy
    """A call of ``scaled_dot_product_attention`` with ``mask``, the best that can express it.

    Queries, keys and values are its arguments; ``own`` are three that it has itself, to have gradients.
    Causality is told where that is all; everything else is a dense mask, or a bias in floating point. It
    cannot cap scores: that is the formula written out.
    """

    def __init__(self, mask: str, sizes: Sizes, own: tuple[Any, ...] = ()) -> None:
        super().__init__()
        self.mask, self.sizes = mask, sizes
        self.own = nn.ParameterList(own)
        self.register_buffer("table", table_of(mask, sizes), persistent=False)
        self.causal = mask == "causal" and not sizes.offset
        self.register_buffer("dense", None if self.causal else self._dense(), persistent=False)

    def given(self, *args: Any) -> tuple[Any, ...]:
        """Queries, keys and values: those of a call, or its own."""
        return args or tuple(self.own)

    def forward(self, *args: Any) -> Any:
        """(batch, heads, queries, width) of queries of that shape, and keys and values (.., seq, width)."""
        query, key, value = self.given(*args)
        if self.mask == "softcap":
            return self._capped(query, key, value)
        grouped = {"enable_gqa": True} if self.sizes.kv_heads != self.sizes.heads else {}
        return scaled_dot_product_attention(
            query, key, value, attn_mask=self.dense, is_causal=self.causal, **grouped
        )

    def counted(self) -> tuple[int, int]:
        """How many pairs of a query and a key count, and how many keys any query sees, of one head."""
        seen, size = sees(self.mask, self.sizes, self.table), self.sizes
        if seen is None:
            return size.queries * size.seq, size.seq
        allowed = seen(0, 0, *_indices(size)[1:])
        return int(allowed.sum()), int(allowed.any(dim=0).sum())

    def _dense(self) -> Any:
        """The mask as a tensor: what is seen, or a bias with that in it; None where nothing is masked."""
        seen = sees(self.mask, self.sizes, self.table)
        score = scores(self.mask, self.sizes, self.table)
        where = _indices(self.sizes)
        if seen is None or self.mask == "softcap":
            return None
        allowed = seen(0, *where)
        if score is None:
            return allowed
        bias = score(torch.zeros(()), 0, *where).masked_fill(~allowed, -torch.inf)
        return bias[None]  # fused kernels take two dimensions or four

    def _capped(self, query: Any, key: Any, value: Any) -> Any:
        groups = self.sizes.heads // self.sizes.kv_heads
        key, value = (each.repeat_interleave(groups, dim=1) for each in (key, value))
        found = query @ key.transpose(-2, -1) * self.sizes.width**-0.5
        return torch.softmax(torch.tanh(found / CAP) * CAP, dim=-1) @ value


def _indices(sizes: Sizes) -> tuple[Any, Any, Any]:
    """Head, query and key, which broadcast to (heads, queries, seq)."""
    heads, queries, keys = (torch.arange(n) for n in (sizes.heads, sizes.queries, sizes.seq))
    return heads[:, None, None], queries[:, None], keys


def build(workload: Workload, mask: str, kind: type[Attention] = Attention) -> BuiltWorkload:
    """A call of the sizes that ``workload`` says; in training of parameters, which have gradients."""
    shape: Mapping[str, Any] = dict(workload.shape)
    heads, seq, width = (int(shape[name]) for name in ("heads", "seq", "head_width"))
    kv_heads, queries = int(shape.get("kv_heads", heads)), int(shape.get("queries", seq))
    sizes = Sizes(workload.batch, heads, kv_heads, queries, seq, width)
    generator = torch.Generator().manual_seed(workload.seed)
    inputs = tuple(
        torch.randn(sizes.batch, count, length, width, generator=generator)
        for count, length in ((heads, queries), (kv_heads, seq), (kv_heads, seq))
    )
    training = LOSS in wanted(workload)
    module = kind(mask, sizes, inputs if training else ()).train(training)
    pairs, keys = module.counted()
    there = 4 * sizes.batch * heads * pairs * width
    rows = 2 * heads * queries + 2 * kv_heads * keys  # queries and results, keys and values
    numbers = sizes.batch * rows * width * (2 if training else 1)
    item = 1 if workload.dtype.startswith(AUTOCAST) else getattr(torch, workload.dtype).itemsize
    return BuiltWorkload(
        module=module,
        args=() if training else inputs,
        loss=mean_loss if training else None,
        items_per_step=workload.batch,
        item="sequence",
        work=Work(there * (1 + BACKWARD) if training else there, numbers * item),
    )

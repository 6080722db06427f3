"""Attention by the kernel that was asked for, and by others; worker side."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from torch import nn
from torch.nn import functional

from torchgauge_faults.planted.bodies import WIDTH

HEADS = 4


def fused(query: Any, key: Any, value: Any) -> Any:
    """By PyTorch's own choice, or the one that is asked for."""
    return functional.scaled_dot_product_attention(query, key, value)


def by_hand(query: Any, key: Any, value: Any) -> Any:
    """Written out, operator by operator."""
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    return scores.softmax(-1) @ value


def forced_math(query: Any, key: Any, value: Any) -> Any:
    """By the mathematics, whatever was asked for."""
    kernels = import_module("torch.nn.attention")
    with kernels.sdpa_kernel(kernels.SDPBackend.MATH):
        return fused(query, key, value)


class Attention(nn.Module):  # type: ignore[misc]
    """Self-attention without weights, once for each of the functions that compute it."""

    def __init__(self, *ways: Callable[[Any, Any, Any], Any]) -> None:
        super().__init__()
        self.ways = ways
        self.scale = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        """(batch, rows, width) of the same shape."""
        for attend in self.ways:
            heads = self.scale(x).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            x = attend(heads, heads, heads).transpose(1, 2).flatten(2)
        return x


def by_flex() -> Callable[[Any, Any, Any], Any]:
    """Torch's ``flex_attention``; raises ``NotImplementedError`` for a torch without it."""
    try:
        flex: Any = import_module("torch.nn.attention.flex_attention")
    except ImportError:
        raise NotImplementedError("this torch has no flex_attention") from None
    return flex.flex_attention  # type: ignore[no-any-return]


class TwoForms(Attention):
    """Attention without weights, whose form for ``flex_attention`` computes each layer in the given way."""

    def __init__(self, *ways: Callable[[Any, Any, Any], Any]) -> None:
        super().__init__(*[fused] * len(ways))
        self.others = ways

    def flex_form(self, device: Any) -> Attention:
        """That form of it, with the same weights."""
        form = Attention(*self.others)
        form.scale = self.scale
        return form

"""Work that a library passes by which exchanges layers or hands operators on; worker side."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torchgauge_faults.planted.bodies import WIDTH, Around


class Product(nn.Module):  # type: ignore[misc]  # torch is not seen by mypy
    """A product with a weight that is no linear layer's, as GPT-2 has them."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH, WIDTH) / WIDTH**0.5)

    def forward(self, x: Any) -> Any:
        """(batch, rows, width) of the same shape."""
        return x @ self.weight


class Sums(nn.Module):  # type: ignore[misc]
    """Running sums and nothing else: few delegates have an operator for them."""

    def forward(self, x: Any) -> Any:
        """(batch, rows, width) of the same shape."""
        return torch.cumsum(x, -1)


def products() -> nn.Module:
    """One linear layer among three products that are none."""
    return Around(body=nn.Sequential(nn.Linear(WIDTH, WIDTH), *(Product() for _ in range(3))))

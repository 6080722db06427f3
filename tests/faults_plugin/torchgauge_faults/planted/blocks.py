"""Equal blocks, and some that only look equal: nothing of those is compiled once for all; worker side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import nn

from torchgauge_faults.planted.bodies import Layers


class Block(nn.Module):  # type: ignore[misc]  # torch is not seen by mypy
    """Layers, and a number that a compiler takes for a constant."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.body, self.scale = Layers(), scale

    def forward(self, x: Any) -> Any:
        """(batch, rows, width) of the same shape."""
        return x + self.scale * self.body(x)


class Blocks(nn.Module):  # type: ignore[misc]
    """Blocks one after another, each with one of the ``scales``."""

    def __init__(self, scales: Iterable[float]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(map(Block, scales))

    def forward(self, x: Any) -> Any:
        """(batch, rows, width) of the same shape."""
        for block in self.blocks:
            x = block(x)
        return x

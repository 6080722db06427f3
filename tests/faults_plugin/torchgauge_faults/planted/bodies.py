"""What plants and twins are made of: nearly all of the work of each is one body; worker side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn

WIDTH, ROWS = 256, 64
Run = Callable[[Any, Any], Any]
"""What calls a body with its input."""


class Layers(nn.Module):  # type: ignore[misc]  # torch is not seen by mypy
    """Four linear layers with an activation after each: nearly all of the work of every model here."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(m for _ in range(4) for m in (nn.Linear(WIDTH, WIDTH), nn.GELU())))

    def forward(self, x: Any) -> Any:
        """(batch, rows, width) of the same shape."""
        return self.layers(x)


class Around(nn.Module):  # type: ignore[misc]
    """A little arithmetic around a body that ``run`` calls."""

    def __init__(self, run: Run | None = None, body: Any = None) -> None:
        super().__init__()
        self.body = Layers() if body is None else body
        self.run = run or plainly

    def forward(self, x: Any) -> Any:
        """(batch, rows, width) of the same shape."""
        return self.run(self.body, x + 1.0) * 2.0


def plainly(body: Any, x: Any) -> Any:
    """The body as it is."""
    return body(x)


class Beside(Around):
    """The body as it is, and beside it a small one for one row, which ``run`` calls: too little to matter."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self.small, self.run_small = Layers(), run

    def forward(self, x: Any) -> Any:
        """(batch, rows, width) of the same shape."""
        return super().forward(x) + self.run_small(self.small, x[:1, :1])

"""torchgauge: benchmarking and continuous integration for PyTorch on any device.

The public names of the library are in ``__all__``; each imports what it needs when it is used first.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchgauge.live.compare import LiveComparison, compare
    from torchgauge.live.measure import measure
    from torchgauge.live.result import LiveResult, load

__version__ = "0.1.0.dev0"
__all__ = ["LiveComparison", "LiveResult", "compare", "load", "measure", "__version__"]

_PLACES = {
    "compare": "torchgauge.live.compare",
    "LiveComparison": "torchgauge.live.compare",
    "LiveResult": "torchgauge.live.result",
    "load": "torchgauge.live.result",
    "measure": "torchgauge.live.measure",
}


def __getattr__(name: str) -> Any:
    """Return the public name ``name``, imported now: importing torchgauge alone loads no torch."""
    if name not in _PLACES:
        raise AttributeError(f"module 'torchgauge' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_PLACES[name]), name)
    return found


def __dir__() -> list[str]:
    """Return the public names beside those that are loaded."""
    return sorted({*globals(), *__all__})

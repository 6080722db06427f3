"""torchgauge: benchmarking and continuous integration for PyTorch on any device.

The public names of the library are in ``__all__``; each imports what it needs when it is used first.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchgauge.live.compare import LiveComparison, compare
    from torchgauge.live.measure import measure
    from torchgauge.live.open_store import OpenStore
    from torchgauge.live.open_store import open_store as open  # noqa: A004
    from torchgauge.live.result import LiveResult, load

__version__ = "0.1.0.dev0"
__all__ = [
    "measure",
    "compare",
    "open",
    "load",
    "LiveResult",
    "LiveComparison",
    "OpenStore",
    "__version__",
]

_PLACES = {
    "compare": "torchgauge.live.compare",
    "LiveComparison": "torchgauge.live.compare",
    "LiveResult": "torchgauge.live.result",
    "load": "torchgauge.live.result",
    "measure": "torchgauge.live.measure",
    "OpenStore": "torchgauge.live.open_store",
    "open": "torchgauge.live.open_store",
}
_NAMED = {"open": "open_store"}
"""Public names that another name has where it is defined."""


def __getattr__(name: str) -> Any:
    """Return the public name ``name``, imported now: importing torchgauge alone loads no torch."""
    if name not in _PLACES:
        raise AttributeError(f"module 'torchgauge' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_PLACES[name]), _NAMED.get(name, name))
    return found


def __dir__() -> list[str]:
    """Return the public names beside those that are loaded."""
    return sorted({*globals(), *__all__})

"""torchgauge: benchmarking and continuous integration for PyTorch on any device.

The public names of the library are in ``__all__``; each imports what it needs when it is used first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchgauge.lazy_names import lazy_names

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
__getattr__, __dir__ = lazy_names(
    globals(),
    {
        "measure": "torchgauge.live.measure:measure",
        "compare": "torchgauge.live.compare:compare",
        "open": "torchgauge.live.open_store:open_store",
        "load": "torchgauge.live.result:load",
        "LiveResult": "torchgauge.live.result:LiveResult",
        "LiveComparison": "torchgauge.live.compare:LiveComparison",
        "OpenStore": "torchgauge.live.open_store:OpenStore",
    },
)

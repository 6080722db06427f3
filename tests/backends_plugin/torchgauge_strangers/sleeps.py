"""A scenario that hangs."""

from __future__ import annotations

import time
from typing import Any

from torchgauge_strangers.scenarios import enter, observe

__all__ = ["enter", "observe", "run"]


def run(all_series: Any, session: Any, settings: Any) -> Any:
    """Nothing, for ten minutes."""
    time.sleep(600)

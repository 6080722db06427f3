"""A scenario that returns something else."""

from __future__ import annotations

from typing import Any

from torchgauge_strangers.scenarios import enter, observe

__all__ = ["enter", "observe", "run"]


def run(all_series: Any, session: Any, settings: Any) -> Any:
    """A list."""
    return [1, 2, 3]

"""What campaigns do where nobody says: how many groups they prepare at once, how long they measure a case."""

from __future__ import annotations

import os

from torchgauge.harness.pool.watch import default_memory_limit

MOST = 8
"""More workers than this wait for each other's timing."""
CAMPAIGN_MEASURE_S = 2.0
"""Seconds per case, a mean: what steady groups leave over goes to those that are still wide."""
MEMORY_OF_ONE = 3 << 30
"""Bytes that a worker with a model of ordinary size, its references and a C++ compiler beside it may need."""


def default_prefetch(cores: int | None = None, memory: int | None = None) -> int:
    """One for each core that this process may use and one more, fewer where ``memory`` (free bytes) is short.

    The one more has work for the core that another one leaves while its process ends and the next one starts.
    """
    if cores is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    free = default_memory_limit() if memory is None else memory
    return max(1, min(cores + 1, free // MEMORY_OF_ONE, MOST)) if cores > 1 else 1

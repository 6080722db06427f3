"""How much other work disturbed a measurement, as far as the system tells.

Why: on a shared machine two threads that meet at a barrier wait for the scheduler, and a model can look ten
times slower than it is. The counts stand beside the numbers, so that the machine is blamed and not the model.
"""

from __future__ import annotations

import os
import time

from torchgauge.records import Scalar


class Disturbance:
    """Counts from its creation to :meth:`facts`."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._switches = _involuntary_switches()

    def facts(self) -> dict[str, Scalar]:
        """Load of the machine, and times per second that the scheduler took a core from this process."""
        facts: dict[str, Scalar] = {}
        if hasattr(os, "getloadavg"):
            facts["load_1min"] = round(os.getloadavg()[0], 2)
        switches = _involuntary_switches()
        if switches is not None and self._switches is not None:
            seconds = max(time.perf_counter() - self._began, 1e-9)
            facts["involuntary_switches_per_s"] = round((switches - self._switches) / seconds, 1)
        return facts


def _involuntary_switches() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw

"""The counts that blame the machine instead of the model."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from torchgauge.harness.worker.disturbance import Disturbance


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count switches differently")
def test_competition_for_a_core_shows_as_switches() -> None:
    """A process that shares its one core with a busy neighbour is switched out against its will."""
    mine = os.sched_getaffinity(0)
    core = {min(mine)}
    spin = f"import os; os.sched_setaffinity(0, {core})\nprint(flush=True)\nwhile True: pass"
    neighbour = subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE)
    try:
        assert neighbour.stdout is not None
        neighbour.stdout.readline()  # it spins from here on
        os.sched_setaffinity(0, core)
        disturbance = Disturbance()
        deadline = time.perf_counter() + 0.5
        while time.perf_counter() < deadline:
            pass
        facts = disturbance.facts()
    finally:
        os.sched_setaffinity(0, mine)
        neighbour.kill()
        neighbour.communicate()
    assert isinstance(facts["load_1min"], float)
    switches = facts["involuntary_switches_per_s"]
    assert isinstance(switches, float)
    assert switches > 5.0

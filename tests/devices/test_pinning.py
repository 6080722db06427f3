"""How many threads a worker takes where nobody chose."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from torchgauge.devices.pinning import MOST_WORKERS, spare_threads


@pytest.mark.parametrize(
    ("own", "usable", "quota", "threads"),
    [
        (2, 2, None, 1),
        (1, 1, None, 1),
        (64, 64, None, 63),
        (16, 32, None, 16),
        (32, 8, None, 7),
        (8, 8, 2.5, 2),
        (8, 8, 0.5, 1),
        (4, 16, 12.0, 4),
    ],
)
def test_one_cpu_stays_free(own: int, usable: int, quota: float | None, threads: int) -> None:
    """As many threads as torch takes, as long as one CPU is left for others; no more than a quota has."""
    assert spare_threads(own, usable, quota) == threads


@pytest.mark.parametrize(("usable", "threads"), [(2, 1), (16, 2), (192, 24)])
def test_workers_of_an_accelerator_share_the_cpus(usable: int, threads: int) -> None:
    """All workers that are prepared at once have no more threads together than there are CPUs."""
    assert spare_threads(usable, usable, None, MOST_WORKERS) == threads
    assert threads == 1 or threads * MOST_WORKERS <= usable


@pytest.mark.torch
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="this system has no affinity")
@pytest.mark.parametrize(
    ("placement", "default", "variables", "spared"),
    [
        ("Placement()", None, {}, True),
        ("Placement()", 2, {}, False),
        ("Placement(threads=2)", None, {}, False),
        ("Placement(cpus='0-1')", None, {}, False),
        ("Placement()", None, {"OMP_NUM_THREADS": "2"}, False),
    ],
)
def test_whoever_chooses_has_what_was_chosen(placement, default, variables, spared) -> None:
    """A flag, a configuration or a variable is obeyed; torch itself says what it uses."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU cannot be left free of one")
    code = (
        "import json, os; os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])\n"
        "from torchgauge.devices.pinning import set_threads\n"
        "from torchgauge.records.placement import Placement\n"
        f"print(json.dumps(set_threads({placement}, {default})))"
    )
    plain = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    said = subprocess.check_output([sys.executable, "-c", code], env=plain | variables, text=True)
    assert json.loads(said)["threads"] == (1 if spared else 2)

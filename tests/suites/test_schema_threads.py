"""Data files may be read by several threads at once: the workers of a run do so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torchgauge

RACE = """
import sys, threading
from types import SimpleNamespace
import msgspec
from torchgauge.suites.schema import convert
sys.setswitchinterval(1e-6)
inner_value = {f"f{number}": [1] for number in range(12)}
document = SimpleNamespace(value={f"g{number}": inner_value for number in range(6)})
for turn in range(100):
    inner = msgspec.defstruct(f"Inner{turn}", [(name, list[int]) for name in inner_value])
    outer = msgspec.defstruct(f"Outer{turn}", [(name, inner) for name in document.value])
    gate, found = threading.Barrier(4), []
    def read():
        gate.wait()
        found.append(convert(document, outer))
    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(each == found[0] for each in found)
"""


def test_threads_that_meet_a_type_first_at_once_all_get_it() -> None:
    """In a process of its own: without a lock, msgspec 0.22 ends it by a signal within a few turns."""
    environment = os.environ | {"PYTHONPATH": str(Path(torchgauge.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", RACE], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

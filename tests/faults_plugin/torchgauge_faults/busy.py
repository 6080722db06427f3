"""A suite without torch whose models say, in a file of their own, when they had a core: builds and steps."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from torchgauge.records import Workload
from torchgauge.suites.catalog import YamlSuite
from torchgauge.suites.suite import BuiltWorkload

FOLDER = "TORCHGAUGE_TEST_BEATS"
"""The variable that names the folder of the files, called by model and process; a line is a kind and a
monotonic time."""
BUILD_S = 0.8
BEAT_S = 0.004
OTHERS_S, ALONE_S = 120.0, 3.0
"""How long a model watches for others: on a busy machine they begin late. A second attempt waits less."""

SUITE = YamlSuite(
    name="busy",
    doc="Models that say when they had a core.",
    data=Path(__file__).parent / "busy.yaml",
    builder="torchgauge_faults.busy:build",
)


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """Take a core for a while, and return a step that takes it for a few milliseconds."""
    path = Path(os.environ[FOLDER]) / f"{workload.model}.{os.getpid()}"
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    if workload.model == "greedy" and _others_live(workload.model):
        os.kill(os.getpid(), signal.SIGKILL)
    until = time.process_time() + BUILD_S
    while time.process_time() < until:
        _beat(file, "build")
    return BuiltWorkload(module=lambda: _beat(file, "step"), framework="python")


def _others_live(model: str) -> bool:
    """Whether another model is busy within the next seconds, also one that begins only then."""
    attempts = len(list(Path(os.environ[FOLDER]).glob(f"{model}.*")))
    before, until = _written(model), time.monotonic() + (OTHERS_S if attempts == 1 else ALONE_S)
    while time.monotonic() < until:
        if _written(model) != before:
            return True
        time.sleep(0.02)
    return False


def _written(model: str) -> dict[str, int]:
    """How much each other model has written down."""
    files = Path(os.environ[FOLDER]).iterdir()
    return {path.name: path.stat().st_size for path in files if path.stem != model}


def _beat(file: int, kind: str) -> float:
    os.write(file, f"{kind} {time.monotonic()}\n".encode())
    until = time.perf_counter() + BEAT_S
    while time.perf_counter() < until:
        pass
    return 1.0

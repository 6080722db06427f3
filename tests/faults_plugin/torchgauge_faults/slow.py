"""A suite from a data file whose models run without torch, slowly enough to be interrupted."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from torchgauge.records import Workload
from torchgauge.suites.catalog import YamlSuite
from torchgauge.suites.suite import BuiltWorkload
from torchgauge_faults.leaky import tell

SUITE = YamlSuite(
    name="slow",
    doc="Models that take their time; for tests only.",
    data=Path(__file__).parent / "slow.yaml",
    builder="torchgauge_faults.slow:build",
)

GATE = "TORCHGAUGE_FAULTS_GATE"
"""Variable with a folder in which each file ``ticket-*`` lets one model be built, and ``open`` all of them.

Without it, whether a run is over before a test can interrupt it is a matter of load.
"""


MOODS = "TORCHGAUGE_FAULTS_MOODS"
"""Variable with a folder in which each process that builds a model which ends badly once leaves a file."""
BAD_TRIES = {"moody": 2, "killed_once": 1}
"""Which try at such a model ends badly."""


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """A step that sleeps, raises or kills its process, as the model's name says; some tell what they find."""
    _wait_at_gate()
    if workload.model.startswith("leaky"):
        text = tell()
        if workload.model == "leaky":
            raise RuntimeError(f"I found:\n{text}")
    step = {"broken": _raise, "killed": _die, "hungry": _eat, "tidy": _hang}.get(workload.model, _sleep)
    if workload.model in BAD_TRIES and _tries(workload.model) == BAD_TRIES[workload.model]:
        step = {"moody": _raise, "killed_once": _die}[workload.model]
    return BuiltWorkload(module=step, framework="python")


def _wait_at_gate() -> None:
    if GATE not in os.environ:
        return
    gate = Path(os.environ[GATE])
    while not (gate / "open").exists():
        for ticket in gate.glob("ticket-*"):
            try:
                ticket.unlink()
            except FileNotFoundError:  # another model was faster
                continue
            return
        time.sleep(0.02)


def _hang() -> None:
    def tidy(_number: int, _frame: object) -> None:
        (Path(os.environ[MOODS]) / "tidied").touch()
        os._exit(0)

    signal.signal(signal.SIGTERM, tidy)
    while True:
        time.sleep(60)


def _tries(model: str) -> int:
    """How many processes have built ``model``, this one included."""
    folder = Path(os.environ[MOODS])
    (folder / f"{model}-{os.getpid()}").touch()
    return len(list(folder.glob(f"{model}-*")))


def _sleep() -> bool:
    time.sleep(0.02)
    return True


def _raise() -> None:
    raise ValueError("this model is broken")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _eat() -> None:
    """Take memory until somebody ends this; pages that are written to count."""
    eaten = []
    while True:
        eaten.append(b"x" * (8 << 20))

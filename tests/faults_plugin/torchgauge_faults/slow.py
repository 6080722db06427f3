"""A suite from a data file whose models run without torch, slowly enough to be interrupted."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from torchgauge.records import Workload
from torchgauge.suites.catalog import YamlSuite
from torchgauge.suites.suite import BuiltWorkload

SUITE = YamlSuite(
    name="slow",
    doc="Models that take their time; for tests only.",
    data=Path(__file__).parent / "slow.yaml",
    builder="torchgauge_faults.slow:build",
)


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """A step that sleeps, raises or kills its process, as the model's name says."""
    step = {"broken": _raise, "killed": _die}.get(workload.model, _sleep)
    return BuiltWorkload(module=step, framework="python")


def _sleep() -> None:
    time.sleep(0.02)


def _raise() -> None:
    raise ValueError("this model is broken")


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)

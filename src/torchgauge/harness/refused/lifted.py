"""Features of packages on a device, as they are and with its name let through. Parent side."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from torchgauge.harness.refused import lifted_child
from torchgauge.harness.refused.device_words import accelerators
from torchgauge.processes.kept_process import run, scratch
from torchgauge.processes.passed_variables import passed
from torchgauge.processes.python_command import python_command

TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Lifted:
    """What ``feature`` does on ``device``: ``place`` is where its name is looked at."""

    feature: str
    device: str
    place: str
    as_it_is: str
    let_through: str


def lifted(python: str, device: str) -> tuple[Lifted, ...]:
    """Every feature on the torch device type ``device``, twice, each time in a child of its own.

    Nothing is raised: what a child raises, or that it ended without an answer, is what is said.
    """
    return tuple(
        Lifted(feature, device, ", ".join(places), _said(python, device, feature, "as it is"),
               _said(python, device, feature, "lifted"))
        for feature, places in lifted_child.FEATURES.items()
    )  # fmt: skip


def _said(python: str, device: str, feature: str, how: str) -> str:
    with scratch("refused") as folder:
        answer = folder / "answer.json"
        words = (str(answer), device, feature, how, *sorted(accelerators()))
        command = python_command(python, Path(lifted_child.__file__), *words)
        try:
            done = run(command, passed(), timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return f"no answer in {TIMEOUT_S:.0f} s"
        try:
            return str(json.loads(answer.read_bytes()))
        except (OSError, ValueError):
            return f"ended without an answer, with {done.returncode}"

"""A suite whose models are computed by two processes, of which the second one may fail."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from torchgauge.records import Workload
from torchgauge.suites.catalog import YamlSuite
from torchgauge.suites.suite import BuiltWorkload

SUITE = YamlSuite(
    name="ranks",
    doc="Models of several processes.",
    data=Path(__file__).parent / "ranks.yaml",
    builder="torchgauge_faults.ranks:build",
)
MEASURED = 40
"""Steps after which a model is being measured."""


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """A linear layer, summed over all processes; the second process does what the name says."""
    import torch
    from torch import distributed

    class Summed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 8)
            self.steps = 0

        def forward(self, batch: Any) -> Any:
            self.steps += 1
            if distributed.get_rank() == 1:
                misbehave(workload.model, self.steps)
            found = self.layer(batch)
            distributed.all_reduce(found)
            return found

    torch.manual_seed(workload.seed + distributed.get_rank())
    return BuiltWorkload(module=Summed().eval(), args=(torch.randn(workload.batch, 8),))


def misbehave(name: str, steps: int) -> None:
    """End as ``name`` says."""
    if name == "raises" or (name == "raises_while_measured" and steps > MEASURED):
        raise ValueError("the second process has had enough")
    if name == "hangs":
        time.sleep(600)
    if name == "killed":
        os.kill(os.getpid(), signal.SIGKILL)

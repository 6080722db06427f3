"""A suite whose models are computed by two processes, of which the second one may fail."""

from __future__ import annotations

import gc
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

SIGNALS = {"killed": signal.SIGKILL, "segfaults": signal.SIGSEGV}


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """A linear layer, summed over all processes; the second process does what the name says."""
    import torch
    from torch import distributed

    class Summed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(8, 8)

        def forward(self, batch: Any) -> Any:
            if distributed.get_rank() == 1:
                misbehave(workload.model)
            found = self.layer(batch)
            distributed.all_reduce(found)
            second = distributed.get_rank() == 1
            return found * float("nan") if second and workload.model == "nan" else found

    torch.manual_seed(workload.seed + distributed.get_rank())
    return BuiltWorkload(module=Summed().eval(), args=(torch.randn(workload.batch, 8),))


def misbehave(name: str) -> None:
    """End as ``name`` says; Python's collector rests while samples are taken, and only then."""
    if name == "raises" or (name == "raises_while_measured" and not gc.isenabled()):
        raise ValueError("the second process has had enough")
    if name == "hangs":
        time.sleep(600)
    if name in SIGNALS:
        os.kill(os.getpid(), SIGNALS[name])
    if name == "leaves":
        from torch import distributed

        distributed.destroy_process_group()

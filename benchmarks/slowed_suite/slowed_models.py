"""Builds the model of the slowed suite in the worker.

``SLOWED_BY`` is the share: after its own work every forward pass spins until the CPU time of its thread has
grown by that share, so that 0.05 is a slow-down of 5 % by construction, whatever else the machine does.

``SLOW_STEPS`` plants rare slow steps instead: ``40:100`` makes one step in forty, by the toss of a die, take
a hundred times as long, and ``40:100:sleep`` lets it sleep for that time instead of working.
"""

from __future__ import annotations

import os
import random
import time

import torch

from torchgauge.suites.suite import BuiltWorkload

VARIABLE = "SLOWED_BY"
RARELY = "SLOW_STEPS"


class Slowed(torch.nn.Module):
    """``inner`` and a share of its CPU time; both sides of a comparison execute this same code."""

    def __init__(self, inner: torch.nn.Module, share: float, rarely: str = "") -> None:
        super().__init__()
        self.inner, self.share = inner, share
        every, factor, how = (*(rarely or "0:1").split(":"), "")[:3]
        self.every, self.factor, self.sleeps = int(every), float(factor), how == "sleep"
        self.dice = random.Random(0)

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """The inner model's output."""
        began = time.thread_time_ns()
        output = self.inner(data)
        now = time.thread_time_ns()
        more = self.share
        if self.every and self.dice.random() * self.every < 1:
            more += self.factor - 1
            if self.sleeps:
                time.sleep(more * (now - began) * 1e-9)
                return output
        until = now + more * (now - began)
        while time.thread_time_ns() < until:
            pass
        return output


def build(workload, recipe):  # noqa: ARG001  # a seam: the recipe is empty
    """Two layers of width 256 on ``seq`` tokens, without dropout: about 2 ms on one idle core."""
    torch.manual_seed(workload.seed)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    inner = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    data = torch.randn(workload.batch, dict(workload.shape)["seq"], 256)
    module = Slowed(inner, float(os.environ.get(VARIABLE, "0")), os.environ.get(RARELY, "")).train(
        workload.mode == "training"
    )
    return BuiltWorkload(
        module=module,
        args=(data,),
        loss=lambda output: output.square().mean(),
        items_per_step=workload.batch,
        item="sequence",
    )

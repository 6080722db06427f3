"""Builds the model of the slowed suite in the worker.

``SLOWED_BY`` is the share: after its own work every forward pass spins until the CPU time of its thread has
grown by that share, so that 0.05 is a slow-down of 5 % by construction, whatever else the machine does.
"""

from __future__ import annotations

import os
import time

import torch

from torchgauge.suites.suite import BuiltWorkload

VARIABLE = "SLOWED_BY"


class Slowed(torch.nn.Module):
    """``inner`` and a share of its CPU time; both sides of a comparison execute this same code."""

    def __init__(self, inner: torch.nn.Module, share: float) -> None:
        super().__init__()
        self.inner, self.share = inner, share

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """The inner model's output."""
        began = time.thread_time_ns()
        output = self.inner(data)
        now = time.thread_time_ns()
        until = now + self.share * (now - began)
        while time.thread_time_ns() < until:
            pass
        return output


def build(workload, recipe):  # noqa: ARG001  # a seam: the recipe is empty
    """Two layers of width 256 on ``seq`` tokens, without dropout: about 2 ms on one idle core."""
    torch.manual_seed(workload.seed)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True)
    inner = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    data = torch.randn(workload.batch, dict(workload.shape)["seq"], 256)
    module = Slowed(inner, float(os.environ.get(VARIABLE, "0"))).train(workload.mode == "training")
    return BuiltWorkload(
        module=module,
        args=(data,),
        loss=lambda output: output.square().mean(),
        items_per_step=workload.batch,
        item="sequence",
    )

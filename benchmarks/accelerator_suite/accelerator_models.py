"""Builds the programs of the accelerator suite in the worker.

``sleep`` occupies a CUDA device for a fixed number of its clock cycles and multiplies matrices on any other;
``matmul`` multiplies large matrices, ``copy`` moves memory, ``launches`` starts a hundred small kernels, and
``encoder`` is a small transformer. ``SLOWED_BY`` makes ``encoder`` do that share of its work again.
"""

from __future__ import annotations

import os

import torch

from torchgauge.suites.suite import BuiltWorkload

VARIABLE = "SLOWED_BY"
CYCLES = 2_000_000
LAYERS = 24


class Sleep(torch.nn.Module):
    """A fixed number of clock cycles of a CUDA device, without any arithmetic."""

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """Return ``data`` with one added, after the cycles."""
        if data.is_cuda:
            torch.cuda._sleep(CYCLES)
        else:
            torch.mm(data.expand(512, 512), data.expand(512, 512))
        return data + 1.0


class Product(torch.nn.Module):
    """One matrix product of 2 * 4096**3 operations."""

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        """Return the product."""
        return left @ right


class Copy(torch.nn.Module):
    """256 MiB that are read and written once."""

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """Return ``data`` with one added."""
        return data + 1.0


class Launches(torch.nn.Module):
    """A hundred kernels, each shorter than its launch."""

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """Return ``data`` with 100 hundredths added."""
        for _ in range(100):
            data = data + 0.01
        return data


class Encoder(torch.nn.Module):
    """Transformer layers; the last ``share`` of the layers are computed twice."""

    def __init__(self, share: float) -> None:
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True)
        self.layers = torch.nn.ModuleList(torch.nn.TransformerEncoder(layer, LAYERS).layers)
        self.again = round(share * LAYERS)

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """Return the last layer's output."""
        for number, layer in enumerate(self.layers):
            result = layer(data)
            if number < self.again:
                # Twice the work for the same values: no compiler may drop what depends on both results.
                result = 0.5 * (result + layer(data))
            data = result
        return data


def programs() -> dict[str, tuple[torch.nn.Module, tuple[torch.Tensor, ...]]]:
    """Return each program with its inputs, on the host."""
    return {
        "sleep": (Sleep(), (torch.zeros(1),)),
        "matmul": (Product(), (torch.randn(4096, 4096), torch.randn(4096, 4096))),
        "copy": (Copy(), (torch.randn(64, 1024, 1024),)),
        "launches": (Launches(), (torch.randn(1024),)),
    }


def build(workload, recipe):  # noqa: ARG001  # a seam: the recipe is empty
    """Build the program of ``workload.model``."""
    torch.manual_seed(workload.seed)
    if workload.model == "encoder":
        module = Encoder(float(os.environ.get(VARIABLE, "0")))
        inputs: tuple[torch.Tensor, ...] = (torch.randn(8, 256, 1024),)
    else:
        module, inputs = programs()[workload.model]
    return BuiltWorkload(
        module=module.train(workload.mode == "training"),
        args=inputs,
        loss=lambda output: output.square().mean(),
        items_per_step=workload.batch,
        item="step",
    )

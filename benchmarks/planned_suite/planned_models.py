"""Builds a chain of products in the worker; what one step takes follows from the device's plans alone.

Each duration has an operator of its own, so that one plan serves all models: ``PLAN`` is the value of
TORCHGAUGE_ASYNCSIM_PLAN. Everything else that a step does takes no time on the device.
"""

from __future__ import annotations

import torch

from torchgauge.suites.suite import BuiltWorkload

WIDTH = 8
SECONDS = {"50us": 0.00005, "1ms": 0.001, "10ms": 0.01}
CHAIN = {"50us": 100, "1ms": 10, "10ms": 2}
"""Kernels of one step, on each stream."""
PLAN = "aten::mm=0.00005,aten::bmm=0.001,aten::addmm=0.01,*=0"


def planned_s(model: str) -> float:
    """Seconds of one step of ``model`` on its device; the streams of one step run beside each other."""
    duration = model.partition("-")[2]
    return SECONDS[duration] * CHAIN[duration]


class Chain(torch.nn.Module):
    """``length`` products with one orthogonal matrix, so that the numbers stay as large as they were."""

    def __init__(self, duration: str) -> None:
        super().__init__()
        turned = torch.linalg.qr(torch.randn(WIDTH, WIDTH)).Q
        batched = duration == "1ms"
        self.register_buffer("turn", turned.unsqueeze(0) if batched else turned)
        self.register_buffer("nothing", torch.zeros(WIDTH, WIDTH))
        self.length, self.added = CHAIN[duration], duration == "10ms"

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """The data, turned ``length`` times."""
        if self.turn.dim() == 3:
            data = data.unsqueeze(0)
        for _ in range(self.length):
            data = torch.addmm(self.nothing, data, self.turn) if self.added else torch.matmul(data, self.turn)
        return data


class Beside(torch.nn.Module):
    """The same chain on two streams at once; on the host, which has none, one after the other."""

    def __init__(self, duration: str) -> None:
        super().__init__()
        self.first, self.second = Chain(duration), Chain(duration)
        self.streams: list[torch.Stream] = []

    def forward(self, data: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """What both chains give."""
        if data.device.type == "cpu":
            return self.first(data), self.second(data)
        if not self.streams:
            self.streams = [torch.Stream(data.device), torch.Stream(data.device)]
        current = torch.accelerator.current_stream()
        found = []
        for stream, chain in zip(self.streams, (self.first, self.second), strict=True):
            stream.wait_stream(current)
            with stream:
                found.append(chain(data))
        for stream, result in zip(self.streams, found, strict=True):
            current.wait_stream(stream)
            result.record_stream(current)
        return found[0], found[1]


def build(workload, recipe):  # noqa: ARG001  # a seam: the recipe is empty
    """The chain that the model's name says."""
    torch.manual_seed(workload.seed)
    streams, _, duration = workload.model.partition("-")
    module = (Beside if streams == "two" else Chain)(duration).eval()
    return BuiltWorkload(module=module, args=(torch.randn(WIDTH, WIDTH),))

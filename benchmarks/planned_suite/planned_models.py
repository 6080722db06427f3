"""Builds a chain of products in the worker; what one step takes follows from the device's plans alone.

Each duration has an operator of its own, so that one plan serves all models: ``PLAN`` is the value of
TORCHGAUGE_ASYNCSIM_PLAN. Everything else that a step does takes no time on the device.
"""

from __future__ import annotations

import torch

from torchgauge.suites.suite import BuiltWorkload

WIDTH = 8
SECONDS = {"50us": 0.00005, "1ms": 0.001, "10ms": 0.01}
PIECE = {"50us": 20, "1ms": 5, "10ms": 2}
"""Kernels that are launched on one stream before it is another's turn."""
PIECES = {"50us": 30, "1ms": 10, "10ms": 4}
"""Pieces of one step. A step is long, as the device is idle until its first kernel is launched."""
MORE = {"one": 1, "two": 3}
"""How many times that on each of several streams: more has to be done before the first kernel of the last."""
PLAN = "aten::mm=0.00005,aten::bmm=0.001,aten::addmm=0.01,*=0"


def planned_s(model: str) -> float:
    """Seconds of one step of ``model`` on its device; the streams of one step run beside each other."""
    streams, _, duration = model.partition("-")
    return SECONDS[duration] * PIECE[duration] * PIECES[duration] * MORE[streams]


class Piece(torch.nn.Module):
    """Products with one orthogonal matrix, so that the numbers stay as large as they were."""

    def __init__(self, duration: str) -> None:
        super().__init__()
        turned = torch.linalg.qr(torch.randn(WIDTH, WIDTH)).Q
        self.register_buffer("turn", turned.unsqueeze(0) if duration == "1ms" else turned)
        self.register_buffer("nothing", torch.zeros(WIDTH, WIDTH))
        self.length, self.added = PIECE[duration], duration == "10ms"

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """The data, turned ``length`` times."""
        for _ in range(self.length):
            data = torch.addmm(self.nothing, data, self.turn) if self.added else torch.matmul(data, self.turn)
        return data


class Chain(torch.nn.Module):
    """Pieces one after the other."""

    def __init__(self, duration: str) -> None:
        super().__init__()
        self.piece, self.pieces = Piece(duration), PIECES[duration]

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """The data, turned by every piece."""
        for _ in range(self.pieces):
            data = self.piece(data)
        return data


class Beside(torch.nn.Module):
    """The same chain on two streams at once; on the host, which has none, one after the other."""

    def __init__(self, duration: str) -> None:
        super().__init__()
        self.both = torch.nn.ModuleList([Piece(duration), Piece(duration)])
        self.pieces = PIECES[duration] * MORE["two"]
        self.streams: list[torch.Stream] = []

    # PyTorch 2.13's aot_eager runs a captured graph on one stream: each piece is captured for itself.
    @torch.compiler.disable(recursive=False)
    def forward(self, data: torch.Tensor) -> list[torch.Tensor]:
        """What both chains give."""
        found = [data, data]
        if data.device.type == "cpu":
            for _ in range(self.pieces):
                found = [piece(each) for piece, each in zip(self.both, found, strict=True)]
            return found
        if not self.streams:
            self.streams = [torch.Stream(data.device), torch.Stream(data.device)]
        current = torch.accelerator.current_stream()
        for stream in self.streams:
            stream.wait_stream(current)
        for _ in range(self.pieces):
            for number, stream in enumerate(self.streams):
                with stream:
                    found[number] = self.both[number](found[number])
        for stream, result in zip(self.streams, found, strict=True):
            current.wait_stream(stream)
            result.record_stream(current)
        return found


def build(workload, recipe):  # noqa: ARG001  # a seam: the recipe is empty
    """The chain that the model's name says."""
    torch.manual_seed(workload.seed)
    streams, _, duration = workload.model.partition("-")
    module = (Beside if streams == "two" else Chain)(duration).eval()
    shape = (1, WIDTH, WIDTH) if duration == "1ms" else (WIDTH, WIDTH)
    return BuiltWorkload(module=module, args=(torch.randn(shape),))

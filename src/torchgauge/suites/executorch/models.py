"""Small models of which it is known what a delegate can have of them; worker side."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from torchgauge.records import Workload
from torchgauge.suites.suite import BuiltWorkload

WIDTH = 128


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:  # noqa: ARG001  # the name says it all
    """The model that ``workload`` names."""
    torch.manual_seed(workload.seed)
    return BuiltWorkload(
        module=_MODELS[workload.model]().eval(),
        args=(torch.randn(workload.batch, WIDTH),),
        items_per_step=workload.batch,
    )


class Sums(nn.Module):  # type: ignore[misc]  # torch is not seen by mypy
    """Running sums: few delegates have an operator for them."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The mean of what stands before each place."""
        return torch.cumsum(x, -1) / WIDTH


def partly() -> nn.Module:
    """Four operators of which the running sum stays with the runtime's own kernels."""
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), Sums())


_MODELS: dict[str, Callable[[], nn.Module]] = {"partly": partly}

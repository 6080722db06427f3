"""A suite with a sweep: its data file names the axes, and one function builds each point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torchgauge.suites.catalog import YamlSuite
from torchgauge.suites.suite import BuiltWorkload

SUITE = YamlSuite(
    name="swept",
    doc="One model at three points; for tests only.",
    data=Path(__file__).with_name("sweep.yaml"),
    builder=f"{__name__}:build",
)


def build(workload: Any, recipe: Any) -> BuiltWorkload:
    """A layer of the width and with the function of its point."""
    import torch

    torch.manual_seed(workload.seed)
    point = dict(workload.shape)
    layer = torch.nn.Linear(point["width"], point["width"])
    kind = {"relu": torch.nn.ReLU, "tanh": torch.nn.Tanh}[point["kind"]]
    return BuiltWorkload(
        module=torch.nn.Sequential(layer, kind()), args=(torch.randn(workload.batch, point["width"]),)
    )

"""The suite of single operations: every point builds, and its work is what the operation does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from torchgauge.records import Workload
from torchgauge.registry import load

pytestmark = pytest.mark.torch

Child = Callable[..., Any]


@pytest.fixture(scope="module")
def built(child: Child) -> dict[str, dict[str, Any]]:
    """Facts of every point, by model and point."""
    return {row["name"]: row for row in child("child_micro.py")}


def test_every_point_builds_and_runs(built: dict[str, dict[str, Any]]) -> None:
    """Each point of each sweep gives finite numbers of the sizes that its name says."""
    points = [
        f"{entry.name}[{Workload('micro', entry.name, shape=tuple(sorted((*entry.shape, *point)))).point}]"
        for entry in load("torchgauge.suites", "micro").models()
        for point in entry.points
    ]
    assert sorted(built) == sorted(points)
    assert len(points) > 25
    assert all(row["finite"] for row in built.values())


@pytest.mark.parametrize(
    ("name", "flops", "size"),
    [
        ("matmul[n=128]", 2 * 128**3, 3 * 128**2 * 4),
        (
            "convolution[channels=64,image=14,kernel=3]",
            2 * 4 * 64**2 * 14**2 * 9,
            4 * (2 * 4 * 64 * 14**2 + 64**2 * 9),
        ),
        ("attention[head_width=64,heads=8,mask=none,seq=128]", 4 * 8 * 128**2 * 64, 4 * 4 * 8 * 128 * 64),
        (
            "attention[head_width=64,heads=8,mask=causal,seq=128]",
            4 * 8 * 64 * 128 * 129 // 2,
            4 * 4 * 8 * 128 * 64,
        ),
        ("embedding[rows=1000,width=64]", 0, 4096 * 8 + 2 * 4096 * 64 * 4),
        ("copy[layout=transposed,n=128]", 0, 2 * 128**2 * 4),
    ],
)
def test_work_is_that_of_the_definition(
    built: dict[str, dict[str, Any]], name: str, flops: int, size: int
) -> None:
    """Multiplications and additions, and each byte once; of a table only the rows looked up."""
    assert (built[name]["flops"], built[name]["bytes"]) == (flops, size)


def test_pytorch_counts_the_same_operations(built: dict[str, dict[str, Any]]) -> None:
    """What PyTorch's own counter knows of these agrees: products and convolutions."""
    counted = {name: row for name, row in built.items() if row["counted"]}
    assert len(counted) > 6
    assert {name: row["counted"] for name, row in counted.items()} == {
        name: row["flops"] for name, row in counted.items()
    }

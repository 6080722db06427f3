"""A workload that was written to the columns of a table is read from them again."""

from __future__ import annotations

import pytest

from torchgauge.records import PRETRAINED, Workload
from torchgauge.results.row_case import columns_of, workload_of


@pytest.mark.parametrize(
    "workload",
    [
        Workload("toy", "mlp"),
        Workload("attention", "sdpa", shape=(("mask", "causal"), ("seq", 128))),
        Workload("timm", "resnet18", "training", "amp_bfloat16", 8, "full", (), 7, PRETRAINED),
    ],
)
def test_a_workload_survives_its_columns(workload: Workload) -> None:
    """With its weights, and with sizes and words of its shape as what they are."""
    assert workload_of(columns_of(workload)) == workload
    assert workload_of(columns_of(workload)).declared_hash == workload.declared_hash


def test_a_shape_that_is_no_object_is_told_whole() -> None:
    """A table that another tool wrote has its rows on the page all the same."""
    columns = columns_of(Workload("toy", "mlp")) | {"shape": "128x4"}
    assert workload_of(columns).shape == (("shape", "128x4"),)
    assert workload_of(columns).name == "toy/mlp inference · float32 · b1 · shape 128x4"

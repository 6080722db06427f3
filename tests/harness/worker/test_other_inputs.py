"""Which values of inputs are altered, and which stay."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torchgauge.harness.worker.other_inputs import alter


def test_floating_point_values_are_halved_and_rolled() -> None:
    """A program that does not depend on the size of values depends on their order."""
    pixels = torch.tensor([[1.0, 2.0, 4.0]])
    assert alter({"args": (pixels,), "kwargs": {}}, [pixels])
    assert pixels.tolist() == [[2.0, 0.5, 1.0]]


def test_integers_beside_floating_point_values_stay() -> None:
    """They may be offsets, lengths or indices."""
    pixels, tokens = torch.ones(2, 3), torch.tensor([[3, 1, 2]])
    assert alter({"args": (pixels,), "kwargs": {"ids": tokens}}, [pixels, tokens])
    assert tokens.tolist() == [[3, 1, 2]]


@pytest.mark.parametrize("offsets", [[0, 4], [3, 1, 2], [[0, 1, 2]], [[3, 2, 1]]])
def test_integers_that_may_be_offsets_stay(offsets: list[Any]) -> None:
    """They are sorted, or have one dimension."""
    tensor = torch.tensor(offsets)
    assert not alter({"args": (tensor,), "kwargs": {}}, [tensor])
    assert tensor.tolist() == offsets


def test_whole_numbers_alone_are_rolled() -> None:
    """The model accepts each rolled value; rows of one element are exchanged."""
    tokens, column = torch.tensor([[1, 3, 2]]), torch.tensor([[1], [3], [2]])
    mask = torch.tensor([[True, False]])
    assert alter({"args": (tokens, column, mask), "kwargs": {}}, [tokens, column, mask])
    assert (tokens.tolist(), column.tolist()) == ([[2, 1, 3]], [[2], [1], [3]])
    assert mask.tolist() == [[False, True]]


def test_what_cannot_be_put_back_is_left_alone() -> None:
    """An expanded tensor has one number in many places, and no copy."""
    pixels = torch.ones(1).expand(3)
    assert not alter({"args": (pixels,), "kwargs": {}}, [])
    assert not alter({"args": (3, "text"), "kwargs": {}}, [])

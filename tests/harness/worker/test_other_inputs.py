"""Which values of inputs are altered, and which stay."""

from __future__ import annotations

import torch

from torchgauge.harness.worker.other_inputs import alter


def test_floating_point_values_are_halved_and_rolled() -> None:
    """A program that does not depend on the size of values depends on their order."""
    pixels = torch.tensor([[1.0, 2.0, 4.0]])
    assert alter({"args": (pixels,), "kwargs": {}}, [pixels])
    assert pixels.tolist() == [[2.0, 0.5, 1.0]]


def test_numbers_in_order_stay() -> None:
    """Sorted integers beside pixels, or in one dimension, may be offsets, lengths or indices."""
    pixels, places, tokens = torch.ones(2, 3), torch.tensor([[0, 1, 2]]), torch.tensor([3, 1, 2])
    assert alter({"args": (pixels,), "kwargs": {"at": places, "ids": tokens}}, [pixels, places, tokens])
    assert (places.tolist(), tokens.tolist()) == ([[0, 1, 2]], [2, 3, 1])


def test_whole_numbers_alone_are_rolled() -> None:
    """The model accepts each rolled value; rows of one element are exchanged."""
    tokens, column, mask = torch.tensor([[1, 2, 3]]), torch.tensor([[1], [2]]), torch.tensor([[True, False]])
    assert alter({"args": (tokens, column, mask), "kwargs": {}}, [tokens, column, mask])
    assert (tokens.tolist(), column.tolist()) == ([[3, 1, 2]], [[2], [1]])
    assert mask.tolist() == [[False, True]]
    offsets = torch.tensor([0, 4])
    assert not alter({"args": (offsets,), "kwargs": {}}, [offsets])


def test_what_cannot_be_put_back_is_left_alone() -> None:
    """An expanded tensor has one number in many places, and no copy."""
    pixels = torch.ones(1).expand(3)
    assert not alter({"args": (pixels,), "kwargs": {}}, [])
    assert not alter({"args": (3, "text"), "kwargs": {}}, [])

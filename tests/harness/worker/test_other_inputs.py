"""Whether a result follows its inputs: what is altered, and what is told from a rounding error."""

from __future__ import annotations

import pytest
import torch

from torchgauge.harness.worker.other_inputs import alter, unmoved
from torchgauge.records import Tolerance

TOLERANCE = Tolerance(1e-3, 1e-3, 2.0, "test")


def test_floating_point_values_are_halved_and_whole_numbers_stay() -> None:
    """Token ids beside pixels may be lengths or places."""
    pixels, lengths = torch.ones(2, 3), torch.tensor([[1, 2]])
    assert alter({"args": (pixels,), "kwargs": {"lengths": lengths}}, [pixels, lengths])
    assert (pixels.tolist(), lengths.tolist()) == ([[0.5] * 3] * 2, [[1, 2]])


def test_whole_numbers_alone_are_rolled() -> None:
    """Each is one that the model knows; offsets, of one dimension, keep their order."""
    tokens, offsets = torch.tensor([[1, 2, 3]]), torch.tensor([0, 4])
    assert alter({"args": (tokens, offsets), "kwargs": {}}, [tokens, offsets])
    assert (tokens.tolist(), offsets.tolist()) == ([[3, 1, 2]], [0, 4])


def test_what_cannot_be_put_back_is_left_alone() -> None:
    """An expanded tensor has one number in many places, and no copy."""
    pixels = torch.ones(1).expand(3)
    assert not alter({"args": (pixels,), "kwargs": {}}, [])
    assert not alter({"args": (3, "text"), "kwargs": {}}, [])


@pytest.mark.parametrize(
    ("eager", "found", "path"),
    [
        ((1.0, 2.0), (1.0, 2.0), ""),
        ((1.0, 2.0), (1.0, 1.0), "out"),
        ((1.0, 1.0), (1.0, 1.0), ""),
        ((1.0, 1.0001), (1.0, 1.0), ""),
        ((1.0, 2.0), (1.0, 1.0001), ""),
    ],
)
def test_only_what_stays_where_eager_moves_is_a_memory(eager, found, path) -> None:
    """To the bit: one that follows a little is the business of the tolerance."""
    both = [tuple({"out": torch.full((2,), value)} for value in pair) for pair in (eager, found)]
    assert unmoved(*both, TOLERANCE) == path


def test_other_shapes_and_other_things_are_not_compared() -> None:
    """What is not in both observations cannot have stayed."""
    eager = {"a": torch.zeros(2), "b": 1}, {"a": torch.ones(3), "b": 2}
    assert unmoved(eager, eager, TOLERANCE) == ""

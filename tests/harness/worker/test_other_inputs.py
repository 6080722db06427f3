"""Which values of inputs are altered, and which stay."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torchgauge.harness.worker.other_inputs import NewInputs, alter


def test_floating_point_values_are_exchanged_and_scaled() -> None:
    """A program that does not depend on the size of values depends on their order."""
    pixels = torch.arange(1.0, 65.0).reshape(2, 32)
    first = pixels.clone()
    assert alter({"args": (pixels,), "kwargs": {}}, [pixels], 1)
    places = pixels.argsort(-1)
    assert torch.equal(places[0], places[1])
    assert not torch.equal(places[0], torch.arange(32))
    factor = pixels.sum() / first.sum()
    assert 0.5 <= float(factor) <= 0.9
    assert torch.allclose(pixels.sort(-1).values, first * factor)


def test_half_of_the_elements_keep_their_values() -> None:
    """Code may compare one element, such as the first or the last; the others are exact in each dtype."""
    pixels, wide = torch.rand(8, 64), torch.empty(0)
    first, wide = pixels.clone(), pixels.double()
    assert alter((pixels,), [pixels], 7, half=True)
    assert alter((wide,), [wide], 7, half=True)
    kept = pixels == first
    assert kept.flatten()[[0, -1]].all()
    assert 0.4 < float(kept.float().mean()) < 0.6
    assert torch.equal(pixels.double(), wide)


def test_values_do_not_repeat() -> None:
    """A memory of thousands of entries holds none of the next values, of numbers or of a few tokens."""
    tokens, pixels = torch.randint(0, 8, (8, 8)), torch.rand(2, 8)
    inputs = [NewInputs(one, [one]) for one in (tokens, pixels)]
    seen = set()
    for _ in range(2000):
        assert all(one.renew() for one in inputs)
        seen |= {one.numpy().tobytes() for one in (tokens, pixels)}
    assert len(seen) == 4000


def test_integers_beside_floating_point_values_stay() -> None:
    """They may be offsets, lengths or indices."""
    pixels, tokens = torch.ones(2, 3), torch.tensor([[3, 1, 2]])
    assert alter({"args": (pixels,), "kwargs": {"ids": tokens}}, [pixels, tokens], 0)
    assert tokens.tolist() == [[3, 1, 2]]


@pytest.mark.parametrize("offsets", [[0, 4], [3, 1, 2], [[0, 1, 2]], [[3, 2, 1]]])
def test_integers_that_may_be_offsets_stay(offsets: list[Any]) -> None:
    """They are sorted, or have one dimension."""
    tensor = torch.tensor(offsets)
    assert not alter({"args": (tensor,), "kwargs": {}}, [tensor], 0)
    assert tensor.tolist() == offsets


def test_whole_numbers_alone_become_others_of_their_row() -> None:
    """The model accepts each of them; rows of one element take those of other rows, booleans stay as many."""
    tokens, column = torch.tensor([[1, 3, 2] * 20]), torch.tensor([[7], [9], [8]] * 20)
    mask = torch.tensor([[True, False] * 20])
    assert alter({"args": (tokens, column, mask), "kwargs": {}}, [tokens, column, mask], 3)
    assert set(tokens.flatten().tolist()) == {1, 2, 3}
    assert tokens.tolist() != [[1, 3, 2] * 20]
    assert set(column.flatten().tolist()) == {7, 8, 9}
    assert int(mask.sum()) == 20


def test_what_cannot_be_put_back_is_left_alone() -> None:
    """An expanded tensor has one number in many places, and no copy."""
    pixels = torch.ones(1).expand(3)
    assert not alter({"args": (pixels,), "kwargs": {}}, [], 0)
    assert not alter({"args": (3, "text"), "kwargs": {}}, [], 0)

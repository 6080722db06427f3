"""The accuracy rule gives the verdicts of PyTorch's own, but never passes a number that is none."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.torch
NONFINITE = {"nan in both", "infinity in both"}


@pytest.fixture(scope="session")
def verdicts(child):
    """Both rules over all pairs, from one child."""
    return child("child_accuracy.py")


def test_the_verdicts_are_those_of_pytorch(verdicts) -> None:
    """Over more than a thousand random pairs near the border, ours and PyTorch's verdicts are equal."""
    assert verdicts["pairs"] > 1000
    assert 0.2 < verdicts["passed"] / verdicts["pairs"] < 0.8
    assert verdicts["differences"] == []


def test_special_values_are_judged_alike(verdicts) -> None:
    """Structure, shape, dtype, integers and empty tensors are judged as PyTorch judges them."""
    for name, (ours, theirs) in verdicts["special"].items():
        if name not in NONFINITE:
            assert ours == theirs, name


def test_a_nonfinite_result_passes_where_the_reference_has_it(verdicts) -> None:
    """Eager itself is refused before, where it differs from float64."""
    for name in NONFINITE:
        assert verdicts["special"][name] == [True, True], name
    assert verdicts["special"]["nan in the result"] == [False, False]


def test_a_reference_that_overflowed_has_no_distance(verdicts) -> None:
    """An infinite error is no number and is left out, so that the row can be written."""
    assert verdicts["overflow"]["max_abs_error"] is None
    assert verdicts["overflow"]["rmse"] == 0.0
    assert verdicts["overflow"]["rmse_eager"] is None

"""Two results agree exactly where PyTorch's tolerances say so."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torchgauge.suites.ops.closeness import Tolerances, difference, of_partials  # noqa: E402  torch first
from torchgauge.suites.ops.input_changes import wrongly_changed  # noqa: E402

DEFAULT = Tolerances()


@pytest.mark.parametrize(
    ("actual", "expected", "words"),
    [
        (torch.ones(2), torch.ones(2) + 1e-7, ""),
        (torch.ones(2), torch.tensor([1.0, 1.1]), "1 of 2 values differ"),
        (torch.tensor(float("nan")), torch.tensor(float("nan")), ""),
        (torch.tensor(float("nan")), torch.tensor(1.0), "1 of 1 values differ"),
        (torch.ones(2, dtype=torch.float64), torch.ones(2), "torch.float64 where the host has torch.float32"),
        (torch.tensor([3]), torch.tensor([4]), "largest difference 1"),
        ((torch.ones(1), torch.ones(1)), (torch.ones(1), torch.zeros(1)), "[1]: 1 of 1"),
        (3, 4, "3 where the host has 4"),
        (torch.ones(1), None, "a Tensor where the host has a NoneType"),
        (torch.eye(2).to_sparse(), torch.eye(2), "layout torch.sparse_coo"),
    ],
)
def test_what_differs_first_is_said(actual, expected, words: str) -> None:
    """Values, shapes, dtypes, layouts and structure are compared; an empty text means that all agree."""
    found = difference(actual, expected, DEFAULT)
    assert (words in found) if words else found == ""


def test_a_wide_reference_may_differ_in_width_only() -> None:
    """float64 beside bfloat16 is judged at bfloat16's tolerance; an integer beside it is another kind."""
    third = torch.full((4,), 1 / 3, dtype=torch.float64)
    assert difference(third.bfloat16(), third, DEFAULT, wide=True) == ""
    assert difference((third * 1.1).bfloat16(), third, DEFAULT, wide=True)
    assert difference(torch.ones(4, dtype=torch.int64), torch.ones(4), DEFAULT, wide=True)


@pytest.mark.parametrize("dtype", [torch.complex32, torch.float8_e4m3fn, torch.float8_e5m2])
@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_dtypes_with_few_operators_are_judged(dtype: torch.dtype) -> None:
    """PyTorch does not compare them itself: a change of an input is found, and an equal one passes."""
    ones, zeros = torch.ones(2, 2).to(dtype), torch.zeros(2, 2).to(dtype)
    assert wrongly_changed([ones], [ones.clone()], [ones.clone()]) == ""
    assert wrongly_changed([ones], [zeros], [ones]).startswith("the operator changes input tensor 0")
    assert wrongly_changed([ones], [ones], [zeros]).startswith("the operator does not change input")
    assert of_partials((ones, zeros), torch.float16) == pytest.approx(2**-10 * 2**0.5)
    assert difference(ones, ones.clone(), DEFAULT) == ""
    assert "4 of 4 values differ" in difference(ones, zeros, DEFAULT)

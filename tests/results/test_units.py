"""Numbers as text."""

from __future__ import annotations

import pytest

from torchgauge.results import units


@pytest.mark.parametrize(
    ("value", "low", "high", "unit", "text"),
    [
        (0.0123, 0.0121, 0.0126, "s", "12.3 ms [12.1, 12.6]"),
        (0.01234, 0.012339, 0.012341, "s", "12.340 ms [12.339, 12.341]"),
        (1.31, 1.2, 1.4, "ratio", "1.31x [1.20, 1.40]"),
        (1.31, None, 1.4, "ratio", "1.31x"),
        (2.5e-6, None, None, "s", "2.50 µs"),
        (3 * 2.0**20, None, None, "B", "3.00 MiB"),
        (1.42e11, None, None, "FLOP/s", "142 GFLOP/s"),
        (0.0, None, None, "count", "0"),
        (2.5, None, None, "count", "2.50"),
        (0.0, None, None, "s", "0.00 s"),
        (7.0, None, None, "widgets", "7.00 widgets"),
    ],
)
def test_numbers_get_a_readable_unit_and_enough_digits(
    value: float, low: float | None, high: float | None, unit: str, text: str
) -> None:
    """The interval decides how many digits there are, between three and six."""
    assert units.interval(value, low, high, unit) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.9123, "s", "about 1.9 s"),
        (0.1234, "s", "about 120 ms"),
        (12_345.0, "1/s", "about 12,000 1/s"),
        (57.31, "ratio", "about 57x"),
        (0.0, "s", "about 0.0 s"),
    ],
)
def test_a_number_in_doubt_has_two_digits(value: float, unit: str, text: str) -> None:
    """More would pretend to know it."""
    assert units.rough(value, unit) == text
    assert units.told(value, unit, True) == text
    assert units.told(value, unit, False) == units.quantity(value, unit)


def test_a_number_smaller_than_its_decimals_is_not_written_as_zeros() -> None:
    """The divergence of a right result is some 1e-14, which twelve decimals would show as none."""
    assert units.quantity(3.21e-14, "nat") == "3.21e-14 nat"
    assert units.interval(3.21e-14, 1e-14, 4e-14, "nat") == "3.21e-14 nat [1e-14, 4e-14]"
    assert units.quantity(0.0, "nat") == "0.00 nat"
    assert units.quantity(2e-12, "s") == "0.00200 ns"

"""From what a person names to the cells of a matrix."""

from __future__ import annotations

import sys

import pytest

from torchgauge.errors import UsageError
from torchgauge.harness.matrix.cells import cells_of

HERE = f"mine={sys.executable}"


def labels(*given: object, **more: object) -> list[str]:
    return [cell.label for cell in cells_of(*given, **more)]  # type: ignore[arg-type]


def test_axes_are_combined_and_builds_come_after_them():
    """A label names the axes that have several versions; one version for all is no label."""
    assert labels({"torch": ("2.12.1", "2.13.0"), "timm": ("1.0.9",)}, ()) == ["2.12.1", "2.13.0"]
    assert labels({"torch": ("2.12.1", "2.13.0"), "timm": ("1.0.9", "1.0.31")}, (HERE,)) == [
        "torch 2.12.1, timm 1.0.9", "torch 2.12.1, timm 1.0.31",
        "torch 2.13.0, timm 1.0.9", "torch 2.13.0, timm 1.0.31", "mine",
    ]  # fmt: skip
    assert labels({"torch": ("2.13.0",), "timm": ("1.0.9", "1.0.31")}, ()) == ["timm 1.0.9", "timm 1.0.31"]


def test_what_is_named_twice_is_measured_again():
    """An A/A cell has the same interpreter and a label of its own."""
    cells = cells_of({"torch": ("2.13.0", "2.13.0", "2.13.0")}, ())
    assert [cell.label for cell in cells] == ["2.13.0", "2.13.0 (again)", "2.13.0 (again 2)"]
    assert {cell.pins for cell in cells} == {(("torch", "2.13.0"),)}


def test_the_baseline_comes_first():
    """Others keep their order."""
    assert labels({"torch": ("2.11.0", "2.12.1", "2.13.0")}, (), "2.13.0") == ["2.13.0", "2.11.0", "2.12.1"]


@pytest.mark.parametrize(
    ("axes", "builds", "baseline", "said"),
    [
        ({"torch": ("2.13.0",)}, (), "", "two cells or more, here is one"),
        ({}, (), "", "here are none"),
        ({"timm": ("1.0.9", "1.0.31")}, (), "", "none of torch"),
        ({"torch": ("latest", "2.13.0")}, (), "", "'latest' is not a version"),
        ({"torch": ("2.*", "2.13.0")}, (), "", "is not a version"),
        ({"torch": ("2.13.0", "--upgrade")}, (), "", "is not a version"),
        ({"torch": ("2.4.1", "2.13.0")}, (), "", "older than 2.5"),
        ({"torch": ("2.12.1", "2.13.0")}, (), "2.9", "unknown cell '2.9'"),
        ({"torch": ("2.13.0",)}, ("mine",), "", "--python 'mine' is not a build"),
        ({"torch": ("2.13.0",)}, ("mine=/no/such/python",), "", "--python mine=/no/such/python"),
        ({"torch": ("2.13.0", "2.12.1")}, (f"2.13.0={sys.executable}",), "", "two builds are called"),
    ],
)
def test_mistakes_are_refused(axes, builds, baseline, said):
    """What is wrong, and what to type."""
    with pytest.raises(UsageError) as raised:
        cells_of(axes, builds, baseline)
    assert said in str(raised.value)

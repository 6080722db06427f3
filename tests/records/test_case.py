"""The three keys of a number: how they are told apart and put in order."""

from __future__ import annotations

from torchgauge.records import Workload


def test_sizes_are_ordered_as_numbers() -> None:
    """A sweep reads from small to large; words have the order of text, and both may stand on one axis."""
    found = [Workload("s", "m", shape=(("n", value),)) for value in (1024, "b", 128, 4096, "a")]
    assert [dict(each.shape)["n"] for each in sorted(found)] == [128, 1024, 4096, "a", "b"]

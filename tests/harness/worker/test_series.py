"""Which samples of a series count: those that others left alone, as long as they are enough."""

from __future__ import annotations

from torchgauge.harness.worker.series import CONTENDED, Block, Series


def series_of(*contention: float | None, device: bool = True) -> Series:
    """A series whose block of round n took n seconds, n / 10 of the CPU and n / 100 of the device."""
    series = Series("a", lambda: None)
    for number, share in enumerate(contention, start=1):
        series.add(Block(number, number / 10, number / 100 if device else None), number, share)
    return series


def test_contended_blocks_stand_apart() -> None:
    """Six clean blocks have an interval, so the others do not count; nothing of either is lost."""
    series = series_of(0.0, 0.5, 0.0, CONTENDED, 1.0, 0.01, 0.0, 0.0)
    series.settle(0.95)
    assert series.rounds == [1, 3, 4, 6, 7, 8]
    assert series.wall == [1, 3, 4, 6, 7, 8]
    assert {number: block.wall for number, block in series.contended.items()} == {2: 2, 5: 5}
    assert list(series.contention.values()) == [0.0, 0.5, 0.0, CONTENDED, 1.0, 0.01, 0.0, 0.0]


def test_they_count_in_their_order_where_the_clean_ones_are_too_few() -> None:
    """Five clean blocks have no interval: a number of a busy machine is better than none, and says so."""
    series = series_of(0.0, 0.5, 0.0, 0.4, 1.0, 0.01, 0.0, 0.0, 0.9)
    series.wall.pop()
    for column in (series.cpu, series.device, series.rounds):
        column.pop()
    series.settle(0.95)
    assert series.rounds == [1, 2, 3, 4, 5, 6, 7, 9]
    assert series.cpu == [number / 10 for number in series.rounds]
    assert series.device == [number / 100 for number in series.rounds]
    assert not series.contended


def test_blocks_with_a_lower_clock_stand_apart_and_are_told() -> None:
    """They count where the others are too few, and the facts say how many do."""
    series = series_of(*[0.0] * 6)
    series.add(Block(70.0, 7.0, None, "thermal"), 7, 1.0)
    series.settle(0.95)
    assert series.rounds == [1, 2, 3, 4, 5, 6]
    said = {"throttled_blocks": 1, "throttled_for": "thermal", "throttled_step_s": 70.0}
    assert series.throttling() == {**said, "throttled_counted": 0}
    few = series_of(0.0, device=False)
    few.add(Block(70.0, 7.0, None, "thermal"), 2)
    few.settle(0.95)
    assert few.rounds == [1, 2]
    assert few.throttling() == {**said, "throttled_counted": 1}
    assert series_of(0.0).throttling() == {}

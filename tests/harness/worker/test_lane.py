"""Which samples of a lane count: those that others left alone, as long as they are enough."""

from __future__ import annotations

from torchgauge.harness.worker.lane import CONTENDED, Block, Lane


def lane_of(*contention: float | None, device: bool = True) -> Lane:
    """A lane whose block of round n took n seconds, n / 10 of the CPU and n / 100 of the device."""
    lane = Lane("a", lambda: None)
    for number, share in enumerate(contention, start=1):
        lane.add(Block(number, number / 10, number / 100 if device else None), number, share)
    return lane


def test_contended_blocks_stand_apart() -> None:
    """Six clean blocks have an interval, so the others do not count; nothing of either is lost."""
    lane = lane_of(0.0, 0.5, 0.0, CONTENDED, 1.0, 0.01, 0.0, 0.0)
    lane.settle(0.95)
    assert lane.rounds == [1, 3, 4, 6, 7, 8]
    assert lane.wall == [1, 3, 4, 6, 7, 8]
    assert {number: block.wall for number, block in lane.contended.items()} == {2: 2, 5: 5}
    assert list(lane.contention.values()) == [0.0, 0.5, 0.0, CONTENDED, 1.0, 0.01, 0.0, 0.0]


def test_they_count_in_their_order_where_the_clean_ones_are_too_few() -> None:
    """Five clean blocks have no interval: a number of a busy machine is better than none, and says so."""
    lane = lane_of(0.0, 0.5, 0.0, 0.4, 1.0, 0.01, 0.0, 0.0, 0.9)
    lane.wall.pop()
    for column in (lane.cpu, lane.device, lane.rounds):
        column.pop()
    lane.settle(0.95)
    assert lane.rounds == [1, 2, 3, 4, 5, 6, 7, 9]
    assert lane.cpu == [number / 10 for number in lane.rounds]
    assert lane.device == [number / 100 for number in lane.rounds]
    assert not lane.contended


def test_a_device_without_events_stays_without() -> None:
    """Counting contended blocks invents no event time."""
    lane = lane_of(0.5, 0.0, device=False)
    lane.settle(0.95)
    assert (lane.wall, lane.device) == ([1, 2], [])


def test_where_nobody_counts_every_block_does() -> None:
    """No contention is known, so none is stored and no block is left out."""
    lane = lane_of(None, None)
    lane.settle(0.95)
    assert (lane.wall, lane.contention, lane.contended) == ([1, 2], {}, {})

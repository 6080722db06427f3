"""What is noted of each step, and what is refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from torchgauge.devices.fake import FakeEventTimer, FakeSession
from torchgauge.harness.ab.recorder import StepRecorder
from torchgauge.harness.worker.run_queue import RunQueue
from torchgauge.harness.worker.timing import Clocks


class Session(FakeSession):
    """A fake session with or without events, on the host or not."""

    def __init__(self, event_s: float | None = None, kind: str | None = None) -> None:
        super().__init__()
        self.event_s, self.kind, self.waited = event_s, kind, 0

    @property
    def torch_device(self) -> SimpleNamespace | None:
        return None if self.kind is None else SimpleNamespace(type=self.kind)

    def synchronize(self) -> None:
        self.waited += 1

    def event_timer(self) -> FakeEventTimer | None:
        if self.event_s is None:
            return None
        timer = FakeEventTimer()
        timer.elapsed_s = lambda: self.event_s  # type: ignore[method-assign,assignment,return-value]
        return timer


def ticks(*readings: int) -> Iterator[int]:
    return iter(readings)


def recorder(session: Session, wall: Iterator[int], cpu: Iterator[int] | None = None) -> StepRecorder:
    clocks = Clocks(lambda: next(wall), (lambda: 0) if cpu is None else lambda: next(cpu))
    return StepRecorder(lambda: None, session, clocks)


def test_each_step_of_the_host_has_its_own_times() -> None:
    """In seconds, to the nanosecond; the device's time is the block's, shared evenly."""
    session = Session(event_s=0.006)
    found = recorder(session, ticks(0, 1_000_000, 5_000_000, 7_000_001), ticks(0, 500, 1000, 2000)).block(2)
    assert found.wall == [0.001, 0.002000001]
    assert found.cpu == [5e-7, 1e-6]
    assert found.device == [0.003, 0.003]
    assert {len(found.switches), len(found.delay)} <= {0, 2}
    assert all(value >= 0 for value in (*found.delay, *found.switches))


@pytest.mark.parametrize("after", [1_000, 400], ids=["stood", "went back"])
def test_a_step_whose_clock_does_not_advance_is_refused_and_counted(after: int) -> None:
    """Never a time of zero or less; the step beside it stays."""
    found = recorder(Session(), ticks(1_000, after, 2_000, 3_000)).block(2)
    assert (found.wall, found.refused) == ([1e-6], 1)
    assert len(found.cpu) == 1
    assert len(found.delay) in (0, 1)


def test_cpu_time_that_goes_back_is_refused_as_well() -> None:
    """The wall time beside it cannot be trusted either."""
    found = recorder(Session(), ticks(0, 10), ticks(100, 50)).block(1)
    assert (found.wall, found.refused) == ([], 1)


def test_an_asynchronous_device_is_waited_for_around_a_block_only() -> None:
    """Its steps carry the mean of the block."""
    session = Session(kind="accelerator")
    found = recorder(session, ticks(0, 4_000_000), ticks(0, 400)).block(4)
    assert found.wall == [0.001] * 4
    assert found.cpu == [1e-7] * 4
    assert found.device == []
    assert session.waited == 2


@pytest.mark.parametrize("event_s", [0.0, -1.0, float("nan")])
def test_an_event_time_that_is_none_refuses_the_block(event_s: float) -> None:
    """A broken event would otherwise become the estimate."""
    found = recorder(Session(event_s=event_s), ticks(0, 10, 20, 30)).block(2)
    assert (found.wall, found.refused) == ([], 2)


def test_a_step_that_raises_is_not_swallowed() -> None:
    """It becomes the case's status further up."""

    def broken() -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        StepRecorder(broken, Session()).block(1)


@pytest.mark.parametrize(("steps", "readings"), [(80, 82), (81, 2)], ids=["50 us", "shorter"])
def test_steps_of_a_block_decide_how_often_the_run_queue_is_read(
    steps: int, readings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both sides have as many, however long the steps of either were while it warmed up."""
    count = itertools.count()
    monkeypatch.setattr(RunQueue, "known", True)
    monkeypatch.setattr(RunQueue, "read_ns", lambda _: next(count))
    StepRecorder(lambda: None, Session()).block(steps)
    assert next(count) == readings

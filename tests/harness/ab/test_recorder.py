"""What is noted of each step, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from torchgauge.devices.fake import FakeEventTimer, FakeSession
from torchgauge.harness.ab.recorder import StepRecorder
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


@pytest.mark.parametrize("after", [1_000, 400], ids=["stood", "went back"])
def test_a_step_whose_clock_does_not_advance_is_refused_and_counted(after: int) -> None:
    """Never a time of zero or less; the step beside it stays."""
    found = recorder(Session(), ticks(1_000, after, 2_000, 3_000)).block(2)
    assert (found.wall, found.refused) == ([1e-6], 1)
    assert len(found.cpu) == 1
    assert len(found.delay) in (0, 1)


@pytest.mark.parametrize("event_s", [0.0, -1.0, float("nan")])
def test_an_event_time_that_is_none_refuses_the_block(event_s: float) -> None:
    """A broken event would otherwise become the estimate."""
    found = recorder(Session(event_s=event_s), ticks(0, 10, 20, 30)).block(2)
    assert (found.wall, found.refused) == ([], 2)

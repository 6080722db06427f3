"""Blocks, warm-up and interleaved rounds, timed with the real clock on the fake device."""

from __future__ import annotations

import gc
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from torchgauge.devices.fake import FakeEventTimer, FakeSession
from torchgauge.harness.worker import timing
from torchgauge.harness.worker.contention import Contention
from torchgauge.harness.worker.run_queue import RunQueue
from torchgauge.harness.worker.series import Series
from torchgauge.harness.worker.timing import measure, time_block, warm_up
from torchgauge.records import RunSettings

SETTINGS = RunSettings(
    measure_budget_s=0.2, warmup_budget_s=0.2, min_blocks=6, max_blocks=50, min_block_s=1e-5
)


@pytest.fixture(autouse=True)
def nobody_counts_waiting(monkeypatch, tmp_path: Path) -> None:
    """What else this machine does decides nothing here."""
    monkeypatch.setattr(timing, "Contention", partial(Contention, RunQueue(tmp_path / "nowhere")))


class Listener(FakeSession):
    """A fake device that writes down when it is synchronised."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    def synchronize(self) -> None:
        self.heard.append("sync")


def series(key: str = "a", step=lambda: None, **fields) -> Series:
    """A series that does nothing unless it is told."""
    return Series(key, step, **fields)


def test_a_block_is_synchronised_before_and_after() -> None:
    """All steps of a block lie between two synchronisations."""
    session = Listener()
    block = time_block(lambda: session.heard.append("step"), 3, session)
    assert session.heard == ["sync", "step", "step", "step", "sync"]
    assert block.device is None


def test_a_block_gives_seconds_per_step() -> None:
    """Wall and event time are divided by the number of steps; sleeping takes no CPU time."""
    began = time.perf_counter()
    block = time_block(lambda: time.sleep(0.004), 5, FakeSession(), FakeEventTimer())
    a_fifth = (time.perf_counter() - began) / 5
    assert 0.004 <= block.wall <= a_fifth
    assert 0.004 <= block.device <= a_fifth
    assert block.cpu < 0.004


class ScriptedTime:
    """The clocks that timing reads; only ``pass_`` moves them."""

    def __init__(self) -> None:
        self.ns = 0

    def pass_(self, seconds: float) -> None:
        self.ns += round(seconds * 1e9)

    def perf_counter(self) -> float:
        return self.ns * 1e-9

    def perf_counter_ns(self) -> int:
        return self.ns

    process_time_ns = perf_counter_ns


def test_warm_up_ends_when_times_no_longer_fall(monkeypatch) -> None:
    """Steps that get faster are warmed up until they have stopped doing so."""
    calls = []
    clock = ScriptedTime()
    monkeypatch.setattr(timing, "time", clock)

    def step() -> None:
        calls.append(None)
        clock.pass_(max(0.001, 0.02 * 0.7 ** len(calls)))

    one = series(step=step)
    warm_up(one, FakeSession(), replace(SETTINGS, warmup_budget_s=5.0))
    assert one.warmup == "steady"
    assert len(calls) > 10


def test_blocks_of_an_accelerator_hide_its_late_first_kernel(monkeypatch) -> None:
    """The first kernel after a synchronisation is late, which must not lengthen a step by half a percent."""
    clock, late_s, step_s = ScriptedTime(), 8e-5, 3e-4

    class Accelerator(FakeSession):
        """An accelerator whose first kernel after a synchronisation is late."""

        @property
        def torch_device(self) -> SimpleNamespace:
            """Return a device whose type is not the host's."""
            return SimpleNamespace(type="accelerator")

        def synchronize(self) -> None:
            """Let the next kernel be late."""
            nonlocal idle
            idle = True

    def step() -> None:
        nonlocal idle
        clock.pass_(step_s + (late_s if idle else 0.0))
        idle = False

    idle = True
    monkeypatch.setattr(timing, "time", clock)
    one = series(step=step)
    warm_up(one, Accelerator(), SETTINGS)
    assert time_block(one.step, one.inner, Accelerator()).wall == pytest.approx(step_s, rel=0.005)


def test_rounds_interleave_in_random_order() -> None:
    """Every round runs each series once, in an order that changes and that the seed fixes."""

    def order(seed: int) -> list[str]:
        seen: list[str] = []
        all_series = [series(name, lambda name=name: seen.append(name)) for name in "abc"]
        settings = replace(SETTINGS, order_seed=seed, max_blocks=20, min_blocks=20, measure_budget_s=5.0)
        measure(all_series, FakeSession(), settings)
        assert all(each.rounds == list(range(20)) for each in all_series)
        return seen

    first = order(0)
    assert first[3::2] == first[4::2]  # from the second round on, each block begins with an untimed step
    blocks = first[:3] + first[3::2]
    rounds = ["".join(blocks[n : n + 3]) for n in range(0, len(blocks), 3)]
    assert all(sorted(each) == list("abc") for each in rounds)
    assert len(set(rounds)) > 2
    assert order(0) == first
    assert order(1) != first


@pytest.mark.parametrize(
    ("changes", "reason", "blocks"),
    [
        ({"precision_target": 1e-12, "max_blocks": 5}, "max_blocks", 5),
        ({"precision_target": 1e-12, "measure_budget_s": 0.0, "max_blocks": 10**6}, "budget", 3),
    ],
)
def test_measuring_says_why_it_stopped(changes, reason, blocks) -> None:
    """Most blocks taken or budget spent: never fewer than three rounds."""
    one = series(step=lambda: time.sleep(0.001))
    assert measure([one], FakeSession(), replace(SETTINGS, **changes)) == reason
    assert len(one.wall) == blocks == len(one.cpu) == len(one.device)


@pytest.mark.parametrize(("step_s", "lead"), [(0.0, 1), (0.06, 0)])
def test_a_short_block_begins_with_an_untimed_step(step_s: float, lead: int) -> None:
    """It runs before the block is synchronised and timed; a long block needs none."""
    session = Listener()

    def step() -> None:
        session.heard.append("step")
        time.sleep(step_s)

    measure([series(step=step)], session, replace(SETTINGS, max_blocks=3, precision_target=1e-12))
    block = ["sync", "step", "sync"]
    assert session.heard == block + 2 * (lead * ["step"] + block)


def test_precision_ends_the_rounds() -> None:
    """A target that anything meets is met at the first checks, long before the budget or the most blocks."""
    one = series(step=lambda: time.sleep(0.001))
    settings = replace(SETTINGS, precision_target=1e6, measure_budget_s=120.0, max_blocks=10**6)
    assert measure([one], FakeSession(), settings) == "precision"
    assert len(one.wall) >= settings.min_blocks


def test_a_series_that_raises_leaves_the_others_alone() -> None:
    """Its exception is kept, its samples stop, and the other series is measured to the end."""
    calls = []

    def step() -> None:
        calls.append(None)
        if len(calls) > 3:  # one block of one step, and one after an untimed step
            raise ValueError("once too often")

    good, bad = series("good"), series("bad", step)
    assert (
        measure([good, bad], FakeSession(), replace(SETTINGS, max_blocks=8, precision_target=1e-12))
        != "failed"
    )
    assert isinstance(bad.failed, ValueError)
    assert (len(bad.wall), good.failed) == (2, None)
    assert len(good.wall) > 2


def test_the_collector_rests_while_measuring() -> None:
    """Python's cyclic garbage collector is off during the rounds and on again afterwards."""
    seen = []
    measure(
        [series(step=lambda: seen.append(gc.isenabled()))], FakeSession(), replace(SETTINGS, max_blocks=3)
    )
    assert not any(seen)
    assert gc.isenabled()

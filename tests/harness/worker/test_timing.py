"""Blocks, warm-up and interleaved rounds, timed with the real clock on the fake device."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from torchgauge.devices.fake import FakeEventTimer, FakeSession
from torchgauge.harness.worker import timing
from torchgauge.harness.worker.contention import Contention
from torchgauge.harness.worker.rounds import LONGEST_REST_S, VISITS
from torchgauge.harness.worker.run_queue import RunQueue
from torchgauge.harness.worker.series import Series
from torchgauge.harness.worker.timing import SETTLING_S, measure, steps_per_block, time_block, warm_up
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


class Eventless(FakeSession):
    """A device without events."""

    def event_timer(self) -> None:
        return None


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


@pytest.mark.parametrize(
    ("step_s", "block_s", "steps"),
    [(1.0, 0.002, 1), (0.002, 0.002, 1), (0.0005, 0.002, 5), (0.0, 1.0, 1_000_000)],
)
def test_short_steps_share_a_block(step_s, block_s, steps) -> None:
    """As many steps as last the block's length at least, and no more than a million."""
    assert steps_per_block(step_s, block_s) == steps


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


def test_warm_up_ends_with_its_budget(monkeypatch) -> None:
    """A step that keeps getting faster stops the warm-up by the clock, and the series says so."""
    clock, pause = ScriptedTime(), iter(0.02 * 0.9**n for n in range(1000))
    monkeypatch.setattr(timing, "time", clock)
    one = series(step=lambda: clock.pass_(next(pause)))
    warm_up(one, FakeSession(), replace(SETTINGS, warmup_budget_s=0.05))
    assert one.warmup == "budget"


def test_warm_up_sizes_the_block(monkeypatch) -> None:
    """Afterwards a block of the series lasts at least the least block."""
    clock = ScriptedTime()
    monkeypatch.setattr(timing, "time", clock)
    one = series(step=lambda: clock.pass_(0.0003))
    settings = replace(SETTINGS, min_block_s=0.002)
    warm_up(one, FakeSession(), settings)
    wall = time_block(one.step, one.inner, FakeSession()).wall * one.inner
    assert settings.min_block_s <= wall < 2 * settings.min_block_s


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
    rounds = ["".join(first[n : n + 3]) for n in range(0, len(first), 3)]
    assert all(sorted(each) == list("abc") for each in rounds)
    assert len(set(rounds)) > 2
    assert order(0) == first
    assert order(1) != first


def test_the_series_is_pointed_at_before_it_runs() -> None:
    """Whoever watches knows which series' steps run, also when they kill the process."""
    seen: list[str] = []

    @contextmanager
    def running(name: str) -> Iterator[None]:
        seen.append(name.upper())
        yield

    all_series = [series(n, lambda n=n: seen.append(n), running=partial(running, n)) for n in "ab"]
    measure(all_series, FakeSession(), replace(SETTINGS, max_blocks=3))
    assert all(seen[n] == seen[n + 1].upper() for n in range(0, len(seen), 2))


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
        if len(calls) > 2:
            raise ValueError("once too often")

    good, bad = series("good"), series("bad", step)
    assert (
        measure([good, bad], FakeSession(), replace(SETTINGS, max_blocks=8, precision_target=1e-12))
        != "failed"
    )
    assert isinstance(bad.failed, ValueError)
    assert (len(bad.wall), good.failed) == (2, None)
    assert len(good.wall) > 2


class Absent(Contention):
    """A machine whose others are let in: how often and for how long."""

    def leave(self, seconds: float) -> None:
        self.left = [*getattr(self, "left", []), seconds]


def test_short_steps_are_visited_several_times(tmp_path: Path, monkeypatch) -> None:
    """Between the visits the machine is left; blocks of a twentieth of a second are no samples then."""
    clock, ran, watched = ScriptedTime(), [], Absent(RunQueue(tmp_path / "nowhere"))
    monkeypatch.setattr(timing, "time", clock)
    lasting = itertools.cycle((0.010, 0.011))
    one = series(step=lambda: ran.append(clock.pass_(next(lasting))))
    settings = replace(SETTINGS, measure_budget_s=2.0, max_blocks=2000, precision_target=1e-12)
    assert measure([one], FakeSession(), settings, contention=watched) == "budget"
    assert len(watched.left) == VISITS - 1
    assert all(0.0 < seconds <= LONGEST_REST_S - SETTLING_S for seconds in watched.left)
    assert len(ran) == len(one.wall) + 5 * len(watched.left)


def test_a_settled_slow_step_is_warmed_up_once() -> None:
    """Each further one would cost a sample; a compiled one may compile again in the first."""
    for settled, blocks in ((True, 1), (False, 2)):
        ran: list[None] = []
        one = series(step=lambda ran=ran: ran.append(time.sleep(0.03)), settled=settled)
        warm_up(one, FakeSession(), replace(SETTINGS, warmup_budget_s=0.02))
        assert len(ran) == blocks
        assert one.warmup == "budget"


def test_slow_blocks_are_compared_two_by_two(monkeypatch) -> None:
    """Where forty do not fit into the budget, four are enough to see that times no longer fall."""
    for step_s, blocks in ((0.1, 4), (0.01, 8)):
        clock, ran = ScriptedTime(), []
        monkeypatch.setattr(timing, "time", clock)
        one = series(step=lambda s=step_s, c=clock, r=ran: r.append(c.pass_(s)))
        warm_up(one, FakeSession(), replace(SETTINGS, warmup_budget_s=2.0))
        assert (one.warmup, len(ran)) == ("steady", 1 + blocks)


def test_nothing_is_left_to_measure() -> None:
    """When every series has raised, measuring ends and says so."""

    def step() -> None:
        raise ValueError

    assert measure([series(step=step)], FakeSession(), SETTINGS) == "failed"


def test_the_collector_rests_while_measuring() -> None:
    """Python's cyclic garbage collector is off during the rounds and on again afterwards."""
    seen = []
    measure(
        [series(step=lambda: seen.append(gc.isenabled()))], FakeSession(), replace(SETTINGS, max_blocks=3)
    )
    assert not any(seen)
    assert gc.isenabled()


def test_a_device_without_events_has_no_device_time() -> None:
    """Wall and CPU samples are there, device samples are not."""
    one = series()
    measure([one], Eventless(), replace(SETTINGS, max_blocks=4))
    assert one.wall
    assert one.device == []

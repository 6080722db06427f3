"""What others take of a measurement's cores: counted for each block, and kept apart where it is much."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from torchgauge.devices.cpu_times import CpuTimes
from torchgauge.harness.worker import contention
from torchgauge.harness.worker.contention import Contention
from torchgauge.harness.worker.run_queue import RunQueue

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts who waits for a core")


@contextmanager
def busy_neighbour_on_our_core() -> Iterator[None]:
    """This process and one that never rests share one core until the end."""
    mine = os.sched_getaffinity(0)
    core = {min(mine)}
    spin = f"import os; os.sched_setaffinity(0, {core})\nprint(flush=True)\nwhile True: pass"
    neighbour = subprocess.Popen([sys.executable, "-c", spin], stdout=subprocess.PIPE)
    try:
        assert neighbour.stdout is not None
        neighbour.stdout.readline()  # it spins from here on
        os.sched_setaffinity(0, core)
        yield
    finally:
        os.sched_setaffinity(0, mine)
        neighbour.kill()
        neighbour.communicate()


def work(seconds: float) -> None:
    """Use a core until ``seconds`` have passed."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


@ON_LINUX
def test_a_neighbour_on_our_core_is_seen_in_blocks_and_on_the_machine() -> None:
    """A process that shares its one core waits for it for a good part of each block of some length."""
    with busy_neighbour_on_our_core(), Contention() as watch:
        watch.begin_block()
        work(0.5)
        share, facts = watch.end_block(), watch.facts()
    assert share is not None
    assert 0.2 < share <= 1.0
    assert isinstance(facts["load_1min"], float)
    assert isinstance(facts["others_cores"], float)
    assert facts["others_cores"] > 0.2
    assert facts["stolen_share"] >= 0.0


@ON_LINUX
def test_a_thread_that_sleeps_wants_no_core() -> None:
    """What nobody asked for cannot be taken: a sleeping process has hardly any contention."""
    with busy_neighbour_on_our_core(), Contention() as watch:
        watch.begin_block()
        time.sleep(2.0)  # long beside the wait of one wake-up
        assert watch.end_block() < 0.2


def queue_of(folder: Path, **waited_ns: int) -> RunQueue:
    """The queue of threads that have waited so long."""
    for name, waited in waited_ns.items():
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "schedstat").write_text(f"100 {waited} 7\n")
    return RunQueue(folder)


def test_waiting_before_a_block_is_not_counted_and_a_share_is_at_most_one(tmp_path: Path) -> None:
    """What waited before the block is its own past; what the clock missed is no more than the block."""
    clock = iter((1_000, 2_000, 3_000, 3_001))
    watch = Contention(queue_of(tmp_path, a=9_000), lambda: next(clock))
    watch.begin_block()
    assert watch.end_block() == 0.0
    watch.begin_block()
    queue_of(tmp_path, a=9_500).close()
    assert watch.end_block() == 1.0


def test_what_this_process_did_is_taken_off_what_the_machine_did(monkeypatch) -> None:
    """Two CPUs in one second: 1.5 worked, 0.2 more were stolen, and 0.9 of the work was ours."""
    seen = iter((CpuTimes(1000, 900, 0), CpuTimes(1200, 930, 20)))
    monkeypatch.setattr(CpuTimes, "read", lambda: next(seen))
    monkeypatch.setattr(contention, "allowed_cpus", lambda: frozenset({0, 1}))
    monkeypatch.setattr(contention, "throttled_s", iter((2.0, 2.25)).__next__)
    monkeypatch.setattr(contention, "time", Clock())
    facts = Contention(RunQueue(Path("nowhere"))).facts()
    assert (facts["others_cores"], facts["stolen_share"], facts["throttled_share"]) == (0.6, 0.1, 0.25)


class Clock:
    """The clocks that are read at the beginning and at the end."""

    def __init__(self) -> None:
        self.perf_counter = iter((5.0, 6.0)).__next__
        self.process_time = iter((0.1, 1.0)).__next__

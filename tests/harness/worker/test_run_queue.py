"""Waiting for a core, summed over threads that come and go."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from torchgauge.harness.worker.run_queue import RunQueue


def task(folder: Path, name: str, waited: int) -> None:
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "schedstat").write_text(f"100 {waited} 7\n")


def test_threads_are_summed_and_new_ones_join_at_a_refresh(tmp_path: Path) -> None:
    """The second of the three numbers of each thread."""
    task(tmp_path, "1", 10)
    task(tmp_path, "2", 5)
    queue = RunQueue(tmp_path)
    assert (queue.known, queue.read_ns()) == (True, 15)
    task(tmp_path, "1", 30)
    task(tmp_path, "3", 100)
    assert queue.read_ns() == 35
    queue.refresh()
    assert queue.read_ns() == 135
    queue.close()


def test_a_thread_that_ends_keeps_what_it_waited(tmp_path: Path) -> None:
    """The sum never falls: a delay is never negative."""
    task(tmp_path, "1", 10)
    task(tmp_path, "2", 5)
    queue = RunQueue(tmp_path)
    (tmp_path / "2" / "schedstat").write_text("")  # a file of a thread that is gone reads as nothing
    assert queue.read_ns() == 15
    queue.close()


def test_a_system_that_does_not_tell_is_not_known(tmp_path: Path) -> None:
    """No folder, or tasks without the file."""
    assert not RunQueue(tmp_path / "nowhere").known
    (tmp_path / "1").mkdir()
    assert not RunQueue(tmp_path).known


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_this_process_is_known() -> None:
    """Real threads, one of which ends in between."""
    ended = threading.Event()
    other = threading.Thread(target=ended.wait)
    other.start()
    queue = RunQueue()
    before = queue.read_ns()
    ended.set()
    other.join()
    assert queue.known
    assert queue.read_ns() >= before
    queue.close()

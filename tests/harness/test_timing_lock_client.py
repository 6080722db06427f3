"""The worker's half of the timing lock, with real pipes and a parent that grants whatever is asked."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from torchgauge.harness.timing_lock_client import TimingLockClient, asks_of, grants_of


class Said:
    """Events of a lock in their order."""

    def __init__(self) -> None:
        self.wanted: list[bool] = []

    def emit(self, kind: str, **fields: Any) -> None:
        assert kind == "timing_lock"
        self.wanted.append(fields["wanted"])


@pytest.fixture
def pipes(tmp_path: Path):
    """Pipes of one worker, whose parent grants the lock after every second word, wants and gives back."""
    path = str(tmp_path / "worker")
    os.mkfifo(asks_of(path))
    os.mkfifo(grants_of(path))

    def parent() -> None:
        asks, grants = os.open(asks_of(path), os.O_RDONLY), os.open(grants_of(path), os.O_WRONLY)
        wants = True
        while os.read(asks, 1):
            if wants:
                os.write(grants, b".")
            wants = not wants
        os.close(asks)
        os.close(grants)

    thread = threading.Thread(target=parent, daemon=True)
    thread.start()
    yield path
    assert thread.is_alive()


def test_a_lock_is_released_for_a_while_and_taken_again(pipes: str) -> None:
    """Others have the machine inside, however deep it is held."""
    said = Said()
    lock = TimingLockClient(pipes, said)
    with lock.held(), lock.held():
        assert said.wanted == [True]
        with lock.away():
            assert said.wanted == [True, False]
        assert said.wanted == [True, False, True]
    assert said.wanted == [True, False, True, False]


def test_a_lock_that_is_not_held_is_not_released(pipes: str) -> None:
    """Nothing is said; and a worker that is alone has nobody to say it to."""
    said = Said()
    with TimingLockClient(pipes, said).away():
        pass
    alone = TimingLockClient("", said)
    with alone.held(), alone.away():
        pass
    assert said.wanted == []
    with TimingLockClient(pipes, said).held():
        pass
    assert said.wanted == [True, False]

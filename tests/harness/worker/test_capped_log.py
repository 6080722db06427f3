"""A flooded log keeps its beginning and its end and says how much is missing."""

from __future__ import annotations

import random

import pytest

from torchgauge.harness.worker.capped_log import CappedLog


@pytest.mark.parametrize("size", [0, 1, 99, 100])
def test_a_short_log_is_whole(tmp_path, size) -> None:
    """Up to the limit every byte is kept and no note is added."""
    log = CappedLog(str(tmp_path / "log"), 100)
    log.write(b"x" * size)
    assert log.close() == size
    assert (tmp_path / "log").read_bytes() == b"x" * size


@pytest.mark.parametrize("piece", [1, 7, 50, 64, 1000])
def test_a_long_log_has_two_ends(tmp_path, piece) -> None:
    """Whatever the size of the writes, the first and the last half of the limit are kept."""
    data = bytes(random.Random(0).choices(range(97, 123), k=1000))
    log = CappedLog(str(tmp_path / "log"), 100)
    for start in range(0, len(data), piece):
        log.write(data[start : start + piece])
    assert log.close() == 1000
    assert (tmp_path / "log").read_bytes() == data[:50] + b"\n[... 900 bytes left out ...]\n" + data[-50:]


def test_the_beginning_is_on_disk_at_once(tmp_path) -> None:
    """Whoever kills the host still finds how the log began."""
    log = CappedLog(str(tmp_path / "log"), 100)
    log.write(b"hello")
    assert (tmp_path / "log").read_bytes() == b"hello"
    log.close()

"""Files that are written at once or not at all."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

from torchgauge.results.atomic_file import write_atomically


def test_what_is_no_file_is_written_to_and_stays(tmp_path: Path) -> None:
    """A rename onto a pipe, or onto /dev/null as root, would put a file in its place for everybody."""
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, b"said")
    reader.join(120)
    assert found == [b"said"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert list(tmp_path.iterdir()) == [pipe]


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """Whoever has the old one open reads it to its end."""
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with path.open("rb") as stream:
        write_atomically(path, b"new")
        assert stream.read() == b"old"
    assert path.read_bytes() == b"new"

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

"""The file through which a worker speaks to its parent: one JSON line per event, and a cursor.

Why a file: whatever happens to the worker's process, what it had said stays readable; and a model that
closes or floods its standard output cannot touch it. The cursor is one mapped byte that names the case
whose steps run now, so that a crash in the middle of interleaved timing is charged to the right case.
"""

from __future__ import annotations

import json
import mmap
import os
import time
from pathlib import Path
from typing import Any

from torchgauge.processes.known_secrets import known_secrets
from torchgauge.records import Outcome, Phase, to_json, to_plain

NOBODY = 255
"""Cursor value while no single case is in flight."""


class EventWriter:
    """Worker side: appends whole lines with single writes."""

    def __init__(self, path: str, cursor: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        fd = os.open(cursor, os.O_RDWR | os.O_CREAT, 0o644)
        os.write(fd, bytes([NOBODY]))  # where the disk is full an error; a hole would be SIGBUS later
        self._cursor = mmap.mmap(fd, 1)
        os.close(fd)

    def emit(self, kind: str, **payload: Any) -> None:
        """Append one event; raises ``ValueError`` on a non-finite number."""
        line = to_json({"ev": kind, "t": time.time(), **{k: to_plain(v) for k, v in payload.items()}})
        data = (line + "\n").encode()
        while data:
            data = data[os.write(self._fd, data) :]

    def phase(self, phase: Phase, case: str | None = None) -> None:
        """Say that ``case`` (or, with None, every unfinished case of the group) entered ``phase``."""
        self.emit("phase", phase=phase, case=case)

    def stage(self, case: str, stage: str) -> None:
        """Say which ``stage`` of a backend's work for ``case`` comes next."""
        self.emit("stage", case=case, stage=stage)

    def outcome(self, outcome: Outcome) -> None:
        """Say how a case ended."""
        self.emit("outcome", outcome=outcome)

    def point(self, index: int) -> None:
        """Set the cursor to the case at ``index`` of the group, or to :data:`NOBODY`."""
        self._cursor[0] = index


class EventReader:
    """Parent side: reads whole lines as they appear and leaves a torn last line alone.

    Here a worker's words become ours, so here secrets are taken out of them.
    """

    def __init__(self, path: Path, cursor: Path | None = None) -> None:
        """``cursor`` is None for a child that has none."""
        self._path, self._cursor = path, cursor
        self._offset = 0

    def read(self) -> list[dict[str, Any]]:
        """Events appended since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data.rfind(b"\n") + 1
        self._offset += whole
        if not whole:
            return []
        secrets = known_secrets()
        return [secrets.hide_in(json.loads(line)) for line in data[:whole].splitlines()]

    def cursor(self) -> int:
        """Index of the case whose steps ran last, or :data:`NOBODY`."""
        try:
            data = b"" if self._cursor is None else self._cursor.read_bytes()
        except FileNotFoundError:
            return NOBODY
        return data[0] if data else NOBODY

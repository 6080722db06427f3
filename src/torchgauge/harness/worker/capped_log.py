"""A log file with a beginning and an end: what a flood leaves of itself."""

from __future__ import annotations

from collections import deque
from pathlib import Path


class CappedLog:
    """Writes the first half of ``limit`` bytes at once and keeps the last half for the end."""

    def __init__(self, path: str, limit: int) -> None:
        self._file = Path(path).open("wb", buffering=0)  # noqa: SIM115  closed by close()
        self._half = max(1, limit // 2)
        self._head = 0
        self._full = False
        self._tail: deque[bytes] = deque()
        self._held = 0
        self.total = 0

    def write(self, data: bytes) -> None:
        """Take ``data``; bytes between the two halves are counted and dropped."""
        self.total += len(data)
        if self._head < self._half:
            part = data[: self._half - self._head]
            self._put(part)
            self._head += len(part)
            data = data[len(part) :]
        if data:
            self._tail.append(data)
            self._held += len(data)
            while self._held - len(self._tail[0]) >= self._half:
                self._held -= len(self._tail.popleft())

    def close(self) -> int:
        """Write the end, with a line that says how much is missing; returns all bytes taken."""
        tail = b"".join(self._tail)[-self._half :]
        dropped = self.total - self._head - len(tail)
        if dropped:
            self._put(f"\n[... {dropped} bytes left out ...]\n".encode())
        self._put(tail)
        self._file.close()
        return self.total

    def _put(self, data: bytes) -> None:
        """Write ``data``; a full disk costs the rest of the log and not the worker, whose host this is."""
        if not self._full:
            try:
                self._file.write(data)
            except OSError:
                self._full = True

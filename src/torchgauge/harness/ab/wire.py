"""How the parent drives a live worker: JSON lines over a Unix socket, one question and one answer at a time.

Both halves import it. Why a socket beside the events file: a block lasts
milliseconds, and its answer must wake the parent at once.
"""

from __future__ import annotations

import json
import select
import socket
from pathlib import Path
from typing import Any

from torchgauge.harness.events import LONGEST_LINE, Kinds, message_in

BLOCK_S = 0.004
"""Seconds that a block of steps lasts: about what a scheduler gives a thread before taking the core away."""
LONGEST_PATH = 90
"""Bytes of a socket's path: systems allow between 92 and 108 of them."""

ANSWERS: Kinds = {
    "ready": {"step_s": float},
    "block": {
        **dict.fromkeys(("wall", "cpu", "delay", "switches", "device"), tuple[float, ...]),
        "refused": int,
    },
    "failed": {},
}
"""What a worker sends to its parent."""


class Wire:
    """One end of a connection."""

    def __init__(self, connection: socket.socket, kinds: Kinds | None = None) -> None:
        """Accept messages of ``kinds`` only (None: any), as a model may control the other end."""
        self._socket, self._buffer, self._kinds = connection, b"", kinds

    def send(self, **message: Any) -> bool:
        """Send one message; False where the other end has gone."""
        try:
            self._socket.sendall((json.dumps(message) + "\n").encode())
        except OSError:
            return False
        return True

    def receive(self, timeout_s: float | None = None) -> dict[str, Any] | None:
        """Return the next message: an empty dict without one in time, None where the other end has gone.

        Raises ``ValueError`` where a line is not a message of the kinds that are accepted.
        """
        while b"\n" not in self._buffer:
            if not _readable(self._socket, timeout_s):
                return {}
            try:
                data = self._socket.recv(1 << 20)
            except OSError:
                return None
            if not data:
                return None
            self._buffer += data
            if len(self._buffer) > LONGEST_LINE:
                raise ValueError(f"a message of more than {LONGEST_LINE >> 20} MiB")
        line, _, self._buffer = self._buffer.partition(b"\n")
        message: dict[str, Any] = json.loads(line) if self._kinds is None else message_in(line, self._kinds)
        return message

    def close(self) -> None:
        """Close this end; a second call does nothing."""
        self._socket.close()


class Listener:
    """The parent's end before a worker has connected; the path is removed when it closes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(path))
        self._socket.listen(1)

    def accept(self, timeout_s: float, kinds: Kinds | None = None) -> Wire | None:
        """Return the connection of a worker that may send ``kinds``; None without one in ``timeout_s``."""
        if not _readable(self._socket, timeout_s):
            return None
        return Wire(self._socket.accept()[0], kinds)

    def close(self) -> None:
        """Listen no longer; a second call does nothing."""
        self._socket.close()
        self.path.unlink(missing_ok=True)


def connect(path: str) -> Wire:
    """The worker's end; raises ``OSError`` where nobody listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return Wire(connection)


def _readable(connection: socket.socket, timeout_s: float | None) -> bool:
    """Whether there is something to read in time; ``poll`` takes any descriptor, ``select`` small ones."""
    waiting = select.poll()
    waiting.register(connection, select.POLLIN)
    return bool(waiting.poll(None if timeout_s is None else max(0.0, timeout_s) * 1e3))

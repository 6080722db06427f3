"""Messages between two torchgauge processes over TCP: JSON, from somebody who knows the key.

The frames and the proof of the key are those of :mod:`multiprocessing.connection`; nothing is unpickled.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import socket
import threading
import time
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any

HANDSHAKE_S = 5
"""Seconds that the other side has to prove that it knows the key."""
BEAT_S = 5.0
"""How often :meth:`Wire.beat` says that its process runs."""
_ALIVE = {"TCP_KEEPIDLE": 10, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": 30_000}
"""After half a minute without a word a machine that is gone counts as gone."""


class Wire:
    """One connection; :meth:`receive` returns its messages, ``None`` when the other side is gone.

    ``broken`` says so at once, ``gone`` when all messages were received. ``heard_at`` is when the other side
    said something last (``time.monotonic``).
    """

    def __init__(self, channel: socket.socket, key: bytes, *, asks_first: bool) -> None:
        """Raises ``OSError``, ``EOFError`` or ``AuthenticationError`` for whoever does not know ``key``."""
        channel.settimeout(None)
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _ALIVE.items():
            if hasattr(socket, name):
                channel.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self._channel, self._connection = channel, Connection(os.dup(channel.fileno()))
        self._messages: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.gone = self.broken = False
        self._sending = threading.Lock()
        self.heard_at = time.monotonic()
        proof = [deliver_challenge, answer_challenge]
        # one limit for the whole: who says a byte now and then would stay within one for each reading
        limit = threading.Timer(HANDSHAKE_S, _hang_up, [channel])
        limit.start()
        try:
            for step in proof if asks_first else reversed(proof):
                step(self._connection, key)
            limit.cancel()
        except BaseException:
            limit.cancel()
            self._connection.close()
            channel.close()
            raise
        threading.Thread(target=self._listen, name="wire", daemon=True).start()

    def send(self, **message: Any) -> None:
        """Send one message; that the other side is gone is noticed by :meth:`receive`."""
        with contextlib.suppress(OSError), self._sending:
            self._connection.send_bytes(json.dumps(message).encode())

    def beat(self) -> None:
        """Say from now on that this process runs: one that is stopped keeps its connection."""
        threading.Thread(target=self._beat, name="beat", daemon=True).start()

    def _beat(self) -> None:
        while not self.broken:
            self.send()
            time.sleep(BEAT_S)

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """The next message; an empty dict when none came in time, None when the other side is gone."""
        if self.gone:
            return None
        try:
            message = self._messages.get(timeout=timeout_s) if timeout_s else self._messages.get_nowait()
        except queue.Empty:
            return {}
        self.gone = message is None
        return message

    def close(self) -> None:
        """End the connection, after what was sent."""
        _hang_up(self._channel)
        self._channel.close()

    def _listen(self) -> None:
        try:
            while True:
                message = json.loads(self._connection.recv_bytes())
                self.heard_at = time.monotonic()
                if message:
                    self._messages.put(message)
        except (EOFError, OSError, ValueError):
            self.broken = True
            self._messages.put(None)
            self._connection.close()


def listen(address: str | None) -> socket.socket:
    """A socket that listens at a free port: of this machine's ``address`` alone, or at any of its own."""
    if address is not None:
        family, _, _, _, place = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
        return socket.create_server(place[:2], family=family)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", 0))


def accept(listener: socket.socket, key: bytes, timeout_s: float) -> Wire | None:
    """Whoever comes within ``timeout_s`` and knows ``key``; None for nobody, and for a stranger."""
    listener.settimeout(timeout_s)
    try:
        return Wire(listener.accept()[0], key, asks_first=True)
    except (OSError, EOFError, AuthenticationError):
        return None


def connect(address: str, port: int, key: bytes) -> Wire:
    """A connection to who listens there; raises as :class:`Wire`."""
    return Wire(socket.create_connection((address, port), HANDSHAKE_S), key, asks_first=False)


def _hang_up(channel: socket.socket) -> None:
    """Let both sides know that nothing more is said or heard."""
    with contextlib.suppress(OSError):
        channel.shutdown(socket.SHUT_RDWR)

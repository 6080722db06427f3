"""The connection of two torchgauge processes: where one listens, and how long a stranger is heard."""

from __future__ import annotations

import socket
import threading

import pytest
from waiting import PATIENCE_S, wait_until

from torchgauge.harness.launched import wire

KEY = b"k" * 32
LENGTH = 200
"""Bytes that a stranger announces; one in 0.3 s, they take a minute."""


@pytest.fixture(autouse=True)
def _patient_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a busy machine time for a handshake; the test of its limit sets another."""
    monkeypatch.setattr(wire, "HANDSHAKE_S", PATIENCE_S)


@pytest.mark.parametrize("address", ["127.0.0.1", "localhost", "127.0.1.1", "::1", None])
def test_who_listens_is_found_by_the_address_that_was_said(address: str | None) -> None:
    """Each address of this machine alone, IPv6 too; for None at any of them."""
    if address == "::1" and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with wire.listen(address) as listener:
        port = listener.getsockname()[1]
        found: list[wire.Wire | None] = []
        taking = threading.Thread(target=lambda: found.append(wire.accept(listener, KEY, PATIENCE_S)))
        taking.start()
        calling = wire.connect(address or "127.0.0.1", port, KEY)
        taking.join()
        (taken,) = found
        assert taken is not None
        calling.send(rank=1)
        assert taken.receive(PATIENCE_S) == {"rank": 1}
        calling.close()
        assert taken.receive(PATIENCE_S) is None
        taken.close()


def test_a_beat_is_heard_and_is_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says that the other process runs, and nothing else."""
    monkeypatch.setattr(wire, "BEAT_S", 0.05)
    with wire.listen("127.0.0.1") as listener:
        found: list[wire.Wire | None] = []
        taking = threading.Thread(target=lambda: found.append(wire.accept(listener, KEY, PATIENCE_S)))
        taking.start()
        calling = wire.connect("127.0.0.1", listener.getsockname()[1], KEY)
        taking.join()
        (taken,) = found
        assert taken is not None
        before = taken.heard_at
        calling.beat()
        wait_until(lambda: taken.heard_at > before, "a beat")
        assert taken.receive(0.2) == {}
        calling.close()
        assert taken.receive(PATIENCE_S) is None
        taken.close()


def test_a_stranger_who_speaks_slowly_is_heard_no_longer_than_any_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit is for all that has to be said before the key is known, and not for each byte of it."""
    monkeypatch.setattr(wire, "HANDSHAKE_S", 1)
    with wire.listen("127.0.0.1") as listener:
        stranger = socket.create_connection(listener.getsockname())
        stopped, sent = threading.Event(), list[int]()

        def trickle() -> None:
            stranger.sendall(LENGTH.to_bytes(4, "big"))
            while not stopped.wait(0.3):
                try:
                    stranger.sendall(b"x")
                    sent.append(1)
                except OSError:
                    return

        speaking = threading.Thread(target=trickle)
        speaking.start()
        assert wire.accept(listener, KEY, PATIENCE_S) is None
        stopped.set()
        speaking.join()
        stranger.close()
        assert len(sent) < LENGTH, "the limit was for each byte"

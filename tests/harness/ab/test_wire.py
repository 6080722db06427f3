"""Messages between the parent and a live worker."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from torchgauge.harness.ab.run_comparison import folder_for_sockets
from torchgauge.harness.ab.wire import LONGEST_PATH, Listener, Wire, connect


@pytest.fixture
def ends() -> Iterator[tuple[Wire, Wire]]:
    """Both ends of a connection."""
    with folder_for_sockets() as folder:
        listener = Listener(folder / "socket")
        ours = connect(str(listener.path))
        theirs = listener.accept(PATIENCE_S)
        assert theirs is not None
        yield ours, theirs
        for end in (ours, theirs, listener):
            end.close()


def test_messages_arrive_whole_and_in_order(ends: tuple[Wire, Wire]) -> None:
    """However long they are, and although two lie in the buffer."""
    ours, theirs = ends
    ours.send(cmd="block", steps=3)
    ours.send(values=list(range(20_000)))
    assert theirs.receive(PATIENCE_S) == {"cmd": "block", "steps": 3}
    assert theirs.receive(PATIENCE_S) == {"values": list(range(20_000))}


def test_silence_is_an_empty_message_and_a_gone_end_is_none(ends: tuple[Wire, Wire]) -> None:
    """What is late can be told from what will never come; sending to it says so as well."""
    ours, theirs = ends
    assert theirs.receive(0.0) == {}
    ours.close()
    assert theirs.receive(PATIENCE_S) is None
    assert not all(theirs.send(cmd="end") for _ in range(3))


def test_nobody_connects(tmp_path: Path) -> None:
    """Waiting ends, and the path is gone once it is closed."""
    with folder_for_sockets() as folder:
        listener = Listener(folder / "socket")
        assert listener.accept(0.0) is None
        listener.close()
    with pytest.raises(OSError, match="No such file"):
        connect(str(folder / "socket"))


def test_paths_of_sockets_are_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the folder for temporary files is a long way down."""
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with folder_for_sockets() as folder:
        assert len(str(folder / "12-01234567-base")) <= LONGEST_PATH

"""What a worker has said stays readable, however it ends."""

from __future__ import annotations

import pytest

from torchgauge.harness.events import EventReader, EventWriter
from torchgauge.records import Phase


@pytest.fixture
def files(tmp_path):
    """Paths of an events file and of its cursor."""
    return tmp_path / "events", tmp_path / "cursor"


def test_a_torn_last_line_is_left_alone(files) -> None:
    """Half a line is no event; it becomes one when the rest arrives."""
    reader, writer = EventReader(*files, cases=("key",)), EventWriter(*map(str, files))
    writer.phase(Phase.BUILD)
    with files[0].open("ab") as file:
        file.write(b'{"ev": "phase", "t": 1.0, "case": null, "ph')
    assert reader.read(10) == []
    assert [event["phase"] for event in reader.read()] == ["build"]
    assert reader.read() == []
    with files[0].open("ab") as file:
        file.write(b'ase": "eager"}\n')
    assert [event["phase"] for event in reader.read()] == ["eager"]


def test_a_nonfinite_number_is_no_event(files) -> None:
    """A NaN is refused at the source and leaves nothing in the file."""
    reader, writer = EventReader(*files, cases=("key",)), EventWriter(*map(str, files))
    with pytest.raises(ValueError, match="JSON"):
        writer.emit("memory", value=float("nan"))
    assert reader.read() == []

"""What a launcher's variables say, and what they cannot say."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from torchgauge.cli.main import cli
from torchgauge.errors import TorchgaugeError, UsageError
from torchgauge.harness.launched import crew as crews
from torchgauge.harness.launched.crew import Crew, Member
from torchgauge.harness.launched.launch import Launch, taken_from

VARIABLES = {
    "WORLD_SIZE": "2",
    "RANK": "1",
    "LOCAL_RANK": "0",
    "MASTER_ADDR": "somewhere",
    "MASTER_PORT": "29500",
}


def test_variables_say_which_of_how_many_this_is() -> None:
    """As torchrun sets them; without a second process nothing was launched."""
    assert taken_from(dict(VARIABLES)) == Launch(1, 2, 0, "somewhere", 29500, attempt="/")
    assert taken_from(VARIABLES | {"WORLD_SIZE": "1"}) is None
    assert taken_from({}) is None
    assert taken_from({"WORLD_SIZE": "8"}) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WORLD_SIZE", "2x"),
        ("WORLD_SIZE", "\u00b2"),
        ("RANK", "-1"),
        ("LOCAL_RANK", ""),
        ("MASTER_PORT", "0"),
        ("MASTER_PORT", "99999"),
        ("MASTER_PORT", "http"),
        ("MASTER_ADDR", " "),
    ],
)
def test_what_cannot_be_is_named(name: str, value: str) -> None:
    """Each of several processes would run the whole plan if it were taken as launched by nobody."""
    with pytest.raises(UsageError, match=rf"and {name} is "):
        taken_from(VARIABLES | {name: value})


def member(rank: int, machine: str, boot: str) -> Member:
    """A process on a machine with 4 cores."""
    return Member(rank, 0, machine, boot, 4)


def test_two_machines_of_one_name_are_not_taken_for_one() -> None:
    """Their numbers would join the series of a single machine."""
    crew = Crew(Launch(0, 2, 0, "somewhere", 29500), [member(0, "node", "a")])
    crew.members.append(member(1, "node", "b"))
    with pytest.raises(UsageError, match="two machines are named 'node'"):
        crews._compare(crew, crew.members[1], {}, {})
    crew.members[1] = member(1, "other", "b")
    crews._compare(crew, crew.members[1], {}, {})
    assert crew.machines == ("node", "other")


def test_of_many_that_do_not_come_some_are_named() -> None:
    """At once, however many there were to be."""
    crew = Crew(Launch(0, 10**12, 0, "somewhere", 29500), [member(0, "node", "a")])
    with pytest.raises(TorchgaugeError, match=r"ranks 1, 2, 3, 4, 5, 6, 7, 8 and 999999999991 more of"):
        crews._miss(crew, 5.0)


@pytest.mark.parametrize("words", ["ab toy --base-env A=1", "matrix toy --torch 2.12.1,2.13.0"])
def test_what_cannot_be_shared_is_not_launched(
    words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each process would measure everything, beside the others."""
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(cli, [*words.split(), "--device", "cpu", "--store", str(tmp_path / "store")])
    assert isinstance(done.exception, UsageError)
    assert "launched as process 1 of 2" in done.exception.message

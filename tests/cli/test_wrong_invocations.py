"""What a person may type wrong: each is one message that says what is wrong, where, and what to try.

The table is ``wrong_invocations.txt``: the command, its exit code, and words that the message must have. In
commands STORE has runs and an A/A comparison, EMPTY has nothing, FILE is a text file, DIR an empty folder,
BAD no YAML, and NOWHERE is not there.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from torchgauge.cli.main import run_command

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

from stored_runs import BEGIN, DAY, case, control_run, result, run

from torchgauge.results.store import Store

TABLE = Path(__file__).with_name("wrong_invocations.txt")
PLACES = {"STORE": "store", "EMPTY": "empty", "FILE": "file", "DIR": "dir", "BAD": "bad.yaml"}
FROM_OUTSIDE = ("GITHUB_", "TORCHGAUGE_", "CRCR_", "SLURM_", "RANK", "WORLD_SIZE")


@dataclass(frozen=True)
class Wrong:
    """One line of the table."""

    command: str
    code: int
    words: tuple[str, ...]


def wrong_invocations() -> list[Wrong]:
    """The lines of the table."""
    rows = [line.split(" | ") for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    return [Wrong(command.strip(), int(code), tuple(words.split(" & "))) for command, code, words in rows]


WRONG = wrong_invocations()


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A folder with all that the commands name."""
    folder = tmp_path_factory.mktemp("wrong")
    store = Store.open(folder / "store", create=True)
    run(store, "first-run", [result(case())])
    run(store, "second-run", [result(case())], at=BEGIN + DAY)
    control_run(store, 1, [0.0, 0.01, 0.0])
    Store.open(folder / "empty", create=True)
    (folder / "dir").mkdir()
    (folder / "file").write_text("words\n")
    (folder / "bad.yaml").write_text("colours: [red\n")
    return folder


@pytest.mark.parametrize("wrong", WRONG, ids=[each.command for each in WRONG])
def test_a_wrong_invocation_is_one_message(home, monkeypatch, capfd, wrong: Wrong) -> None:
    """The exit code, and what is wrong, where, and what to try, in the words of the table; no traceback."""
    for name in list(os.environ):
        if name.startswith(FROM_OUTSIDE):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.chdir(home)
    before = dict(os.environ)
    typed = [_placed(word) for word in shlex.split(wrong.command)]
    try:
        code = run_command(typed)
    except SystemExit as ending:
        code = ending.code
    finally:
        for name in os.environ.keys() - before.keys():  # options speak to workers through the environment
            del os.environ[name]
    said = capfd.readouterr().err
    assert code == wrong.code, said
    message, found, advice = said.partition("error: ")[2].partition("\n  try: ")
    assert message.strip(), said
    assert found, said
    assert advice.strip(), said
    assert said.count("error: ") == 1, said
    assert "Traceback" not in said
    for word in wrong.words:
        assert word in said, said


def _placed(word: str) -> str:
    """``word`` with the places that it names."""
    for name, place in PLACES.items():
        word = word.replace(name, place)
    return word.replace("NOWHERE", "nowhere")


def test_there_are_150_of_every_verb() -> None:
    """At least 150 invocations, each with words of its own, and one of every verb."""
    from torchgauge.cli.main import cli

    assert len({each.command for each in WRONG}) == len(WRONG) >= 150
    assert [each.command for each in WRONG if len("".join(each.words)) < 8] == []
    without = {"devices", "version"} - {each.command.split()[0] for each in WRONG}
    assert {each.command.split()[0] for each in WRONG} >= set(cli.verbs) - without

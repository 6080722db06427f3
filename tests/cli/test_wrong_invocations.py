"""What a person may type wrong: each is one message that says what is wrong, where, and what to try.

The table is ``wrong_invocations.txt``: the command, its exit code, and words that the message must have. In
commands STORE has runs and an A/A comparison, EMPTY has nothing, FILE is a text file, DIR an empty folder,
BAD no YAML, and NOWHERE is not there. :data:`WITH_ENUMS` has the others.
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
WITH_ENUMS = {
    "POLICY": ("policy.yaml", "suites:\n  toy:\n    metrics:\n      peak_memory: {action: fail}\n"),
    "CONFIGURATIONS": (
        "configurations.yaml",
        "configurations:\n  - {name: mine, doc: x, backend: inductor, mode: fast}\n",
    ),
    "CLAIMS": ("claims.yaml", "claims:\n  - name: x\n    question: {aggregation: most}\n"),
    "CONFIG": ("torchgauge.yml", "pools:\n  - {name: x, trust: nobody}\n"),
}
"""Files in which a field has a word that is not one of a closed list."""
FROM_OUTSIDE = ("GITHUB_", "TORCHGAUGE_", "CRCR_", "SLURM_", "RANK", "WORLD_SIZE")


@dataclass(frozen=True)
class Wrong:
    """One line of the table."""

    command: str
    code: int
    words: tuple[str, ...]

    @property
    def verb(self) -> str:
        """The first word of the command."""
        return self.command.split()[0]


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
    for name, text in WITH_ENUMS.values():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("verb", sorted({each.verb for each in WRONG}))
def test_a_wrong_invocation_is_one_message(home, monkeypatch, capfd, verb: str) -> None:
    """The exit code, and what is wrong, where, and what to try, in the words of the table; no traceback."""
    for name in list(os.environ):
        if name.startswith(FROM_OUTSIDE):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.chdir(home)
    faults = {}
    for wrong in (each for each in WRONG if each.verb == verb):
        code = ended(wrong)
        said = capfd.readouterr().err
        faults[wrong.command] = (fault_of(wrong, code, said), said)
    assert faults
    assert {command: fault for command, fault in faults.items() if fault[0]} == {}


def ended(wrong: Wrong) -> object:
    """The exit code of the command, run in this process, which it leaves as it was."""
    before = dict(os.environ)
    try:
        return run_command([_placed(word) for word in shlex.split(wrong.command)])
    except SystemExit as ending:
        return ending.code
    finally:
        for name in os.environ.keys() - before.keys():  # options speak to workers through the environment
            del os.environ[name]


def fault_of(wrong: Wrong, code: object, said: str) -> str:
    """What the answer to a wrong invocation lacks; empty for nothing."""
    message, found, advice = said.partition("error: ")[2].partition("\n  try: ")
    if code != wrong.code:
        return f"it ends with {code}"
    if not message.strip() or not found or not advice.strip() or said.count("error: ") != 1:
        return "it is not one message with what to try"
    if "Traceback" in said:
        return "it has a traceback"
    lacking = [word for word in wrong.words if word not in said]
    return f"it lacks {lacking}" if lacking else ""


def _placed(word: str) -> str:
    """``word`` with the places that it names."""
    for name, place in (*PLACES.items(), *((name, file) for name, (file, _) in WITH_ENUMS.items())):
        word = word.replace(name, place)
    return word.replace("NOWHERE", "nowhere")


def test_there_are_150_of_every_verb() -> None:
    """At least 150 invocations, each with words of its own, and one of every verb."""
    from torchgauge.cli.main import cli

    assert len({each.command for each in WRONG}) == len(WRONG) >= 150
    assert [each.command for each in WRONG if len("".join(each.words)) < 8] == []
    assert {each.verb for each in WRONG} >= set(cli.verbs)

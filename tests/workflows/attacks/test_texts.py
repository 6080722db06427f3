"""Texts of a set that a person pastes, a log reads as commands, or a terminal obeys."""

from __future__ import annotations

import io
import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign_sets import Files, Night, in_row, relined, write_folder, write_zip
from test_hostile_sets import entries, refusal

from torchgauge.cli.main import cli
from torchgauge.harness.run.rows import reproduce_command
from torchgauge.records import Deadlines, RunSettings
from torchgauge.workflows.campaign import campaign_json
from torchgauge.workflows.guarded_log import GuardedLog
from torchgauge.workflows.ingest.intake import artifact_of
from torchgauge.workflows.ingest.refusal import Reason
from torchgauge.workflows.plain_text import is_plain_command

TAILS = {
    "another store": " --store /srv/history",
    "another store, joined": " --store=/srv/history",
    "an interpreter": " --python /tmp/evil",
    "an interpreter, joined": " --python=/tmp/evil",
    "a file of configurations": " --config-file /tmp/evil.yaml",
    "a checkout": " --torchbench /tmp/evil",
    "expectations": " --expectations /tmp/evil.yaml",
    "machine output": " --json",
    "help": " --help",
    "a setting and a store": " --threads 2 --store /srv/history",
    "a store and a setting": " --store /srv/history --threads 2",
    "a path as a number": " --threads /tmp/evil",
    "a setting without a number": " --threads",
    "a negative number": " --threads -1",
    "a number, joined": " --threads=2",
    "a flag with a value": " --no-accuracy=1",
    "the end of options": " -- --store /srv/history",
    "another case": " toy/conv:inference:float32:b8:eager@fake",
    "another command": "; rm -rf .",
    "in the background": " & curl evil.invalid",
    "into a pipe": " | sh",
    "into a file": " > ~/.bashrc",
    "a substitution": " --threads $(id)",
    "an old substitution": " --threads `id`",
    "a variable": " --threads $HOME",
    "a new line": "\\nrm -rf .",
    "a tab": "\\t--threads 2",
    "two blanks": "  --threads 2",
    "a blank at the end": " --threads 2 ",
    "a comment": " # --threads 2",
    "a quote": " --threads '2'",
    "a dash that is none": " \\u2010\\u2010threads 2",
    "digits of another script": " --threads \\u0662",
    "braces": " --threads {1,2}",
    "a very long number": " --threads " + "9" * 40,
}


@pytest.mark.parametrize("tail", TAILS)
def test_a_command_with_more_than_settings_is_refused(
    tail: str,
    night: Night,
    good: Files,
    tmp_path: Path,
) -> None:
    """A reader pastes it: no option that names a file, a program or a folder, and nothing of a shell."""
    spoilt = in_row(good, b'eager@fake","attempt', b"eager@fake" + TAILS[tail].encode() + b'","attempt')
    assert refusal(night, write_folder(tmp_path / "set", spoilt)) is Reason.TEXT


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"reproduce":"torchgauge', b'"reproduce":"sudo torchgauge'),
        (b'"reproduce":"torchgauge', b'"reproduce":"LD_PRELOAD=/tmp/evil torchgauge'),
        (b'"reproduce":"torchgauge', b'"reproduce":"./torchgauge'),
        (b'"reproduce":"torchgauge repro', b'"reproduce":"torchgauge run'),
        (b'"reproduce":"torchgauge repro', b'"reproduce":"torchgauge --store x repro'),
    ],
)
def test_a_command_that_begins_otherwise_is_refused(
    old: bytes,
    new: bytes,
    night: Night,
    good: Files,
    tmp_path: Path,
) -> None:
    """It is torchgauge's own, of this very case."""
    assert refusal(night, write_folder(tmp_path / "set", in_row(good, old, new))) is Reason.TEXT


def test_every_setting_that_a_run_writes_is_taken(night: Night) -> None:
    """But for those that name files, which `ci run` leaves out."""
    settings = RunSettings(
        threads=2,
        precision_target=0.005,
        measure_budget_s=1e-3,
        quiet_wait_s=0.5,
        accuracy=False,
        deadlines=Deadlines(start_s=12.5),
        memory_limit_bytes=1 << 33,
        memory_probe=False,
        calibrate=False,
        warm_compile=False,
        fallback_check=False,
    )
    case = night.cases[0]
    command = reproduce_command(case, settings)
    assert command.count(" --") == 11
    assert is_plain_command(command, case.id)
    for named in ({"configuration_file": "/x.yaml"}, {"torchbench": "/x"}):
        assert not is_plain_command(reproduce_command(case, replace(settings, **named)), case.id)


NAMES = {
    "a line feed": "set\n::add-mask::a",
    "a return": "set\r::add-mask::a",
    "both": "set\r\n::error::a",
    "a vertical tab": "set\x0b::warning::a",
    "a form feed": "set\x0c::notice::a",
    "a separator of files": "set\x1c::debug::a",
    "a next line": "set\x85::stop-commands::a",
    "a line separator": "set\u2028::group::a",
    "a paragraph separator": "set\u2029::set-output name=a::b",
    "many": "\n\n\n::add-mask::a\n\n",
    "a tab": "\t::add-mask::a",
    "an escape": "set\x1b[2K\x1b[1A::add-mask::a",
    "an escape of eight bits": "set\x9b2K::add-mask::a",
    "the old form": "set##[add-mask]a",
    "the old form, and a line feed for the runner": "set##[add-mask]collected-1%0Ax",
    "a bell": "set\x07",
    "a reversal": "set\u202egpj.exe",
    "a joiner of no width": "s\u200det",
    "a tag": "set\U000e0041",
    "bytes that are no text": os.fsdecode(b"set\xff\xfe\n::add-mask::a"),
    "a long one": "a" * 250,
}


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_an_artifact_stays_in_its_line(
    name: str,
    night: Night,
    good: Files,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is told where the set is refused: in a job's log, whose lines may be commands, and in a record."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    path = write_zip(tmp_path / "artifacts" / NAMES[name], [*entries(good), ("../evil", b"")])
    assert refusal(night, path) is Reason.FILE_NAME
    shown = artifact_of(path)
    assert shown.isprintable()
    assert shown.encode()
    campaign = tmp_path / "campaign.json"
    campaign.write_text(campaign_json(night.campaign))
    words = [
        "ci",
        "collect",
        str(path.parent),
        "--campaign",
        str(campaign),
        "--store",
        str(tmp_path / "store"),
    ]
    words += ["--out", str(tmp_path / "collect.json")]
    log = GuardedLog(io.StringIO())
    monkeypatch.setattr("sys.stdout", log)
    monkeypatch.setattr("sys.stderr", log)
    with pytest.raises(SystemExit):
        cli.main(words, standalone_mode=False)
    said = log.getvalue()
    assert [line for line in said.splitlines() if line.lstrip().startswith("::") or "##[" in line] == []
    assert said.count("rejected") == len([line for line in said.splitlines() if "rejected" in line]) == 1
    (record,) = (tmp_path / "store" / "rejected").iterdir()
    assert json.loads(record.read_text())["artifact"].isprintable()


HIDING = {
    "a backspace": "\\u0008",
    "a return": "pass\\rfail",
    "an escape": "\\u001b[8m",
    "an escape of eight bits": "\\u009b8m",
    "a delete": "\\u007f",
    "an isolate": "\\u2066x",
    "an override": "\\u202dx",
    "a mark of direction": "\\u200fx",
    "a byte order mark": "\\ufeffx",
    "a soft hyphen": "to\\u00adken",
    "a tag": "\\udb40\\udc41",
    "a private letter": "\\ue000",
    "no letter at all": "\\uffff",
    "a filler": "\\u3164",
    "a line separator": "a\\u2028b",
}
FIELDS = {
    "the reason": (b'"reason":""', b'"reason":"%s"'),
    "the teardown": (b'"teardown":""', b'"teardown":"%s"'),
}


@pytest.mark.parametrize("letter", HIDING)
@pytest.mark.parametrize("field", FIELDS)
def test_a_text_that_hides_something_is_refused(
    field: str,
    letter: str,
    night: Night,
    good: Files,
    tmp_path: Path,
) -> None:
    """Whatever a terminal, a page or a person would not see as it is."""
    old, new = FIELDS[field]
    spoilt = in_row(good, old, new % HIDING[letter].encode())
    assert refusal(night, write_folder(tmp_path / "set", spoilt)) is Reason.TEXT


@pytest.mark.parametrize("fact", ["a\\n::add-mask::b", "a\\tb", "a\\u001b[0m"])
def test_a_fact_of_a_machine_is_one_plain_line(
    fact: str,
    night: Night,
    good: Files,
    tmp_path: Path,
) -> None:
    """It is told in notes of a job's log."""

    def spoil(lines: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        return [
            (kind, body.replace(b'"2.9.0"', b'"%s"' % fact.encode()) if kind == b"environment" else body)
            for kind, body in lines
        ]

    spoilt = relined(good, spoil)
    assert spoilt != good
    assert refusal(night, write_folder(tmp_path / "set", spoilt)) is Reason.TEXT

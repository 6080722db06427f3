"""Sets that declare what became of their cases: only the campaign says what is expected, and what is not run.

Each variant is the second night of a pool, whose first night measured everything.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign_sets import Files, Line, Night, files_of, relined, replanned, write_folder
from stored_runs import BEGIN, DAY
from submitted_sets import Row, kept

from torchgauge.cli.main import cli
from torchgauge.records import Expectation, Status
from torchgauge.workflows.campaign import campaign_json

TONIGHT = {"campaign_id": "2026-05-29-torch-2.9.0-aabbccdd", "night": "2026-05-29"}
Change = Callable[[Files], Files]


def ended(status: str, cause: str | None = None) -> Change:
    """Every row of the set ends with ``status``, as expected by its own word."""
    changes = {"status": status, "cause": cause, "phase": "start", "reason": "known", "expected": status}
    nothing = {"measurements": [], "summaries": [], "accuracy": None, "realised": None}

    def change(lines: list[Line]) -> list[Line]:
        return [
            (kind, json.dumps({**json.loads(body), **changes, **nothing, "modifiers": ["expected"]}).encode())
            if kind == b"result"
            else (kind, body)
            for kind, body in lines
        ]

    return lambda files: relined(files, change)


def planned(**changes: object) -> Change:
    """The plan says ``changes`` of every case."""

    def edit(plan: Row) -> None:
        for group in plan["groups"]:
            for each in group["cases"]:
                each.update(changes)

    return lambda files: replanned(files, edit)


def having(**changes: object) -> Change:
    """The plan has ``changes``."""
    return lambda files: replanned(files, lambda plan: plan.update(changes))


def expecting(status: str) -> Change:
    return planned(expectation={"status": status, "reason": "known", "link": "", "date": ""})


def refusing(status: str, cause: str | None) -> Change:
    return planned(refusal={"status": status, "reason": "known", "cause": cause})


OWN_WORDS: dict[str, tuple[Change, ...]] = {
    "skipped, declared by its cause": (ended("skipped", "declared"),),
    "skipped, for want of a package": (ended("skipped", "missing_package"),),
    "skipped, expected by its plan": (expecting("skipped"), ended("skipped", "declared")),
    "skipped, refused by its plan": (refusing("skipped", "declared"), ended("skipped", "declared")),
    "unsupported by its own word": (ended("unsupported"),),
    "unsupported, expected by its plan": (expecting("unsupported"), ended("unsupported")),
    "unsupported, refused by its plan": (refusing("unsupported", None), ended("unsupported")),
    "an error, expected by its plan": (expecting("error"), ended("error")),
    "wrong numbers, expected by its plan": (expecting("fail_accuracy"), ended("fail_accuracy", "tolerance")),
    "a crash, expected by its plan": (expecting("crash"), ended("crash", "signal")),
    "a time-out, expected by its plan": (expecting("timeout"), ended("timeout")),
    "no memory, expected by its plan": (expecting("oom"), ended("oom", "device")),
}


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Night]:
    """The second night of a pool, in a store that has the first one."""
    first = Night(tmp_path / "first", begin=BEGIN - DAY, shards=2)
    for shard in (1, 2):
        first.pack(shard)
    second = Night(tmp_path / "second", **TONIGHT)
    second.pack(2)
    monkeypatch.chdir(tmp_path)
    assert walk(first, first.path / "artifacts") == 0
    return (yield second)


def walk(night: Night, artifacts: Path) -> int:
    """How the gate ends once ``artifacts`` were collected; fails where any of them was refused."""
    Path("campaign.json").write_text(campaign_json(night.campaign))
    words = ("collect", str(artifacts), "--store", "store")
    told = CliRunner().invoke(cli, ["ci", *words])
    assert (told.exit_code, "rejected" in told.output) == (0, False), told.output
    gate = CliRunner().invoke(cli, ["ci", "gate", "--store", "store", "--json"])
    Path("gate.json").write_text(gate.stdout)
    assert gate.exception is None or isinstance(gate.exception, SystemExit)
    return gate.exit_code


def submitted(night: Night, *changes: Change) -> Path:
    """The folder of tonight's artifacts, of which the first is as ``changes`` leave it."""
    artifacts = night.path / "artifacts"
    files = files_of(night.pack(1, folder=night.path / "honest"))
    for change in changes:
        files = change(files)
    write_folder(artifacts / night.job(1).artifact, files)
    return artifacts


@pytest.mark.parametrize("name", OWN_WORDS)
def test_what_a_set_says_of_itself_excuses_nothing(name: str, night: Night) -> None:
    """What was measured before and is not tonight is a finding, whatever the set calls it."""
    incomplete = name.startswith(("skipped", "unsupported"))
    assert walk(night, submitted(night, *OWN_WORDS[name])) == (3 if incomplete else 1)


FIRST = [name for name in OWN_WORDS if name.startswith(("skipped", "unsupported"))]


@pytest.fixture
def newcomer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    """The first night of a pool."""
    monkeypatch.chdir(tmp_path)
    night = Night(tmp_path / "first", shards=2)
    night.pack(2)
    return night


@pytest.mark.parametrize("name", FIRST)
def test_what_was_never_measured_is_not_excused_by_its_own_word(name: str, newcomer: Night) -> None:
    """Nobody but the set says that the case cannot run: that is no finding of a fault, and not green."""
    assert walk(newcomer, submitted(newcomer, *OWN_WORDS[name])) == 3
    gate = json.loads(Path("gate.json").read_text())
    ended = name.partition(",")[0].partition(" ")[0]
    assert (gate["verdict"], gate["reasons"]) == (
        "undecided", [f"reported as {ended} by the pool, without an earlier measurement: 2 cases"]
    )  # fmt: skip
    assert (gate["failures"], gate["lost"]) == ([], [])
    (cluster,) = gate["unconfirmed"]
    assert len(cluster["cases"]) == 2


def test_what_the_campaign_says_of_a_case_that_was_never_measured_is_green(newcomer: Night) -> None:
    """A suite that declares not to run it, or a device that refuses it where the night is planned."""
    for name in ("skipped, refused by its plan", "unsupported, refused by its plan"):
        change_first(newcomer, skipped=tuple(each.id for each in newcomer.cases[:2]))
        assert walk(newcomer, submitted(newcomer, *OWN_WORDS[name])) == 0
        shutil.rmtree("store")
        shutil.rmtree(newcomer.path / "of another campaign")
        shutil.rmtree(newcomer.path / "honest")


@pytest.mark.parametrize("name", ["skipped, expected by its plan", "an error, expected by its plan"])
def test_what_the_campaign_expects_is_no_finding(name: str, night: Night) -> None:
    """The data that the night was planned with says so."""
    status = Status.ERROR if "error" in name else Status.SKIPPED
    change_first(night, expected=tuple((each.id, Expectation(status, "known")) for each in night.cases[:2]))
    assert walk(night, submitted(night, *OWN_WORDS[name])) == 0


def test_what_a_suite_declares_not_to_run_is_no_finding(night: Night) -> None:
    """The campaign says of which cases that holds."""
    change_first(night, skipped=tuple(each.id for each in night.cases[:2]))
    assert walk(night, submitted(night, *OWN_WORDS["skipped, refused by its plan"])) == 0


def test_an_expectation_that_the_set_hides_is_kept(night: Night, tmp_path: Path) -> None:
    """What is expected to fail and passes is news, also where the set's plan does not say it."""
    change_first(night, expected=((night.cases[0].id, Expectation(Status.ERROR, "known")),))
    files = files_of(night.pack(1, folder=tmp_path / "honest"))
    assert kept(night, files, tmp_path / "in")["expected"] == "error"


def change_first(night: Night, **changes: object) -> None:
    """Change the first shard in the campaign of ``night``, and submit its other set again."""
    pool = night.campaign.pools[0]
    first, *others = pool.shards
    shards = (replace(first, **changes), *others)
    night.campaign = replace(night.campaign, pools=(replace(pool, shards=shards),))
    made = night.path / "artifacts"
    made.rename(night.path / "of another campaign")
    night.pack(2)

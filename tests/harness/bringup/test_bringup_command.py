"""A bringup that is killed goes on where it was, and a part that hangs ends in its time; no torch needed."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_S, wait_until

from torchgauge.results import journal

MODELS = ("--suites", "slow", "--models", "slow_1,slow_2,slow_3")


def words(out: Path, *more: str) -> tuple[str, ...]:
    """The arguments of a bringup of a device that runs no torch."""
    return ("bringup", "--device", "fake", "--out", str(out), "--threads", "1", *more)


def state_of(out: Path) -> dict[str, Any]:
    """What ``bringup.json`` says, with its parts by name."""
    data: dict[str, Any] = json.loads((out / "bringup.json").read_bytes())
    return {**data, "of": {each["part"]: each for each in data["parts"]}}


@pytest.fixture
def gate(sandbox, tmp_path) -> Path:
    """A folder in which each ticket lets one model be built."""
    folder = tmp_path / "gate"
    folder.mkdir()
    sandbox.environment["TORCHGAUGE_FAULTS_GATE"] = str(folder)
    return folder


def rows_in(out: Path) -> list[str]:
    """The models of which the run of part ``models`` has a row, in order."""
    run_id = state_of(out)["of"]["models"]["run_id"] if (out / "bringup.json").exists() else ""
    file = out / "store" / "runs" / run_id / "journal.jsonl"
    return [each.case.workload.model for each in journal.results(file)] if run_id and file.exists() else []


def test_a_bringup_that_was_killed_goes_on_and_repeats_nothing(sandbox, gate, tmp_path) -> None:
    """After SIGKILL in a part the same command keeps what is done and resumes that part's run."""
    out = tmp_path / "out"
    asked = words(out, "--parts", "check,models", *MODELS)
    process = sandbox.start(*asked)
    (gate / "ticket-1").touch()
    wait_until(lambda: rows_in(out) or process.poll() is not None, "a row of the part models")
    assert process.poll() is None, process.communicate()
    process.kill()
    process.communicate()
    before, had = state_of(out), rows_in(out)
    assert had
    assert before["of"]["check"]["state"] == "done"
    assert before["of"]["models"]["state"] == "begun"
    (gate / "open").touch()
    done = sandbox.run(*asked)
    after = state_of(out)
    assert after["of"]["models"]["state"] == "done", done.stderr
    assert after["of"]["models"]["run_id"] == before["of"]["models"]["run_id"]
    assert after["of"]["check"] == before["of"]["check"]
    assert sorted(rows_in(out)) == ["slow_1", "slow_2", "slow_3"]
    assert rows_in(out)[: len(had)] == had
    again = sandbox.run(*asked)
    assert again.returncode == done.returncode, again.stderr
    assert state_of(out)["of"] == after["of"]


def test_a_part_that_hangs_ends_with_its_time_and_is_no_yes(sandbox, gate, tmp_path) -> None:
    """The command ends soon after its budget, and the report says what is left and how to go on."""
    out = tmp_path / "out"
    asked = words(out, "--parts", "models", *MODELS)
    began = time.monotonic()
    done = sandbox.run(*asked, "--budget", "8s")
    assert done.returncode == 3, done.stderr
    assert time.monotonic() - began < PATIENCE_S
    assert not list(gate.iterdir())
    assert state_of(out)["of"]["models"]["reason"] == "3 cases are left"
    said = (out / "report.md").read_text()
    assert "models: out of budget (3 cases are left)" in said
    assert "**yes**" not in said
    assert f"--out {out} --budget 1h" in said


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--parts", "chek"), "unknown part 'chek'; did you mean check"),
        (("--device", "fakee"), "unknown device 'fakee'; did you mean fake"),
        (("--budget", "soon"), "is not a duration"),
    ],
)
def test_a_mistake_is_named_and_nothing_is_written(sandbox, tmp_path, more, message) -> None:
    """A name that nothing answers to ends with 2 before there is a folder."""
    done = sandbox.run(*words(tmp_path / "out", *more))
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert not (tmp_path / "out").exists()

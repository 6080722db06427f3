"""A command that attempts its cases several times, and one whose cases the environment breaks once."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_until

from torchgauge.records import Again, Cause, Result, Status
from torchgauge.results import journal
from torchgauge.results.dataset import read_table
from torchgauge.results.journal import Kind

GATE = "TORCHGAUGE_FAULTS_GATE"
WORDS = ("slow", "--config", "eager", "--tier", "full", "--prefetch", "1")


@pytest.fixture
def moods(sandbox: Any, tmp_path: Path) -> Path:
    """Where models that end badly once remember it."""
    folder = tmp_path / "moods"
    folder.mkdir()
    sandbox.environment["TORCHGAUGE_FAULTS_MOODS"] = str(folder)
    return folder


def wait_for_attempt(sandbox: Any) -> None:
    """Return when the journal of the only run has an attempt that is not the last."""

    def attempted() -> bool:
        found = list(sandbox.store_path.glob("runs/[!.]*/journal.jsonl"))
        return bool(found) and any(line.kind is Kind.ATTEMPT for line in journal.read(found[0]))

    wait_until(attempted, "an attempt in the journal of the run")


def statuses(row: Result) -> list[str]:
    """How each attempt at a case ended."""
    return [each.status.value for each in row.attempts]


@pytest.mark.usefixtures("moods")
def test_a_case_that_fails_one_time_in_three_is_flaky_and_no_pass(sandbox: Any) -> None:
    """All attempts are in the row, in the table and in the journal; a steady case beside it passes."""
    words = ("--models", "moody,slow_1", "--device", "fake", "--attempts", "3", "--json")
    done = sandbox.measure(*WORDS, *words)
    assert done.returncode == 1, done.stderr
    rows = {row.case.workload.model: row for row in sandbox.assert_accounted()}
    moody, steady = rows["moody"], rows["slow_1"]
    assert (moody.status, moody.attempt, statuses(moody)) == (Status.ERROR, 2, ["pass", "error", "pass"])
    assert moody.flaky == "2 of 3 attempts pass: pass, error, pass"
    assert not moody.counted
    assert (steady.status, steady.attempt, statuses(steady), steady.flaky) == (
        Status.PASS,
        3,
        ["pass"] * 3,
        "",
    )
    said = json.loads(done.stdout)
    assert (said["passed"], said["counts"]) == (1, {"pass": 1, "error": 1})
    table = {row["model"]: row for row in read_table(sandbox.store, "results").to_pylist()}
    assert [each["status"] for each in json.loads(table["moody"]["attempts"])] == ["pass", "error", "pass"]
    lines = list(journal.read(sandbox.folder().journal_path))
    earlier = [line.payload() for line in lines if line.kind is Kind.ATTEMPT]
    assert sorted(each.result.attempt for each in earlier if each.result.case.key == moody.case.key) == [
        1,
        2,
        3,
    ]
    assert {each.again for each in earlier} == {Again.ASKED}
    assert all(each.result.measurements for each in earlier if each.result.status is Status.PASS)


@pytest.mark.usefixtures("moods")
def test_what_was_killed_is_tried_once_more_on_another_device(sandbox: Any) -> None:
    """It passes there: the verdict is that of its case, and its times stand apart."""
    done = sandbox.measure(*WORDS, "--models", "killed_once", "--device", "fake,fake.1")
    assert done.returncode == 0, done.stderr
    assert "slow/killed_once (inference) is retried: killed from outside" in done.stderr
    (row,) = [row for row in sandbox.assert_accounted() if str(row.case.device) == "fake"]
    first, second = row.attempts
    assert (first.status, first.cause, first.device, first.again) == (
        Status.INFRA,
        Cause.KILLED,
        "fake",
        Again.INFRASTRUCTURE,
    )
    assert (second.status, second.device, row.status, row.attempt) == (Status.PASS, "fake.1", Status.PASS, 2)
    assert "measured on fake.1 instead of its own device" in row.unsteady
    assert row.flaky == ""
    assert (sandbox.folder().path / first.log).is_file()


def test_without_another_device_it_is_the_same_and_never_a_third_time(sandbox: Any) -> None:
    """What is killed again ends as infra; what fails by itself is tried once."""
    done = sandbox.measure(*WORDS, "--models", "killed,broken", "--device", "fake")
    assert done.returncode == 3, done.stderr
    rows = {row.case.workload.model: row for row in sandbox.assert_accounted()}
    killed, broken = rows["killed"], rows["broken"]
    assert (killed.status, killed.cause, killed.attempt) == (Status.INFRA, Cause.KILLED, 2)
    assert [each.device for each in killed.attempts] == ["fake", "fake"]
    assert (broken.status, broken.attempt, broken.attempts) == (Status.ERROR, 1, ())


def test_what_takes_too_long_says_where_and_may_tidy_up_before_it_is_killed(
    sandbox: Any, moods: Path
) -> None:
    """Stacks first, then SIGTERM, and SIGKILL after a grace; a timeout is final."""
    done = sandbox.measure(*WORDS, "--models", "tidy", "--device", "fake", "--timeout", "8")
    assert done.returncode == 1, done.stderr
    (row,) = sandbox.rows()
    assert (row.status, row.attempts) == (Status.TIMEOUT, ())
    assert "in _hang" in (sandbox.folder().path / row.log).read_text()
    assert (moods / "tidied").exists()


def test_a_run_that_was_interrupted_between_attempts_goes_on_with_the_next(
    sandbox: Any, tmp_path: Path
) -> None:
    """No attempt is lost or made twice."""
    gate = tmp_path / "gate"
    gate.mkdir()
    (gate / "ticket-0").touch()
    sandbox.environment[GATE] = str(gate)
    words = ("--models", "slow_1", "--device", "fake", "--attempts", "2", "--store", str(sandbox.store_path))
    command = sandbox.start("run", *WORDS, *sandbox.quick, *words)
    wait_for_attempt(sandbox)
    command.send_signal(signal.SIGINT)
    _, said = command.communicate(timeout=120)
    assert command.returncode == 130, said
    assert sandbox.rows() == []
    (gate / "open").touch()
    again = sandbox.run("run", "--resume", str(sandbox.folder().path))
    assert again.returncode == 0, again.stderr
    (row,) = sandbox.rows()
    assert (row.status, row.attempt, statuses(row)) == (Status.PASS, 2, ["pass", "pass"])

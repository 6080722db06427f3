"""What every executor must do: one row for each planned case, of the same status wherever it is measured."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from commands import SLOW, assert_whole, gate, started

from torchgauge.records import Status

EVERYWHERE = pytest.mark.parametrize("place", ["local", "slurm"], indirect=True)
ENDINGS = {
    "healthy": ("pass", None, "done"),
    "raises": ("error", None, "eager"),
    "segfault_in_step": ("crash", "signal", "eager"),
    "hangs_in_c": ("timeout", None, "eager"),
    "exits_zero": ("crash", "exit", "eager"),
    "kills_itself": ("infra", "killed", "eager"),
    "daemon_child": ("pass", None, "done"),
    "missing_package": ("skipped", "missing_package", "build"),
    "after_kills_itself": ("pass", None, "done"),
}


@pytest.mark.torch
@EVERYWHERE
def test_each_case_ends_as_it_does_anywhere(sandbox: Any, place: Any) -> None:
    """Pass, crash, hang, no result, a killed worker, a daemon: statuses, causes and phases are the same."""
    words = ("--device", "cpu", "--config", "eager", "--timeout", "12", "--models", ",".join(ENDINGS))
    more = {} if place.executor == "local" else {"groups_per_job": "5"}
    done = sandbox.measure("faults", *words, *place.words(**more))
    assert done.returncode == 3, done.stderr
    rows = assert_whole(sandbox)
    found = {
        row.case.workload.model: (row.status.value, row.cause and row.cause.value, row.phase.value)
        for row in rows
    }
    assert found == ENDINGS, done.stderr
    for row in rows:
        assert (sandbox.folder().path / row.log).is_file(), row.case_id


@EVERYWHERE
def test_rows_come_as_they_are_measured_and_ctrl_c_keeps_them(sandbox: Any, place: Any) -> None:
    """Two are there while a third is built; the command then ends everything, and --resume does the rest."""
    opened = gate(sandbox, 2)
    command = started(sandbox, place)
    sandbox.wait_for_rows(2)
    command.send_signal(signal.SIGINT)
    _, said = command.communicate(timeout=240)
    assert command.returncode == 130, said
    assert sandbox.survivors() == []
    assert len(sandbox.rows()) == 2
    (opened / "open").touch()
    again = sandbox.run("run", "--resume", str(sandbox.folder().path), *place.words())
    assert again.returncode == 0, again.stderr
    assert {row.status for row in assert_whole(sandbox)} == {Status.PASS}


@EVERYWHERE
def test_a_killed_command_loses_nothing(sandbox: Any, place: Any) -> None:
    """What was measured is kept, whoever had it; nothing is measured beside the resumed run, or twice."""
    opened = gate(sandbox, 2)
    command = started(sandbox, place)
    sandbox.wait_for_rows(2)
    command.kill()
    command.communicate(timeout=120)
    (opened / "open").touch()
    again = sandbox.run("run", "--resume", str(sandbox.folder().path), *place.words())
    assert again.returncode == 0, again.stderr
    assert {row.status for row in assert_whole(sandbox)} == {Status.PASS}


@EVERYWHERE
def test_a_budget_ends_the_run(sandbox: Any, place: Any) -> None:
    """What there was no time for has no row, and is said to be left."""
    gate(sandbox, 2)
    command = started(sandbox, place, "--budget", "20s", "--timeout", "10")
    _, said = command.communicate(timeout=240)
    assert command.returncode == 3, said
    assert sandbox.survivors() == []
    assert 0 < len(sandbox.rows()) < 6, said


@EVERYWHERE
def test_an_option_that_is_none_is_refused_before_anything_is_written(sandbox: Any, place: Any) -> None:
    """With the ones that there are; and where one has the wrong type, with an example."""
    done = sandbox.measure(*SLOW, *place.words(groups_per_jobb="3"))
    assert done.returncode == 2
    assert f"unknown option of executor {place.executor!r} 'groups_per_jobb'" in done.stderr
    assert not sandbox.store_path.exists()
    if place.executor != "local":
        wrong = sandbox.measure(*SLOW, *place.words(lost_s="soon"))
        assert wrong.returncode == 2
        assert "executor option lost_s='soon' is not a float" in wrong.stderr


@EVERYWHERE
def test_it_says_what_it_has_and_whose_run_is_there(sandbox: Any, place: Any) -> None:
    """`fleet status`, for people and as JSON; a cluster names its nodes, and the run that measures on one."""
    said = sandbox.run("devices", *place.words())
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip()
    if place.executor == "local":
        return
    opened = gate(sandbox, 1)
    command = started(sandbox, place)
    sandbox.wait_for_rows(1)
    told = sandbox.run("devices", *place.words(), "--json")
    (opened / "open").touch()
    _, words = command.communicate(timeout=240)
    assert command.returncode == 0, words
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert {each["node"] for each in found} >= {"one", "two"}
    assert any(sandbox.folder().run_id in run for each in found for run in each["runs"]), found
    assert [each["refused"] for each in found if each["refused"]] == []

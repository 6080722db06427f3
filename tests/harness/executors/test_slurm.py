"""What only Slurm does to a job: each ends in rows that have Slurm's own words, or in another attempt."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from commands import SLOW, assert_whole, gate, lost, running_worker, started

from torchgauge.harness.executors.part_jobs import Stage
from torchgauge.harness.executors.slurm import state_of
from torchgauge.records import Status


@pytest.fixture
def place(slurm: Any, sandbox: Any) -> Any:
    """Slurm."""
    sandbox.environment.update(slurm.environment)
    return slurm


def ended(command: Any, code: int) -> str:
    """What ``command`` said until it ended with ``code``."""
    _, said = command.communicate(timeout=120)
    assert command.returncode == code, said
    return said


def running_job(place: Any) -> str:
    """The id of the array task that runs."""
    return place.cluster.run("squeue", "--noheader", "--array", "--states=R", "--Format=JobArrayID:").split()[
        0
    ]


def test_rows_say_which_job_of_which_attempt_measured_them(sandbox: Any, place: Any) -> None:
    """One array of three tasks; logs lie in a folder for each."""
    done = sandbox.measure(*SLOW, *place.words(groups_per_job="2"))
    assert done.returncode == 0, done.stderr
    rows = assert_whole(sandbox)
    facts = [dict(row.facts) for row in rows]
    assert len({each["job"] for each in facts}) == 3
    assert {each["attempt"] for each in facts} == {1}
    assert {each["node"] for each in facts} <= {"one", "two"}
    assert {Path(row.log).parts[1] for row in rows} == {"part-1", "part-2", "part-3"}
    assert all((sandbox.folder().path / row.log).is_file() for row in rows)


def test_a_job_whose_worker_is_killed_is_started_again(sandbox: Any, place: Any) -> None:
    """What it had measured stands; the rest is measured by a second attempt, and says so."""
    opened = gate(sandbox, 2)
    command = started(sandbox, place, "--prefetch", "1")
    sandbox.wait_for_rows(2)
    os.kill(running_worker(sandbox), signal.SIGKILL)
    (opened / "open").touch()
    said = ended(command, 0)
    rows = assert_whole(sandbox)
    assert sorted(dict(row.facts)["attempt"] for row in rows) == [1, 1, 1, 1, 1, 2]
    assert "was lost: FAILED" in said


def test_a_case_that_costs_every_job_its_life_ends_alone(sandbox: Any, place: Any) -> None:
    """Its row has Slurm's words; the others are measured."""
    opened = gate(sandbox, 1)
    command = started(sandbox, place, "--prefetch", "1", attempts="1")
    sandbox.wait_for_rows(1)
    os.kill(running_worker(sandbox), signal.SIGKILL)
    (opened / "open").touch()
    ended(command, 3)
    (row,) = lost(assert_whole(sandbox))
    assert row.reason.startswith("slurm job "), row.reason
    assert "FAILED (NonZeroExitCode)" in row.reason or "signal 9" in row.reason, row.reason


def test_a_cancelled_job_is_not_started_again(sandbox: Any, place: Any) -> None:
    """Somebody wanted it gone: its rows say CANCELLED, in the job's own log too."""
    gate(sandbox, 1)
    command = started(sandbox, place)
    sandbox.wait_for_rows(1)
    place.cluster.run("scancel", running_job(place))
    ended(command, 3)
    rows = lost(assert_whole(sandbox))
    assert len(rows) == 5
    assert all("CANCELLED" in row.reason for row in rows), rows[0].reason
    assert "CANCELLED" in rows[0].log_excerpt


def test_a_requeued_job_goes_on_as_another_attempt(sandbox: Any, place: Any) -> None:
    """Where a site requeues after all, the job that is started again measures nothing."""
    opened = gate(sandbox, 1)
    command = started(sandbox, place, sbatch="--requeue")
    sandbox.wait_for_rows(1)
    place.cluster.run("scontrol", "requeue", running_job(place))
    (opened / "open").touch()
    said = ended(command, 0)
    assert "Slurm requeued it" in said
    assert max(dict(row.facts)["attempt"] for row in assert_whole(sandbox)) == 2


def test_what_slurm_cannot_place_is_said_at_once(sandbox: Any, place: Any) -> None:
    """More devices than a node has, and a kind that the cluster has not: sbatch's own words."""
    done = sandbox.measure(*SLOW, *place.words(sbatch="--gres=npu:9"))
    assert done.returncode == 3
    rows = lost(assert_whole(sandbox))
    assert len(rows) == 6
    assert all("Requested node configuration is not available" in row.reason for row in rows)


def test_the_words_for_sbatch_name_the_device(sandbox: Any, place: Any) -> None:
    """A mixed pool: each device asks for its own kind; this cluster has no ``fake``."""
    done = sandbox.measure(*SLOW, *place.words(sbatch="--gres={device}:1"))
    assert done.returncode == 3
    assert "Invalid generic resource (gres) specification" in lost(assert_whole(sandbox))[0].reason


def test_a_job_that_is_never_started_ends_with_the_reason(sandbox: Any, place: Any) -> None:
    """Slurm would wait for ever."""
    done = sandbox.measure(*SLOW, *place.words(sbatch="--hold", queue_s="2"))
    assert done.returncode == 3
    rows = lost(assert_whole(sandbox))
    assert all("waited longer than 2 s: PENDING (JobHeldUser)" in row.reason for row in rows), rows[0].reason


def test_files_alone_say_that_a_job_is_done(sandbox: Any, place: Any) -> None:
    """The controller is gone while the job runs, and its rows come all the same."""
    opened = gate(sandbox, 1)
    command = started(sandbox, place, lost_s="60")
    sandbox.wait_for_rows(1)
    place.cluster.stop("slurmctld")
    try:
        (opened / "open").touch()
        ended(command, 0)
        assert {row.status for row in sandbox.rows()} == {Status.PASS}
    finally:
        place.cluster.start_controller()
    place.cluster.wait_until_empty()


def test_without_slurm_nothing_is_written(sandbox: Any) -> None:
    """It is said which programs are missing."""
    done = sandbox.measure(*SLOW, "--executor", "slurm", PATH="/nowhere")
    assert done.returncode == 3
    assert "cannot be found" in done.stderr
    assert not sandbox.store_path.exists()


def test_devices_of_this_machine_are_not_asked_for(sandbox: Any, place: Any) -> None:
    """A device that is only on the nodes can be planned; `all` would be those of this machine."""
    done = sandbox.measure("slow", "--device", "all", *place.words())
    assert done.returncode == 2
    assert "name the devices" in done.stderr


@pytest.mark.parametrize(
    ("line", "stage", "words", "again"),
    [
        (("PENDING", "0", "0", "", "Resources"), Stage.WAITING, "PENDING (Resources)", True),
        (("COMPLETING", "0", "0", "one", "None"), Stage.RUNNING, "COMPLETING on one", True),
        (("NODE_FAIL", "0", "0", "one", "NodeDown"), Stage.ENDED, "NODE_FAIL (NodeDown) on one", True),
        (("FAILED", "0", "9", "one", "X"), Stage.ENDED, "FAILED (X) on one, signal 9", True),
        (("FAILED", "0", "768", "", "X"), Stage.ENDED, "FAILED (X), exit status 3", True),
        (("CANCELLED", "0", "0", "", "None"), Stage.ENDED, "CANCELLED", False),
        (("PENDING", "1", "0", "", "BeginTime"), Stage.ENDED, "Slurm requeued it: PENDING (BeginTime)", True),
    ],
)
def test_a_line_of_squeue(line: tuple[str, ...], stage: Stage, words: str, again: bool) -> None:
    """State and Slurm's words, with how the job's process ended."""
    found = state_of(*line)
    assert (found.stage, found.words, found.again) == (stage, words, again)

"""What only Slurm does to a job: each ends in rows that have Slurm's own words, or in another attempt."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import SLOW, assert_whole, gate, lost, running_worker, started
from waiting import wait_until

from torchgauge.harness.executors.part_jobs import Stage
from torchgauge.harness.executors.slurm import state_of
from torchgauge.records import Status
from torchgauge.results import journal


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


def wait_for_note(sandbox: Any, words: str) -> None:
    """Return when the journal of the only run has a note with ``words``."""

    def there() -> bool:
        files = list(sandbox.store_path.glob("runs/[!.]*/journal.jsonl"))
        lines = [line for file in files for line in journal.read(file)]
        return any(words in line.data["text"] for line in lines if line.kind is journal.Kind.NOTE)

    wait_until(there, f"a note with {words!r}")


@pytest.fixture
def door(sandbox: Any, tmp_path: Path) -> Path:
    """A folder of commands before Slurm's own: none reaches the controller while the file ``away`` is there.

    A script ``first-COMMAND`` in it runs once before the command, and may exit. ``calls`` has a line for each
    call. What only tests words for sbatch is left alone.
    """
    folder = tmp_path / "door"
    folder.mkdir()
    for name in ("sbatch", "squeue", "scancel"):
        (folder / name).write_text(
            f"""#!/bin/sh
cd {folder}
echo {name} >> calls
if [ -e away ]; then
    echo "{name}: error: Unable to contact slurm controller (connect failure)" >&2
    exit 1
fi
if [ "$1" != --test-only ] && mv first-{name} then-{name} 2>/dev/null; then
    . ./then-{name}
fi
exec {shutil.which(name)} "$@"
"""
        )
        (folder / name).chmod(0o755)
    sandbox.environment["PATH"] = f"{folder}:{sandbox.environment['PATH']}"
    return folder


def all_tasks(place: Any, sandbox: Any) -> list[str]:
    """The ids of all array tasks of the only run that Slurm has or had."""
    name = f"--name=torchgauge-{sandbox.folder().run_id}"
    said = place.cluster.run("squeue", "--noheader", "--array", "--states=all", name, "--Format=JobArrayID:")
    return said.split()


def assert_measured_once(sandbox: Any, place: Any, tasks: int) -> None:
    """Every case passed in the first attempt of the only job that Slurm was given for it."""
    rows = assert_whole(sandbox)
    assert {(row.status, dict(row.facts)["attempt"]) for row in rows} == {(Status.PASS, 1)}
    assert all(row.attempts == () for row in rows)
    assert len(all_tasks(place, sandbox)) == tasks


def test_a_controller_that_is_away_costs_no_job(sandbox: Any, place: Any) -> None:
    """It is restarted while two jobs run and four wait, and is away for longer than a job may be silent."""
    opened = gate(sandbox, 1)
    command = started(sandbox, place, "--prefetch", "1", groups_per_job="1")
    sandbox.wait_for_rows(1)
    place.cluster.stop("slurmctld")
    try:
        wait_for_note(sandbox, "Slurm's controller does not answer: ")
    finally:
        place.cluster.start_controller()
    (opened / "open").touch()
    said = ended(command, 0)
    assert "it answers again after" in said
    assert_measured_once(sandbox, place, 6)


def test_jobs_are_submitted_when_the_controller_is_there_again(sandbox: Any, place: Any, door: Path) -> None:
    """It answered when the run began, and goes before the first job: none is ended as refused."""
    (door / "first-sbatch").write_text("touch away; exit 1\n")
    command = started(sandbox, place, groups_per_job="2")
    wait_for_note(sandbox, "Slurm's controller does not answer: squeue: error: Unable to contact")
    (door / "away").unlink()
    ended(command, 0)
    assert_measured_once(sandbox, place, 3)


def test_a_job_whose_number_was_lost_on_the_way_is_not_submitted_twice(
    sandbox: Any, place: Any, door: Path
) -> None:
    """Slurm has the array, and sbatch says that it waited in vain for the controller's answer."""
    (door / "first-sbatch").write_text(
        f'{shutil.which("sbatch")} "$@"; echo "Socket timed out on send/recv operation" >&2; exit 1\n'
    )
    done = sandbox.measure(*SLOW, *place.words(groups_per_job="2"))
    assert done.returncode == 0, done.stderr
    assert_measured_once(sandbox, place, 3)


def test_what_a_job_that_was_given_up_wrote_until_it_was_gone_counts(
    sandbox: Any, place: Any, door: Path
) -> None:
    """Slurm has forgotten it, and its last row is written while it is being cancelled."""
    opened = gate(sandbox, 1)
    command = started(sandbox, place, "--prefetch", "1", lost_s="0")
    sandbox.wait_for_rows(1)
    journals = f"{sandbox.store_path}/runs/*/work/part-1/journal.jsonl"
    (door / "first-scancel").write_text("exit 0\n")
    (door / "first-squeue").write_text(  # forgotten for the look, and for the question after scancel
        f"""echo '
touch {opened}/open
until grep -q kind...end {journals}; do sleep 0.1; done
exit 0
' > then-squeue.next; mv then-squeue.next first-squeue; exit 0
"""
    )
    ended(command, 0)
    assert_measured_once(sandbox, place, 1)


def test_a_controller_that_does_not_come_back_ends_the_run_with_its_words(
    sandbox: Any, place: Any, door: Path
) -> None:
    """No wait is without an end: as long as a job may wait for its place."""
    gate(sandbox, 1)
    command = started(sandbox, place, "--prefetch", "1", queue_s="5")
    sandbox.wait_for_rows(1)
    (door / "away").touch()
    wait_until(lambda: (door / "calls").read_text().count("\n") > 80, "many questions in vain")
    (door / "away").unlink()
    ended(command, 3)
    rows = lost(assert_whole(sandbox))
    assert len(rows) == 5
    assert "Slurm's controller does not answer: squeue: error: Unable to contact" in rows[0].reason


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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--gres=npu:9", "Requested node configuration is not available"),
        ("--gres={device}:1", "for fake: sbatch: error: Invalid generic resource (gres) specification"),
        ("--partition=nosuch", "invalid partition specified: nosuch"),
        ("--nosuch", "unrecognized option '--nosuch'"),
        ("--comment='open", "No closing quotation"),
        ("--time=never", "Invalid --time specification"),
    ],
)
def test_a_mistake_in_the_words_for_sbatch_is_said_before_anything_is_written(
    sandbox: Any, place: Any, words: str, said: str
) -> None:
    """More devices than a node has, a kind that the cluster has not, and words that are none."""
    done = sandbox.measure(*SLOW, *place.words(sbatch=words))
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert not sandbox.store_path.exists()


def test_nodes_that_are_away_for_now_are_no_mistake(sandbox: Any, place: Any) -> None:
    """All are drained when the run begins; its jobs wait for them."""
    nodes = "NodeName=one,two"
    place.cluster.run("scontrol", "update", nodes, "State=DRAIN", "Reason=test")
    try:
        command = started(sandbox, place)
        wait_for_note(sandbox, "waiting: PENDING (")
    finally:
        place.cluster.run("scontrol", "update", nodes, "State=RESUME")
    ended(command, 0)
    assert_whole(sandbox)


def test_what_slurm_refuses_later_is_named_once_in_the_summary(sandbox: Any, place: Any, door: Path) -> None:
    """Six jobs of one cause: their count, the cause, and the command that fills the gap; which does."""
    (door / "first-sbatch").write_text(
        """mv then-sbatch first-sbatch
echo "sbatch: error: Job violates accounting policy" >&2
exit 1
"""
    )
    done = sandbox.measure(*SLOW, *place.words(groups_per_job="1"))
    assert done.returncode == 3
    lost(assert_whole(sandbox))
    why = "6 infra (lost_worker): it was refused: sbatch: error: Job violates accounting policy"
    assert done.stderr.count(f"\n{why}\n") == 1, done.stderr
    (door / "first-sbatch").unlink()
    again = ("--resume", "latest", "--retry", "infra", "--store", str(sandbox.store_path))
    done = sandbox.run("run", *again, *place.words())
    assert done.returncode == 0, done.stderr
    assert {row.status for row in assert_whole(sandbox)} == {Status.PASS}


@pytest.mark.torch
def test_no_row_of_a_node_with_another_torch_is_of_the_run(
    sandbox: Any, place: Any, tmp_path: Path, other_torch: Path
) -> None:
    """What its job measured is measured again by another job."""
    command = tmp_path / "torchgauge"
    command.write_text(
        f"""#!/bin/sh
case $2 in
*/part-2.json)
    until grep -q kind...environment "$(dirname "$2")"/part-1/journal.jsonl; do sleep 0.1; done
    PYTHONPATH={other_torch}:$PYTHONPATH
    ;;
esac
exec {sys.executable} -m torchgauge.cli.main "$@"
"""
    )
    command.chmod(0o755)
    words = ("toy", "--models", "mlp,sum", "--device", "cpu", "--config", "eager")
    done = sandbox.measure(*words, *place.words(groups_per_job="1", torchgauge=str(command)))
    assert done.returncode == 0, done.stderr
    assert "was lost: its node has torch 2.7.1 instead of" in done.stderr
    rows = assert_whole(sandbox)
    assert sorted((row.status, dict(row.facts)["attempt"]) for row in rows) == [
        (Status.PASS, 1),
        (Status.PASS, 2),
    ]


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

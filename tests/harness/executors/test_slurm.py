"""What only Slurm does to a job: each ends in rows that have Slurm's own words, or in another attempt."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import SLOW, assert_whole, gate, lost, running_worker, started
from slurm_cluster import free_ports, missing
from waiting import wait_until

from torchgauge import __version__
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
    call. The job that tries the words for sbatch is left alone.
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
case "$*" in
--test-only* | *torchgauge-words-* | *torchgauge-none*) ;;
*) if mv first-{name} then-{name} 2>/dev/null; then . ./then-{name}; fi ;;
esac
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
        wait_for_note(sandbox, "Slurm's controller does not respond: ")
    finally:
        place.cluster.start_controller()
    (opened / "open").touch()
    said = ended(command, 0)
    assert "the job engine responds again after" in said
    assert_measured_once(sandbox, place, 6)


def test_jobs_are_submitted_when_the_controller_is_there_again(sandbox: Any, place: Any, door: Path) -> None:
    """It goes before the first job, and answers late: none is ended as refused, and none is lost."""
    (door / "first-sbatch").write_text("touch away; exit 1\n")
    command = started(sandbox, place, groups_per_job="2")
    wait_for_note(sandbox, "Slurm's controller does not respond: squeue: error: Unable to contact")
    (door / "first-sbatch").write_text("sleep 6\n")  # longer than a job may be silent
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
    assert "Slurm's controller does not respond: squeue: error: Unable to contact" in rows[0].reason


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
    assert re.search(r"slurm job \S+ on (one|two) was lost: FAILED", said)


def test_what_a_node_lost_is_measured_there_where_no_other_is_up(sandbox: Any, place: Any) -> None:
    """Slurm would take a job for the node that is drained, and let it wait for ever."""
    opened = gate(sandbox, 1)
    place.cluster.run("scontrol", "update", "NodeName=two", "State=DRAIN", "Reason=test")
    try:
        command = started(sandbox, place, "--prefetch", "1", attempts="3")
        sandbox.wait_for_rows(1)
        os.kill(running_worker(sandbox), signal.SIGKILL)
        (opened / "open").touch()
        ended(command, 0)
    finally:
        place.cluster.run("scontrol", "update", "NodeName=two", "State=RESUME")
    assert {dict(row.facts)["node"] for row in assert_whole(sandbox)} == {"one"}


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


def test_a_model_that_the_end_of_its_job_killed_first_did_not_crash(sandbox: Any, place: Any) -> None:
    """SIGTERM reaches the model before its worker, which has time to call that a crash of the model."""
    opened = gate(sandbox, 1)
    command = started(sandbox, place, "--prefetch", "1")
    sandbox.wait_for_rows(1)
    worker = running_worker(sandbox)
    for pid in leaves_below(worker):
        os.kill(pid, signal.SIGTERM)
    part = sandbox.folder().path / "work/part-1/journal.jsonl"
    wait_until(lambda: '"status":"crash"' in part.read_text(), "the row of a crash")
    os.kill(worker, signal.SIGKILL)
    (opened / "open").touch()
    ended(command, 0)
    rows = assert_whole(sandbox)
    assert {(row.status, row.flaky) for row in rows} == {(Status.PASS, "")}
    (attempts,) = (row.attempts for row in rows if row.attempts)
    assert [each.status for each in attempts] == [Status.INFRA, Status.PASS]
    assert re.fullmatch(
        r"slurm job \S+ on (one|two) was lost: .*; signal 15 \(SIGTERM\) in phase build", attempts[0].reason
    )


def leaves_below(pid: int) -> list[int]:
    """Return the processes below ``pid`` that have started none."""
    below = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [leaf for child in below for leaf in leaves_below(child)] or [pid]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--gres=npu:9", "Requested node configuration is not available"),
        ("--gres={device}:1", "for fake: sbatch: error: Invalid generic resource (gres) specification"),
        ("--partition=nosuch", "invalid partition specified: nosuch"),
        ("--nosuch", "unrecognized option '--nosuch'"),
        ("--comment='open", "No closing quotation"),
        ("--test-only", "sbatch refuses these options (sbatch: Job "),
        ("--wrap=true", "Script arguments not permitted with --wrap option"),
    ],
)
def test_a_mistake_in_the_words_for_sbatch_is_said_before_anything_is_written(
    sandbox: Any, place: Any, words: str, said: str
) -> None:
    """Words that sbatch does not know, that it ends well with, and that the controller alone refuses."""
    done = sandbox.run("plan", *SLOW, *place.words(sbatch=words))
    assert done.returncode == (2 if "open" in words else 0), done.stderr  # what needs no Slurm to be seen
    assert (said in done.stderr) == ("open" in words)
    done = sandbox.measure(*SLOW, *place.words(sbatch=words))
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert not sandbox.store_path.exists()


def test_words_for_sbatch_cannot_hide_the_jobs(sandbox: Any, place: Any) -> None:
    """They have a name, an array and an output of their own, and are found and measured once all the same."""
    done = sandbox.measure(*SLOW, *place.words(sbatch="--job-name=lab --array=7-9 --output=/nowhere/%j"))
    assert done.returncode == 0, done.stderr
    assert_measured_once(sandbox, place, 1)


def test_a_store_may_have_any_name(make_sandbox: Any, place: Any, tmp_path: Path) -> None:
    """Spaces, quotes, and what sbatch itself would replace in the path of an output."""
    folder = tmp_path / "it's 100%x $HOME"
    folder.mkdir()
    box = make_sandbox()
    box.environment.update(place.environment)
    box.store_path = folder / "store"
    done = box.measure(*SLOW, *place.words())
    assert done.returncode == 0, done.stderr
    assert_measured_once(box, place, 1)


@pytest.mark.full  # sbatch is waited for
def test_words_with_which_sbatch_waits_are_a_mistake(sandbox: Any, place: Any) -> None:
    """It would return when the jobs have ended; nothing is left of the one that showed it."""
    done = sandbox.measure(*SLOW, *place.words(sbatch="--wait"))
    assert done.returncode == 2, done.stderr
    assert "no job would start for fake: sbatch submitted a test job, but does not return (" in done.stderr
    assert not sandbox.store_path.exists()


def test_a_time_limit_above_that_of_the_partition_ends_the_run_at_once(sandbox: Any, place: Any) -> None:
    """Slurm accepts the job and never starts it: a mistake, unless the scheduler was faster than squeue."""
    place.cluster.run("scontrol", "update", "PartitionName=all", "MaxTime=60")
    try:
        done = sandbox.measure(*SLOW, *place.words(sbatch="--time=2:00:00"))
    finally:
        place.cluster.run("scontrol", "update", "PartitionName=all", "MaxTime=INFINITE")
    if sandbox.store_path.exists():
        assert done.returncode == 3, done.stderr
        assert "\n6 infra (lost_worker): Slurm will never start the job: PENDING (Partition" in done.stderr
    else:
        assert done.returncode == 2, done.stderr
        assert "no job would start for fake: a job would stay PENDING (Partition" in done.stderr


@pytest.mark.parametrize("verb", ["run", "resume"])
def test_a_folder_that_cannot_be_written_is_a_mistake(
    sandbox: Any, place: Any, tmp_path: Path, verb: str
) -> None:
    """It is tried before the plan is written, and before a run that goes on is touched."""
    (tmp_path / "file").touch()
    words = place.words(folder=str(tmp_path / "file/jobs"))
    if verb == "run":
        done = sandbox.measure(*SLOW, *words)
        assert not sandbox.store_path.exists()
    else:
        assert sandbox.measure(*SLOW, *place.words(sbatch="--hold", queue_s="0")).returncode == 3
        before = (sandbox.folder().path / "journal.jsonl").read_bytes()
        store = ("--store", str(sandbox.store_path))
        done = sandbox.run("run", "--resume", "latest", *store, "--retry", "infra", *words)
        assert (sandbox.folder().path / "journal.jsonl").read_bytes() == before
    assert done.returncode == 2, done.stderr
    assert "file/jobs' cannot be written: Not a directory" in done.stderr


def test_a_plan_shows_the_words_and_the_script_that_a_run_submits(
    sandbox: Any, place: Any, door: Path
) -> None:
    """Each job with its cases; Slurm is not asked, and may be away."""
    words = place.words(groups_per_job="4", sbatch="--comment='a b' --begin=now")
    (door / "away").touch()
    done = sandbox.run("plan", *SLOW, *sandbox.quick, *words)
    assert done.returncode == 0, done.stderr
    assert not (door / "calls").exists()
    jobs, command, script = done.stdout.partition("job part-1 ")[2].split("\n\n")
    assert jobs.splitlines() == ["on fake: 4 groups, 4 cases", "job part-2 on fake: 2 groups, 2 cases"]
    (door / "away").unlink()
    (door / "first-sbatch").write_text(
        f"""printf '%s\\n' "$@" > {door}/words
for last; do :; done
cp "$last" {door}/script
"""
    )
    done = sandbox.measure(*SLOW, *words)
    assert done.returncode == 0, done.stderr
    folder = str(sandbox.folder().path)
    (planned,) = re.findall(r"--job-name=torchgauge-(\S+)", command)

    def submitted(text: str) -> str:
        text = text.replace(folder, f"{sandbox.store_path.parent}/STORE/runs/{planned}")
        return re.sub(r"(array-part-1-)[0-9a-f]{8}", r"\1", text.replace(sandbox.folder().run_id, planned))

    told = submitted((door / "words").read_text()).splitlines()
    assert [submitted(word) for word in shlex.split(command)] == ["sbatch", *told]
    assert submitted(script) == submitted((door / "script").read_text())


def test_a_plan_of_several_devices_shows_the_jobs_of_all(sandbox: Any) -> None:
    """A machine without Slurm plans; the words of the first device stand for those of the others."""
    words = ("--executor", "slurm", "--executor-option", "sbatch=--gres={device}:1")
    more = ("--executor-option", "groups_per_job=5", "--executor-option", "folder=~/jobs 1")
    both = ("plan", "slow", "--device", "fake,cpu", "--config", "eager", *words, *more)
    done = sandbox.run(*both, PATH="/nowhere", HOME="/home/lab")
    assert done.returncode == 0, done.stderr
    jobs = re.findall(r"^job (part-\d) on (\w+): (\d) groups?,", done.stdout, re.MULTILINE)
    assert jobs == [
        ("part-1", "fake", "5"),
        ("part-2", "fake", "1"),
        ("part-3", "cpu", "5"),
        ("part-4", "cpu", "1"),
    ]
    assert "--gres=fake:1" in done.stdout
    assert "--array=0-1" in done.stdout
    assert "'/home/lab/jobs 1/" in done.stdout
    plain = sandbox.run(*both, "--json", PATH="/nowhere")
    assert len(json.loads(plain.stdout)["groups"]) == 12  # a plan file, and nothing behind it
    wrong = sandbox.run(*both, "--executor-option", "lost_s=soon")
    assert wrong.returncode == 2
    assert not sandbox.store_path.exists()


PAGE = Path(__file__).parents[3] / "docs/how-to/run-on-a-cluster.md"


@pytest.fixture
def typed(sandbox: Any) -> Iterator[Any]:
    """A function that types lines into a shell of a user whose home is new, and returns how it ended."""
    if lacking := missing():
        pytest.skip(f"{', '.join(lacking)} cannot be found: make slurm installs them")
    home = Path(tempfile.mkdtemp(prefix="tg-home-", dir="/tmp"))  # short: it holds a socket
    known = {
        **sandbox.environment,
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
    }

    def ended(lines: str) -> subprocess.CompletedProcess[str]:
        with (home / "said").open("w+") as said:  # daemons keep it open, and would keep a pipe
            done = subprocess.run(
                ["bash", "-eu", "-c", lines],
                check=False,
                env=known,
                cwd=home,
                stdout=said,
                stderr=said,
                timeout=600,
            )
            said.seek(0)
            return subprocess.CompletedProcess(done.args, done.returncode, said.read())

    yield ended
    shutil.rmtree(home, ignore_errors=True)


@pytest.mark.torch
def test_the_cluster_of_the_page_is_ten_lines_and_measures(typed: Any) -> None:
    """What the page says is typed as it stands, but for ports that are free and fewer models."""
    section = PAGE.read_text().partition("## Try it on one machine\n")[2].partition("\n## ")[0]
    begin, end = re.findall(r"^```sh\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    configuration = begin.partition("<<END\n")[2].partition("END\n")[0]
    assert len(configuration.splitlines()) == 10
    controller, node = free_ports(2)
    begin = begin.replace("ClusterName=try", f"ClusterName=try\nSlurmctldPort={controller}")
    begin = begin.replace(" CPUs=", f" Port={node} CPUs=").replace("run toy ", "run toy --models mlp ")
    try:
        done = typed(begin)
        assert done.returncode == 0, done.stdout
        assert re.search(r"^note: submitted slurm job \d+_0$", done.stdout, re.MULTILINE)
        assert "2/2 pass" in done.stdout
    finally:
        ended = typed(f"cd ~/slurm; export SLURM_CONF=$PWD/slurm.conf\n{end}")
    assert ended.returncode == 0, ended.stdout


@pytest.fixture
def pool(sandbox: Any) -> tuple[str, ...]:
    """The words that measure the pool ``nodes`` of a campaign of the six slow models, which is planned."""
    (sandbox.store_path.parent / "torchgauge.yml").write_text(
        "version: 1\ncampaign: {suites: [slow], configs: [eager]}\n"
        "pools: [{name: nodes, device: fake, runs-on: [self-hosted, tg-login]}]\n"
    )
    assert sandbox.run("ci", "plan").returncode == 0
    return ("ci", "run", "--pool", "nodes", *sandbox.quick, "--store", str(sandbox.store_path))


def test_a_pool_of_continuous_integration_is_measured_by_jobs(
    sandbox: Any, place: Any, pool: tuple[str, ...]
) -> None:
    """From the plan of a campaign to what is collected of it; the job itself runs on the login node."""
    folder = sandbox.store_path.parent
    named = place.words(groups_per_job="2")[2:]  # the runner says on which executor
    words = (*pool, "--deadline", "10m", *named)
    done = sandbox.run(*words, TORCHGAUGE_EXECUTOR="slurm", SBATCH_COMMENT="a pool")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    (folder / "artifacts").mkdir()
    (folder / said["out"]).rename(folder / "artifacts" / said["artifact"])
    assert_measured_once(sandbox, place, 3)
    done = sandbox.run("ci", "collect", "artifacts", "--store", "history")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "complete, 6/6 cases: 6 pass" in done.stdout


@pytest.mark.parametrize("words", ["--partition=nosuch", "--test-only"])
def test_a_pool_is_not_begun_with_words_that_slurm_refuses(
    sandbox: Any, place: Any, pool: tuple[str, ...], words: str
) -> None:
    """Exit 2: there is no result set, and no store."""
    before = set(sandbox.store_path.parent.iterdir())
    done = sandbox.run(*pool, "--out", "set", *place.words(sbatch=words))
    assert done.returncode == 2, done.stderr
    assert "no job would start for fake: sbatch" in done.stderr
    assert set(sandbox.store_path.parent.iterdir()) == before


@pytest.mark.parametrize("how", ["cancelled", pytest.param("deadline", marks=pytest.mark.full)])
def test_a_pool_that_is_stopped_submits_what_its_jobs_measured(
    sandbox: Any, place: Any, pool: tuple[str, ...], how: str
) -> None:
    """A job of the forge is cancelled, or its time is over: no job of Slurm is left; its set is packed."""
    gate(sandbox, 2)
    deadline = "90s" if how == "deadline" else "30m"
    command = sandbox.start(*pool, "--out", "set", "--deadline", deadline, *place.words())
    sandbox.wait_for_rows(2)
    if how == "cancelled":
        command.send_signal(signal.SIGTERM)
    told, said = command.communicate(timeout=240)
    assert command.returncode == 0, said
    assert json.loads(told)["state"] == ("interrupted" if how == "cancelled" else "out_of_budget")
    assert sandbox.survivors() == []
    assert {row.status for row in sandbox.rows()} == {Status.PASS}
    assert len(sandbox.rows()) == 2


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
    done = sandbox.measure(*SLOW, *place.words(groups_per_job="1", sbatch="--comment='a night'"))
    assert done.returncode == 3
    lost(assert_whole(sandbox))
    why = "6 infra (lost_worker): it was refused: sbatch: error: Job violates accounting policy"
    assert done.stderr.count(f"\n{why}\n") == 1, done.stderr
    (door / "first-sbatch").unlink()
    typed = re.findall(
        "^incomplete. Measure the missing cases with: torchgauge (.*)$", done.stderr, re.MULTILINE
    )
    done = sandbox.run(*shlex.split(typed[0]))
    assert done.returncode == 0, done.stderr
    assert "submitted slurm job" in done.stderr  # no machine but the nodes has the devices
    assert {row.status for row in assert_whole(sandbox)} == {Status.PASS}


def on_nodes(folder: Path, nodes: str, path: Path) -> str:
    """A command that starts torchgauge, on ``nodes`` with ``path`` first on its path."""
    command = folder / "torchgauge"
    command.write_text(
        f"""#!/bin/sh
case $SLURMD_NODENAME in {nodes}) PYTHONPATH={path}:$PYTHONPATH ;; esac
exec {sys.executable} -m torchgauge.cli.main "$@"
"""
    )
    command.chmod(0o755)
    return str(command)


@pytest.fixture
def other_torchgauge(tmp_path: Path) -> Path:
    """A folder that makes of torchgauge another version where it is on the path."""
    folder = tmp_path / "other-torchgauge"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text("import torchgauge\ntorchgauge.__version__ = '9.2'\n")
    return folder


def test_a_node_that_loses_every_job_costs_no_case(
    sandbox: Any, place: Any, tmp_path: Path, other_torchgauge: Path
) -> None:
    """It refuses at once, so that it is free again and takes the next job: another node gets what it lost."""
    command = on_nodes(tmp_path, "one", other_torchgauge)
    done = sandbox.measure(*SLOW, *place.words(groups_per_job="1", torchgauge=command))
    assert done.returncode == 0, done.stderr
    assert (
        f"was planned by torchgauge {__version__}, but this is torchgauge 9.2; 1 group is started again"
        in done.stderr
    )
    rows = assert_whole(sandbox)
    assert {(row.status, dict(row.facts)["node"]) for row in rows} == {(Status.PASS, "two")}
    assert max(dict(row.facts)["attempt"] for row in rows) == 2


def test_the_cause_of_jobs_that_measure_nowhere_is_in_their_own_words(
    sandbox: Any, place: Any, tmp_path: Path, other_torchgauge: Path
) -> None:
    """All nodes have another torchgauge; the summary has Slurm's words and those of the worker once."""
    command = on_nodes(tmp_path, "*", other_torchgauge)
    done = sandbox.measure(*SLOW, *place.words(groups_per_job="2", attempts="3", torchgauge=command))
    assert done.returncode == 3
    rows = lost(assert_whole(sandbox))
    assert {re.sub(r"^slurm job \S+ on (one|two): .*", r"\1", row.reason) for row in rows} <= {"one", "two"}
    (why,) = re.findall(r"^6 infra \(lost_worker\): (.*)$", done.stderr, re.MULTILINE)
    said = (
        f"error: {sandbox.folder().run_id} was planned by torchgauge {__version__}, "
        "but this is torchgauge 9.2"
    )
    assert why == f"FAILED (NonZeroExitCode), exit status 2: {said}"


@pytest.mark.full  # a controller that does not answer is waited for
def test_jobs_that_could_not_be_cancelled_are_named(sandbox: Any, place: Any, door: Path) -> None:
    """Ctrl-C while the controller is away; the run goes on when it is there, and cancels them first."""
    opened = gate(sandbox, 1)
    command = started(sandbox, place, "--prefetch", "1")
    sandbox.wait_for_rows(1)
    (door / "away").touch()
    command.send_signal(signal.SIGINT)
    _, said = command.communicate(timeout=300)
    assert command.returncode == 130, said
    cancel = f"scancel --name=torchgauge-{sandbox.folder().run_id}"
    assert f"jobs may still run: Slurm did not end them. Try: {cancel}" in said
    (door / "away").unlink()
    (opened / "open").touch()
    done = sandbox.run("run", "--resume", "latest", "--store", str(sandbox.store_path), *place.words())
    assert done.returncode == 0, done.stderr
    assert_measured_once(sandbox, place, 2)


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
    assert "--device with their names" in done.stderr


@pytest.mark.parametrize(
    ("line", "stage", "words", "again", "node"),
    [
        (("PENDING", "0", "0", "", "Resources"), Stage.WAITING, "PENDING (Resources)", True, ""),
        (
            ("PENDING", "0", "0", "", "PartitionTimeLimit"),
            Stage.ENDED,
            "Slurm will never start the job: PENDING (PartitionTimeLimit)",
            False,
            "",
        ),
        (("NODE_FAIL", "0", "0", "one", "NodeDown"), Stage.ENDED, "NODE_FAIL (NodeDown)", True, "one"),
        (("FAILED", "0", "9", "one", "X"), Stage.ENDED, "FAILED (X), signal 9", True, "one"),
        (("CANCELLED", "0", "0", "", "None"), Stage.ENDED, "CANCELLED", False, ""),
        (
            ("PENDING", "1", "0", "", "BeginTime"),
            Stage.ENDED,
            "Slurm requeued it: PENDING (BeginTime)",
            True,
            "",
        ),
    ],
)
def test_a_line_of_squeue(line: tuple[str, ...], stage: Stage, words: str, again: bool, node: str) -> None:
    """State and Slurm's words, with how the job's process ended; where it was is told apart."""
    found = state_of(*line)
    assert (found.stage, found.words, found.again, found.node) == (stage, words, again, node)

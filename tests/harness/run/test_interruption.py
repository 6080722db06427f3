"""A run that is interrupted, or whose parent is killed, loses no row, repeats none, leaves nothing behind."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_until

MODELS = 6

STOPPING = "stopping: waiting for "
MOMENTS = 8

GATE = "TORCHGAUGE_FAULTS_GATE"
"""As the suite ``slow`` has it."""


def start_slow(sandbox: Any, built: int | None = None) -> subprocess.Popen[str]:
    """Start a run of six slow models that need no torch; where ``built`` of them are, the others wait."""
    if built is not None:
        gate = sandbox.store_path.parent / "gate"
        gate.mkdir()
        for number in range(built):
            (gate / f"ticket-{number}").touch()
        sandbox.environment[GATE] = str(gate)
    store = ("--store", str(sandbox.store_path))
    return sandbox.start("run", "slow", "--device", "fake", "--config", "eager", *sandbox.quick, *store)


def open_gate(sandbox: Any) -> None:
    """Let the models that wait go on, and all that come later."""
    (sandbox.store_path.parent / "gate" / "open").touch()


def listed(sandbox: Any) -> dict[str, Any]:
    """The only run as ``torchgauge results list --json`` shows it."""
    (run,) = json.loads(sandbox.run("results", "list", "--json", "--store", str(sandbox.store_path)).stdout)
    return run


def resume(sandbox: Any) -> subprocess.CompletedProcess[str]:
    """Go on with the only run."""
    if GATE in sandbox.environment:
        open_gate(sandbox)
    return sandbox.run("run", "--resume", str(sandbox.folder().path))


def assert_complete(sandbox: Any) -> None:
    """Every case has exactly one row in the journal and in the tables."""
    sandbox.assert_accounted()
    run = listed(sandbox)
    assert (run["state"], run["published"], run["counts"]) == ("complete", True, {"pass": MODELS})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_keeps_its_rows_and_can_be_resumed(sandbox, number) -> None:
    """Ctrl-C ends with 130 and a run that is listed as interrupted; a resume runs the rest and no more."""
    process = start_slow(sandbox, built=1)
    sandbox.wait_for_rows(1)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert sandbox.survivors() == []
    kept = sandbox.rows()
    assert 1 <= len(kept) < MODELS
    run = listed(sandbox)
    assert run["state"] == "interrupted"
    assert run["counts"]["pass"] == len(kept)

    done = resume(sandbox)
    assert done.returncode == 0, done.stderr
    assert f"{len(kept)} done before" in done.stderr
    assert sandbox.rows()[: len(kept)] == kept
    assert_complete(sandbox)


def test_the_printed_resume_command_works(sandbox) -> None:
    """What an interrupted run says to type is enough to go on with it."""
    process = start_slow(sandbox, built=1)
    sandbox.wait_for_rows(1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    (line,) = [line for line in said.splitlines() if "Continue with: torchgauge" in line]
    open_gate(sandbox)
    done = sandbox.run(*shlex.split(line.partition("Continue with: torchgauge ")[2]))
    assert done.returncode == 0, done.stderr


def test_a_killed_parent_leaves_no_process_and_loses_no_row(sandbox) -> None:
    """After a SIGKILL of the command its host and workers end by themselves; a resume completes the run."""
    process = start_slow(sandbox, built=2)
    sandbox.wait_for_rows(2)
    process.kill()
    process.communicate(timeout=120)
    assert sandbox.survivors() == []
    kept = sandbox.rows()
    assert listed(sandbox)["state"] == "interrupted"

    done = resume(sandbox)
    assert done.returncode == 0, done.stderr
    assert sandbox.rows()[: len(kept)] == kept
    assert_complete(sandbox)


def test_a_complete_run_is_not_resumed(sandbox) -> None:
    """Resuming a run that is complete is a usage error and changes nothing."""
    assert sandbox.measure("toy", "--device", "fake", "--config", "eager", "--models", "noop").returncode == 0
    before = sandbox.folder().journal_path.read_bytes()
    done = resume(sandbox)
    assert done.returncode == 2
    assert "is complete" in done.stderr
    assert sandbox.folder().journal_path.read_bytes() == before


def test_a_running_run_is_not_resumed(sandbox) -> None:
    """A second writer is refused while the first one writes."""
    process = start_slow(sandbox, built=1)
    sandbox.wait_for_rows(1)
    process.send_signal(signal.SIGSTOP)  # it still writes when the second command has started at last
    try:
        done = resume(sandbox)
    finally:
        process.send_signal(signal.SIGCONT)
    assert done.returncode == 2
    assert "being written by another process" in done.stderr
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert_complete(sandbox)


def test_two_runs_share_a_store(sandbox) -> None:
    """Two commands that write one new store at once both complete."""
    processes = [start_slow(sandbox) for _ in range(2)]
    for process in processes:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    runs = sandbox.store.runs()
    assert [(run.state.value, run.published, run.recorded) for run in runs] == [
        ("complete", True, MODELS)
    ] * 2


def test_a_killed_host_costs_an_attempt_and_no_row(sandbox) -> None:
    """A new host runs the others, and the case that was in flight once more; its row tells of both."""
    process = start_slow(sandbox, built=1)
    sandbox.wait_for_rows(1)
    (host,) = children(children(process.pid)[0])  # between them is its keeper
    os.kill(host, signal.SIGKILL)
    open_gate(sandbox)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said
    rows = sandbox.assert_accounted()
    assert Counter(row.status.value for row in rows) == {"pass": MODELS}
    (again,) = [row for row in rows if row.attempts]
    assert [(each.status.value, each.cause and each.cause.value) for each in again.attempts] == [
        ("infra", "lost_worker"),
        ("pass", None),
    ]


@pytest.mark.torch
def test_an_interrupt_while_the_host_imports_is_heard(sandbox) -> None:
    """Ctrl-C before the first worker exists ends the run at once: its plan is on disk, and no row is."""
    words = (
        "--device",
        "cpu",
        "--config",
        "eager",
        "--models",
        "healthy",
        "--store",
        str(sandbox.store_path),
    )
    process = sandbox.start("run", "faults", *words, *sandbox.quick)
    wait_until(lambda: list(sandbox.store_path.glob("runs/[!.]*/logs/host.log")), "the log of a host")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    assert [planned.case.workload.model for planned in sandbox.folder().plan().cases] == ["healthy"]
    assert sandbox.rows() == []


def assert_left_nothing(sandbox: Any) -> None:
    """No process, no temporary file."""
    assert sandbox.survivors() == []
    assert sandbox.scratch() == []


def said_until(process: subprocess.Popen[str], words: str) -> str:
    """What is said until a line holds ``words``."""
    said = ""
    assert process.stderr is not None
    for line in process.stderr:
        said += line
        if words in line:
            return said
    pytest.fail(f"it ended without {words!r}: {said}")


@pytest.mark.parametrize(
    "module", ["click", "torchgauge.errors", "torchgauge.cli.options", "torchgauge.records", "msgspec"]
)
def test_amid_imports_it_ends_without_a_traceback(sandbox, module) -> None:
    """From the first import on that a person can meet; Python says which one is done."""
    words = ("run", "toy", "--device", "fake", "--store", str(sandbox.store_path))
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "torchgauge.cli.start", *words],
        env=sandbox.environment, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    sandbox.started.append(process)
    said = said_until(process, f" {module}\n")
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=120)
    assert process.returncode == 130, rest
    assert "Traceback" not in said + rest
    assert "KeyboardInterrupt" not in said + rest
    assert rest.endswith("interrupted\n")
    assert_left_nothing(sandbox)


def test_the_first_one_says_what_is_waited_for(sandbox) -> None:
    """At once: the case that runs, and that a second one need not wait."""
    process = start_slow(sandbox, built=1)
    sandbox.wait_for_rows(1)
    process.send_signal(signal.SIGINT)
    said = said_until(process, STOPPING)
    assert "waiting for slow_" in said.splitlines()[-1]
    assert said.endswith(" to end; Ctrl-C again stops at once\n")
    _, rest = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Continue with: torchgauge run --resume" in rest
    sandbox.assert_accounted("interrupted")
    assert_left_nothing(sandbox)


def test_the_second_one_waits_for_nothing(sandbox) -> None:
    """Where the host is frozen, the first one would wait for it; and a resume loses nothing."""
    process = start_slow(sandbox, built=1)
    sandbox.wait_for_rows(1)
    (host,) = children(children(process.pid)[0])
    os.kill(host, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    said_until(process, STOPPING)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=120)
    assert process.returncode == 130
    assert_left_nothing(sandbox)
    assert not (sandbox.folder().path / "work").exists()
    open_gate(sandbox)
    assert resume(sandbox).returncode == 0
    assert_complete(sandbox)


@pytest.mark.full
def test_any_moment_will_do(sandbox) -> None:
    """From the first import to the end of a run that lasts as long as it happens to."""
    began = time.monotonic()
    words = ("run", "toy", "--models", "noop,sum", "--device", "fake", *sandbox.quick)
    assert sandbox.run(*words, "--store", str(sandbox.store_path)).returncode == 0
    lasted, dice = time.monotonic() - began, random.Random(0)
    for number in range(MOMENTS):
        store = Path(f"{sandbox.store_path}-{number}")
        process = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "torchgauge.cli.start", *words, "--store", str(store)],
            env=sandbox.environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        sandbox.started.append(process)
        said_until(process, " click\n")  # before that it is Python's to answer
        time.sleep(dice.random() * lasted)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=120)
        assert process.returncode in {130, 0, -signal.SIGINT}, (
            said
        )  # the last where Python was ending already
        assert "Traceback" not in said, said
        assert "KeyboardInterrupt" not in said, said
        assert_left_nothing(sandbox)


def children(pid: int) -> list[int]:
    """Process ids of the direct children of ``pid``."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]

"""Several processes of torchgauge, started by torchrun or by hand: one plan, one journal, one row each."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from waiting import wait_until

from torchgauge.records import Cause, Result, Status

pytestmark = [pytest.mark.torch, pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")]
CASES = ("ranks", "--device", "cpu", "--config", "eager")
Start = Callable[..., "subprocess.Popen[str]"]


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


@pytest.fixture
def start(sandbox: Any) -> Start:
    """Start a command with variables beside the sandbox's; it is ended with the test."""

    def process(*command: str, **variables: str) -> subprocess.Popen[str]:
        found = subprocess.Popen(
            [sys.executable, *command],
            env={**sandbox.environment, **variables},
            cwd=sandbox.store_path.parent,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        sandbox.started.append(found)
        return found

    return process


def of_rank(start: Start, sandbox: Any, rank: int, port: int, *words: str, **more: str) -> Any:
    """One of two launched processes, as a launcher would start it."""
    variables = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    command = ("-m", "torchgauge", "run", *CASES, *words, *sandbox.quick, "--store", str(sandbox.store_path))
    return start(*command, **{**variables, "MASTER_PORT": str(port), **more})


def ended(process: Any) -> tuple[int, str]:
    """The exit code of a process, and what it complained about."""
    _, complained = process.communicate(timeout=200)
    return process.returncode, complained


def rows(sandbox: Any) -> dict[str, Result]:
    """Model to row of the only run."""
    return {row.case.workload.model: row for row in sandbox.rows()}


def environment(sandbox: Any) -> dict[str, Any]:
    """What the journal of the only run says of where it was."""
    lines = map(json.loads, sandbox.folder().journal_path.read_text().splitlines())
    found = next(line for line in lines if line["kind"] == "environment")
    return dict(found["data"]["identity"]) | dict(found["data"]["conditions"])


def test_torchrun_shares_a_case_and_goes_on_after_a_process_that_was_killed(
    sandbox: Any, start: Start
) -> None:
    """Two agents, as of two machines, of one process each; the rows are those of rank 0, once."""
    words = ("--models", "killed,segfaults,agrees", "--timeout", "120")
    port = free_port()
    agents = [
        start(
            *("-m", "torch.distributed.run", "--nnodes", "2", "--node-rank", str(node)),
            *("--nproc-per-node", "1", "--master-addr", "127.0.0.1", "--master-port", str(port)),
            *("-m", "torchgauge", "run", *CASES, *words, *sandbox.quick),
            *("--store", str(sandbox.store_path)),
        )
        for node in range(2)
    ]
    said = [ended(each) for each in agents]
    found = rows(sandbox)
    assert set(found) == {"killed", "segfaults", "agrees"}, said
    agrees, killed, crash = found["agrees"], found["killed"], found["segfaults"]
    assert agrees.status is Status.PASS, agrees.reason
    assert agrees.case.workload.processes == 2
    name = socket.gethostname()
    assert dict(agrees.facts)["machines"] == name
    assert environment(sandbox)["launched.ranks"] == f"0 {name}, 1 {name}"
    assert (killed.status, killed.cause) == (Status.INFRA, Cause.KILLED), killed.reason
    assert killed.reason.startswith(f"rank 1 of 2 on {name}: killed from outside")
    assert crash.status is Status.CRASH, crash.reason
    assert crash.log.endswith("-rank1.log")
    assert "Segmentation fault" in (sandbox.folder().path / crash.log).read_text()
    assert said[1][0] == 0, said[1]
    assert sandbox.survivors() == []


def test_torchrun_starts_both_processes_of_one_machine(sandbox: Any, start: Start) -> None:
    """The launcher's number of processes is that of the case, where none is named."""
    launcher = start(
        *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "torchgauge"),
        *("run", *CASES, "--models", "agrees", *sandbox.quick, "--timeout", "120"),
        *("--store", str(sandbox.store_path)),
    )
    code, said = ended(launcher)
    assert code == 0, said
    assert said.count("1/1 pass") == 1
    assert rows(sandbox)["agrees"].status is Status.PASS


def test_a_rank_that_hangs_is_named_with_its_call(sandbox: Any, start: Start) -> None:
    """The records of the watchdogs come together by the store of the launch."""
    words, port = ("--models", "hangs", "--timeout", "25"), free_port()
    first, second = (of_rank(start, sandbox, rank, port, *words) for rank in range(2))
    assert ended(first)[0] == 1
    assert ended(second) == (0, "")
    hangs = rows(sandbox)["hangs"]
    assert hangs.status is Status.TIMEOUT
    assert hangs.reason.startswith("rank 1 has not joined all_reduce #"), hangs.reason
    assert "rank 1 is in misbehave (ranks.py:" in hangs.reason
    assert dict(hangs.facts)["failed_rank"] == 1


def test_a_rank_that_never_comes_is_named(sandbox: Any, start: Start) -> None:
    """And nothing is stored: nothing was measured."""
    code, said = ended(of_rank(start, sandbox, 0, free_port(), "--models", "agrees", "--timeout", "3"))
    assert code == 3
    assert "rank 1 of 2 launched processes did not come within 3 s" in said
    assert not sandbox.store_path.exists()
    code, said = ended(of_rank(start, sandbox, 1, free_port(), "--models", "agrees", "--timeout", "3"))
    assert code == 3
    assert "rank 1 of 2 heard nothing of rank 0 at 127.0.0.1:" in said


def test_a_port_that_is_in_use_is_named(sandbox: Any, start: Start) -> None:
    """Where rank 0 would have its store."""
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = ended(of_rank(start, sandbox, 0, port, "--models", "agrees", "--timeout", "120"))
    assert code == 3
    assert f"port {port} of 127.0.0.1 is in use" in said


def test_processes_that_differ_are_refused_by_name(sandbox: Any, start: Start) -> None:
    """Another command is another plan; both say so, and none stays."""
    port = free_port()
    second = of_rank(start, sandbox, 1, port, "--models", "raises", "--timeout", "120")
    code, said = ended(of_rank(start, sandbox, 0, port, "--models", "agrees", "--timeout", "120"))
    assert code == 2
    assert f"rank 1 on {socket.gethostname()} has the command 'run ranks" in said
    assert "and rank 0 has 'run ranks" in said
    code, told = ended(second)
    assert code == 2
    assert "has the command" in told


def test_the_others_end_when_rank_0_is_killed(sandbox: Any, start: Start) -> None:
    """With their workers, wherever they are."""
    words, port = ("--models", "hangs", "--timeout", "120"), free_port()
    first, second = (of_rank(start, sandbox, rank, port, *words) for rank in range(2))
    wait_until(lambda: list(Path(sandbox.store_path).glob("runs/*/work/*/events")), "the first worker")
    assert first.poll() is None
    first.send_signal(signal.SIGKILL)
    assert ended(first)[0] == -signal.SIGKILL
    code, said = ended(second)
    assert code == 3
    assert "rank 0 has gone, without a word" in said
    assert sandbox.survivors() == []
    assert sandbox.scratch() == []


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (signal.SIGKILL, "its torchgauge process has gone"),
        # it keeps its connection, and is given a minute
        pytest.param(signal.SIGSTOP, "its torchgauge process does not answer", marks=pytest.mark.full),
    ],
)
def test_a_process_that_is_gone_ends_its_cases_and_no_others(
    sandbox: Any, start: Start, end: signal.Signals, reason: str
) -> None:
    """Rank 1 is killed, or stopped, while the first case runs: both cases have a row that names it."""
    words, port = ("--models", "hangs,agrees", "--timeout", "120"), free_port()
    first, second = (of_rank(start, sandbox, rank, port, *words) for rank in range(2))
    wait_until(lambda: list(Path(sandbox.store_path).glob("runs/*/work/*/events")), "the first worker")
    second.send_signal(end)
    code, said = ended(first)
    assert code == 3, said
    second.kill()
    assert ended(second)[0] == -signal.SIGKILL
    found = list(rows(sandbox).values())
    assert len(found) == 2
    assert [(row.status, row.cause) for row in found] == [(Status.INFRA, Cause.LOST_WORKER)] * 2
    assert all(reason in row.reason for row in found), [r.reason for r in found]
    assert all(row.reason.startswith(f"rank 1 of 2 on {socket.gethostname()}") for row in found)


def test_launches_that_make_no_sense_are_refused(sandbox: Any, start: Start) -> None:
    """A variable that is missing; more processes than were started; models of one process."""
    first = of_rank(start, sandbox, 0, 1, LOCAL_RANK="")
    assert "LOCAL_RANK is not set" in ended(first)[1]
    port = free_port()
    pair = [of_rank(start, sandbox, rank, port, "--processes", "3", "--timeout", "120") for rank in range(2)]
    code, said = ended(pair[0])
    assert code == 2
    assert "takes 3 processes: the launcher has started 2" in said
    assert ended(pair[1])[0] == 0

"""Cases of several processes: one row each, of the rank that is to blame, or of the slowest."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from torchgauge.harness.pool.rank_run import PEER, RankEnding, derive_rank_status
from torchgauge.harness.pool.watch import Ending
from torchgauge.records import Cause, Outcome, Phase, PlannedCase, Result, Status, to_plain
from torchgauge.testing import TOLERANCE, make_case

PLANNED = PlannedCase(make_case(), TOLERANCE)
KEY = PLANNED.case.key


def rows(sandbox: Any, *models: str, more: tuple[str, ...] = ()) -> dict[str, Result]:
    """Model to row of a run of the suite whose second process misbehaves."""
    names = ",".join(models)
    sandbox.measure("ranks", "--models", names, "--device", "cpu", "--config", "eager", *more)
    found = {row.case.workload.model: row for row in sandbox.rows()}
    assert len(sandbox.rows()) == len(found) == len(models)
    return found


@pytest.mark.torch
def test_a_case_of_two_processes_has_one_row_that_says_which_rank(sandbox: Any) -> None:
    """One that raises, leaves the others, dies or is wrong, early or late: the others are not blamed."""
    wrong = ("segfaults", "leaves", "nan")
    found = rows(sandbox, "agrees", "raises", "raises_while_measured", "killed", *wrong)
    agrees = found["agrees"]
    assert agrees.status is Status.PASS, agrees.reason
    facts = dict(agrees.facts)
    assert facts["processes"] == 2
    assert facts["slowest_rank"] in (0, 1)
    assert agrees.log.endswith(f"-rank{facts['slowest_rank']}.log")
    assert any(each.metric == "latency" and each.samples for each in agrees.measurements)
    for name, phase in (("raises", Phase.EAGER), ("raises_while_measured", Phase.MEASURE)):
        row = found[name]
        assert row.phase is phase
        assert row.status is Status.ERROR, row.reason
        assert row.reason.startswith("rank 1 of 2: ValueError: the second process has had enough")
        assert dict(row.facts)["failed_rank"] == 1
    assert {name: found[name].status for name in wrong} == dict(
        zip(wrong, (Status.CRASH, Status.ERROR, Status.FAIL_ACCURACY), strict=True)
    )
    assert all(found[name].reason.startswith("rank 1 of 2: ") for name in wrong), found["leaves"].reason
    assert "NaN" in found["nan"].reason
    killed = found["killed"]
    assert (killed.status, killed.cause) == (Status.INFRA, Cause.KILLED)
    assert killed.reason.startswith("rank 1 of 2: ")
    assert killed.log.endswith("-rank1.log")
    assert (sandbox.folder().path / killed.log).is_file()


@pytest.mark.torch
def test_processes_meet_in_a_store_of_any_name(sandbox: Any) -> None:
    """The default one is relative; and what a URL takes for something else is a letter here."""
    words = ("run", "ranks", "--models", "agrees", "--device", "cpu", "--config", "eager", *sandbox.quick)
    done = sandbox.run(*words, "--timeout", "120", "--store", "my store #1")
    assert done.returncode == 0, done.stderr


@pytest.mark.torch
def test_a_rank_that_hangs_is_named_with_the_call_that_the_others_wait_in(sandbox: Any) -> None:
    """Its watchdog tells where it is instead; none of the processes lives on, and no file of theirs."""
    hangs = rows(sandbox, "hangs", more=("--timeout", "25"))["hangs"]
    assert hangs.status is Status.TIMEOUT
    facts = dict(hangs.facts)
    assert facts["failed_rank"] == 1
    assert str(facts["stuck_call"]).startswith("all_reduce #")
    assert hangs.reason.startswith(
        f"rank 1 has not joined {facts['stuck_call']} (2x8 double), in which rank 0"
    )
    assert "rank 1 is in misbehave (ranks.py:" in hangs.reason
    assert "took longer than 25 s" in hangs.reason
    assert hangs.log.endswith("-rank1.log")
    assert sandbox.survivors() == []


@pytest.mark.torch
def test_a_rank_that_dies_before_they_meet_is_named_and_the_next_case_goes_on(
    sandbox: Any, tmp_path: Path
) -> None:
    """The others wait for it at the rendezvous, for a day if they were let; they are ended long before."""
    opened = tmp_path / "opened"
    opened.mkdir()
    words = ("ranks", "--models", "agrees,raises", "--device", "mortalcpu", "--config", "eager")
    done = sandbox.measure(*words, "--timeout", "120", TORCHGAUGE_FAULTS_OPENED=str(opened))
    (first,) = [row for row in sandbox.rows() if row.attempts]
    (second,) = [row for row in sandbox.rows() if not row.attempts]
    killed, again = first.attempts
    assert (killed.status, killed.cause) == (Status.INFRA, Cause.KILLED), (killed.reason, done.stderr)
    assert killed.reason in {f"rank {n} of 2: killed from outside, not for lack of memory" for n in (0, 1)}
    assert killed.phase is Phase.START
    assert killed.duration_s < 120
    assert again.phase is not Phase.START, again.reason
    assert second.phase is not Phase.START, second.reason
    assert (
        len(list(opened.iterdir())) == 9
    )  # three attempts of two, and who says where this is: twice at starts
    assert sandbox.survivors() == []


def test_a_device_without_torch_says_why_it_cannot(sandbox: Any) -> None:
    """Processes meet by torch."""
    done = sandbox.measure("ranks", "--models", "agrees", "--device", "fake", "--config", "eager")
    assert done.returncode == 3, done.stderr
    (row,) = sandbox.rows()
    assert row.status is Status.UNSUPPORTED
    assert "does not run torch" in row.reason


def test_an_a_b_run_refuses_them(sandbox: Any) -> None:
    """It leads one process of each side, block by block."""
    words = ("ab", "ranks", "--models", "agrees", "--device", "cpu", "--config", "eager", "--base-env", "A=1")
    done = sandbox.run(*words, "--store", str(sandbox.store_path))
    assert done.returncode == 2
    assert "requires several processes" in done.stderr
    assert "torchgauge compare" in done.stderr


def ending(said: Status | None, at: float = 0.0, **more: Any) -> Ending:
    """The ending of a rank that said ``status`` at a time; of one that said nothing where it is None."""
    if said is None:
        return Ending(**more)
    outcome = Outcome(KEY, said, Phase.MEASURE, None, f"said at {at:g}", facts=(("slowest_rank", 1),))
    return Ending([{"ev": "outcome", "t": at, "outcome": to_plain(outcome)}], **more)


def derived(*endings: Ending) -> tuple[Outcome, str]:
    """The one outcome, and the log that the row names."""
    ranks = [RankEnding(rank, each, Path(f"{rank}.log")) for rank, each in enumerate(endings)]
    found, first = derive_rank_status(PLANNED, ranks, lambda: False)
    return found.outcomes[KEY], first.log.stem


@pytest.mark.parametrize(
    ("endings", "status", "reason", "log"),
    [
        ((ending(Status.ERROR, 3.0), ending(Status.OOM, 2.0)), Status.OOM, "rank 1 of 2: said at 2", "1"),
        (
            (ending(Status.ERROR, 1.0), ending(None, status=signal.SIGSEGV)),
            Status.CRASH,
            "rank 1 of 2: ",
            "1",
        ),
        (
            (ending(None, killed="timeout", limit="too long"), ending(Status.ERROR, 1.0)),
            Status.TIMEOUT,
            "rank 0 of 2: too long",
            "0",
        ),
        ((ending(None, killed=PEER), ending(Status.ERROR, 9.0)), Status.ERROR, "rank 1 of 2: said at 9", "1"),
    ],
    ids=["first to raise", "death before words", "hung before words", "peer"],
)
def test_the_row_is_of_who_failed_first(
    endings: tuple[Ending, ...], status: Status, reason: str, log: str
) -> None:
    """One that died, else one that hung, else the first that raised; where all passed, of the slowest."""
    outcome, stem = derived(*endings)
    assert outcome.status is status
    assert outcome.reason.startswith(reason)
    assert stem == log
    assert dict(outcome.facts)["processes"] == 2

"""The parent's half of every status, for endings that no test can provoke at will."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from torchgauge.harness.pool.derived_status import derive_statuses
from torchgauge.harness.pool.judged_rows import suspicious
from torchgauge.harness.pool.watch import Ending
from torchgauge.records import Cause, Failure, Outcome, Phase, PlannedCase, Status, to_plain
from torchgauge.testing import TOLERANCE, make_case, make_result

CASES = [PlannedCase(make_case(configuration=name), TOLERANCE) for name in ("eager", "inductor", "aot_eager")]
KEYS = [planned.case.key for planned in CASES]
SUCCESS = [Outcome(key, Status.PASS, Phase.DONE) for key in KEYS]


def phase(name: str, index: int | None = None) -> dict[str, Any]:
    """A phase event of one case, or of all unfinished ones."""
    return {"ev": "phase", "phase": name, "case": None if index is None else KEYS[index]}


def said(outcome: Outcome) -> dict[str, Any]:
    """An outcome event."""
    return {"ev": "outcome", "outcome": to_plain(outcome)}


def derived(*events: dict[str, Any], oom: bool = False, **ending: Any):
    """What comes of a process that said ``events`` and ended as ``ending`` says."""
    return derive_statuses(CASES, Ending(list(events), **ending), lambda: oom)


@pytest.mark.parametrize(
    ("ending", "oom", "status", "cause"),
    [
        ({"status": signal.SIGKILL}, True, Status.OOM, Cause.HOST_LIMIT),
        ({"status": signal.SIGKILL}, False, Status.INFRA, Cause.KILLED),
        ({"status": signal.SIGABRT}, False, Status.CRASH, Cause.SIGNAL),
        ({"status": 7 << 8}, False, Status.CRASH, Cause.EXIT),
        ({"status": 1 << 8, "full": "/d had 0 bytes free"}, False, Status.INFRA, Cause.DISK_FULL),
        ({"status": 0, "full": "/d had 0 bytes free"}, False, Status.CRASH, Cause.EXIT),
        (
            {"status": signal.SIGKILL, "killed": "memory", "limit": "3 GB"},
            False,
            Status.OOM,
            Cause.HOST_LIMIT,
        ),
        ({"status": signal.SIGKILL, "killed": "timeout", "limit": "late"}, True, Status.TIMEOUT, None),
        ({"status": signal.SIGKILL, "killed": "cancelled"}, False, Status.NOT_RUN, Cause.CANCELLED),
        ({"lost": True}, False, Status.INFRA, Cause.LOST_WORKER),
    ],
)
def test_an_ending_is_charged_to_one_case(ending, oom, status, cause) -> None:
    """The case in flight gets the status, with its phase; the others start again."""
    result = derived(phase("build"), phase("compile", 1), oom=oom, **ending)
    outcome = result.outcomes[KEYS[1]]
    assert (outcome.status, outcome.cause, outcome.phase) == (status, cause, Phase.COMPILE)
    assert result.again == [CASES[0], CASES[2]]
    assert result.charged == KEYS[1]


@pytest.mark.parametrize("ending", [{"killed": "memory", "limit": "0.2 GB"}, {}])
def test_a_case_of_which_nothing_is_loaded_has_not_filled_the_memory(ending) -> None:
    """Others had it: the case says nothing, and is tried again, alone where it had neighbours."""
    result = derived(phase("start"), oom=True, status=signal.SIGKILL, **ending)
    outcome = result.outcomes[KEYS[0]]
    assert (outcome.status, outcome.cause, outcome.phase) == (Status.INFRA, Cause.KILLED, Phase.START)
    assert "before the case loaded anything" in outcome.reason
    assert suspicious([make_result(CASES[0].case, Status.INFRA, cause=outcome.cause)])


def test_the_cursor_names_the_guilty_while_timing() -> None:
    """In interleaved rounds, where no event tells, the cursor does."""
    events = [
        phase("compile", 1),
        phase("warmup", 0),
        phase("warmup", 1),
        phase("warmup", 2),
        phase("measure"),
    ]
    result = derived(*events, status=signal.SIGSEGV, cursor=2)
    assert list(result.outcomes) == [KEYS[2]]
    assert result.outcomes[KEYS[2]].phase is Phase.MEASURE


def test_an_old_cursor_accuses_nobody() -> None:
    """A cursor that points at a case which was not being timed is ignored."""
    result = derived(phase("compile", 0), phase("compile", 1), status=signal.SIGSEGV, cursor=0)
    assert result.outcomes[KEYS[1]].phase is Phase.COMPILE


def test_what_was_said_stays_said() -> None:
    """Outcomes written before the crash are kept; only a case without one is charged."""
    result = derived(phase("build"), said(SUCCESS[0]), phase("compile", 1), status=signal.SIGSEGV)
    assert result.outcomes[KEYS[0]] == SUCCESS[0]
    assert result.outcomes[KEYS[1]].status is Status.CRASH
    assert result.again == [CASES[2]]
    assert result.teardown == ""


def test_a_crash_after_all_results_is_a_teardown() -> None:
    """When every case has its outcome, the crash is told and charged to nobody."""
    result = derived(*map(said, SUCCESS), status=signal.SIGSEGV, leftovers=("sleep\n300\x1b[31m",))
    assert [outcome.status for outcome in result.outcomes.values()] == [Status.PASS] * 3
    assert "SIGSEGV" in result.teardown
    assert result.teardown.endswith("killed: sleep\\n300")
    assert (result.again, result.charged) == ([], "")


@pytest.mark.parametrize(
    ("ending", "status"),
    [
        ({"status": signal.SIGSEGV}, Status.CRASH),
        ({"status": 1 << 8}, Status.CRASH),
        ({"status": signal.SIGKILL, "killed": "timeout", "limit": "late"}, Status.TIMEOUT),
    ],
)
def test_a_process_that_never_opened_its_device_is_not_started_once_for_each_case(ending, status) -> None:
    """Nothing of a case had begun, so all of them get the ending at once."""
    result = derived(phase("start"), **ending)
    assert [(outcome.status, outcome.phase) for outcome in result.outcomes.values()] == [
        (status, Phase.START)
    ] * len(CASES)
    assert result.again == []


@pytest.mark.parametrize(
    "ending", [{"status": signal.SIGKILL}, {"lost": True}, {"status": 1, "killed": "cancelled"}]
)
def test_what_ends_from_outside_while_the_device_is_opened_is_charged_once(ending) -> None:
    """The others start again: it says nothing about the device."""
    assert derived(phase("start"), **ending).again == CASES[1:]


def test_the_root_cause_of_a_device_that_did_not_open_is_in_the_reason() -> None:
    """The vague error around it comes first, as the worker said it."""
    message = "Failed to load\ncaused by OSError: libx.so: cannot open"
    failure = Failure(type="RuntimeError", message=message, frame="", fingerprint="")
    result = derived({"ev": "no_device", "failure": to_plain(failure)})
    reason = result.outcomes[KEYS[0]].reason
    assert reason.endswith("Failed to load, caused by OSError: libx.so: cannot open")
    silent = derived({"ev": "no_device", "failure": to_plain(Failure(type="RuntimeError", message=""))})
    assert silent.outcomes[KEYS[0]].reason == "the device could not be opened: RuntimeError"

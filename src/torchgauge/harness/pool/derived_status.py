"""Outcomes from what a worker said and how its process ended: the parent's half of every status."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchgauge.counted import counted
from torchgauge.harness.events import GROWTH, NOBODY
from torchgauge.harness.pool.watch import Ending
from torchgauge.records import (
    Cause,
    Failure,
    Outcome,
    Phase,
    PlannedCase,
    Status,
    digest,
    from_plain,
)
from torchgauge.records.message_pattern import gist
from torchgauge.results.hostile_text import one_line


@dataclass
class DerivedStatuses:
    """Outcomes of one process, the cases that must start again, and what happened at its end."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    again: list[PlannedCase] = field(default_factory=list)
    exit: str = ""
    teardown: str = ""
    charged: str = ""


def derive_statuses(
    cases: Sequence[PlannedCase], ending: Ending, kernel_oom: Callable[[], bool]
) -> DerivedStatuses:
    """Outcomes for ``cases`` from one process; a case without any is in ``again`` unless it was in flight."""
    derived = DerivedStatuses(exit=describe_exit(ending))
    for event in ending.events:
        if event["ev"] == "outcome":
            outcome = from_plain(Outcome, event["outcome"])
            derived.outcomes[outcome.case_key] = outcome
    lost = next((event["failure"] for event in ending.events if event["ev"] == "no_device"), None)
    if lost is not None:
        failure = from_plain(Failure, lost)
        for planned in cases:
            derived.outcomes.setdefault(planned.case.key, no_device(planned.case.key, failure))
    left = [planned for planned in cases if planned.case.key not in derived.outcomes]
    if not left:
        derived.teardown = _teardown(ending)
        return derived
    if not derived.outcomes and _never_opened(ending):
        # No case was begun, so none is to blame, and each would end so again.
        derived.outcomes = {each.case.key: _charge(each, ending, kernel_oom) for each in left}
        derived.charged = left[0].case.key
        return derived
    guilty = _in_flight(cases, left, ending)
    derived.outcomes[guilty.case.key] = _charge(guilty, ending, kernel_oom)
    derived.charged = guilty.case.key
    derived.again = [planned for planned in left if planned is not guilty]
    if ending.leftovers:
        derived.teardown = _leftovers(ending)
    return derived


def describe_exit(ending: Ending) -> str:
    """How the process ended, in words."""
    if ending.killed:
        return f"killed by torchgauge: {ending.limit}"
    if ending.lost:
        return "the process that forks the workers has ended" + (f": {ending.limit}" if ending.limit else "")
    if os.WIFSIGNALED(ending.status):
        number = os.WTERMSIG(ending.status)
        return f"signal {number} ({_signal_name(number)})"
    return f"exit status {os.WEXITSTATUS(ending.status)}"


def no_device(key: str, failure: Failure) -> Outcome:
    """The outcome of a case whose device could not be opened."""
    reason = f"the device could not be opened: {gist(failure.message or failure.type)}"
    return Outcome(key, Status.INFRA, Phase.START, Cause.NO_DEVICE, reason, failure)


def _never_opened(ending: Ending) -> bool:
    """Whether the process crashed or hung by itself while torch and the device were being opened."""
    if any(event["ev"] == "phase" and Phase(event["phase"]) is not Phase.START for event in ending.events):
        return False
    if ending.lost or ending.killed not in ("", "timeout"):
        return False
    return not (os.WIFSIGNALED(ending.status) and os.WTERMSIG(ending.status) == signal.SIGKILL) or bool(
        ending.killed
    )


def _in_flight(cases: Sequence[PlannedCase], left: list[PlannedCase], ending: Ending) -> PlannedCase:
    """The case to charge: the one under the cursor while timing, else the last one announced."""
    if ending.cursor != NOBODY and ending.cursor < len(cases) and cases[ending.cursor] in left:
        named = cases[ending.cursor]
        if _last_phase(named.case.key, ending.events) in (Phase.WARMUP, Phase.MEASURE):
            return named
    for event in reversed(ending.events):
        if event["ev"] == "phase" and event.get("case") is not None:
            for planned in left:
                if planned.case.key == event["case"]:
                    return planned
            break
    return left[0]


def _last_phase(key: str, events: Sequence[dict[str, Any]]) -> Phase:
    for event in reversed(events):
        if event["ev"] == "phase" and event.get("case") in (None, key):
            return Phase(event["phase"])
    return Phase.START


def _charge(planned: PlannedCase, ending: Ending, kernel_oom: Callable[[], bool]) -> Outcome:
    key, phase = planned.case.key, _last_phase(planned.case.key, ending.events)
    texts = [event["text"] for event in ending.events if event["ev"] == GROWTH and event["case"] == key]
    grew = f"{texts[-1]}; " if texts else ""
    if ending.killed == "cancelled":
        return Outcome(key, Status.NOT_RUN, phase, Cause.CANCELLED, "interrupted")
    if ending.killed == "timeout":
        return Outcome(key, Status.TIMEOUT, phase, None, f"{ending.limit}{_whose(planned, phase, ending)}")
    if ending.killed == "memory":
        return _out_of_memory(key, phase, f"{grew}killed at {ending.limit}")
    if ending.killed == "forged":
        return Outcome(key, Status.CRASH, phase, Cause.EXIT, ending.limit, _crash(ending.limit, phase))
    if ending.lost:
        return Outcome(key, Status.INFRA, phase, Cause.LOST_WORKER, describe_exit(ending))
    how = describe_exit(ending)
    if os.WIFSIGNALED(ending.status):
        if os.WTERMSIG(ending.status) == signal.SIGKILL:
            if kernel_oom():
                return _out_of_memory(key, phase, f"{grew}killed by the kernel: out of memory")
            reason = "killed from outside, not for lack of memory"
            return Outcome(key, Status.INFRA, phase, Cause.KILLED, reason)
        if os.WTERMSIG(ending.status) == signal.SIGBUS and ending.full:
            reason = f"{how} in phase {phase.value}: a memory-mapped file could not grow: {ending.full}"
            return Outcome(key, Status.INFRA, phase, Cause.DISK_FULL, reason)
        failure = _crash(how, phase)
        reason = f"{how} in phase {phase.value}{_whose(planned, phase, ending)}"
        return Outcome(key, Status.CRASH, phase, Cause.SIGNAL, reason, failure)
    reason = f"the process ended with {how} and without a result, in phase {phase.value}"
    if ending.full and os.WEXITSTATUS(ending.status):  # it could not write its result, nor a traceback
        return Outcome(key, Status.INFRA, phase, Cause.DISK_FULL, f"{reason}; {ending.full}")
    reason += _whose(planned, phase, ending) + ("" if ending.status else ": as after sys.exit(0)")
    return Outcome(key, Status.CRASH, phase, Cause.EXIT, reason, _crash(how, phase))


def _out_of_memory(key: str, phase: Phase, reason: str) -> Outcome:
    """Return the outcome of a case whose process was ended for memory, not its own before it loads."""
    if phase is Phase.START:
        why = f"{reason}, before the case loaded anything"
        return Outcome(key, Status.INFRA, phase, Cause.KILLED, why)
    return Outcome(key, Status.OOM, phase, Cause.HOST_LIMIT, reason)


def _whose(planned: PlannedCase, phase: Phase, ending: Ending) -> str:
    """Whose code a case that ended its process was in, as far as the phase tells, and the backend."""
    said = (each for each in reversed(ending.events) if each["ev"] == "stage")
    stages = [f", stage {each['stage']}" for each in said if each["case"] == planned.case.key]
    backend = f"backend {planned.case.configuration.backend!r}{''.join(stages[:1])}"
    if phase in (Phase.WARMUP, Phase.MEASURE):
        return f", in scenario {planned.case.workload.mode!r} by {backend}"
    return f", in {backend}" if phase in (Phase.COMPILE, Phase.ACCURACY) else ""


def _crash(how: str, phase: Phase) -> Failure:
    return Failure(type="crash", message=how, frame="", fingerprint=digest(["crash", how, phase.value]))


def _teardown(ending: Ending) -> str:
    """What went wrong after the last result was written; empty when nothing did."""
    parts = []
    if ending.killed == "timeout":
        where = "at exit" if ending.phase is Phase.DONE else f"in phase {ending.phase.value}"
        parts.append(f"hung {where} and was killed")
    elif ending.killed == "forged":
        parts.append(f"after its results {ending.limit}")
    elif ending.lost or ending.status != 0:
        parts.append(f"after its results: {describe_exit(ending)}")
    if ending.leftovers:
        parts.append(_leftovers(ending))
    return "; ".join(parts)


def _leftovers(ending: Ending) -> str:
    return (
        f"left {counted(len(ending.leftovers), 'process')} "
        f"running, killed: {one_line(', '.join(ending.leftovers), 300)}"
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"

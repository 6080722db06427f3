"""The vocabulary of endings: statuses, phases, causes and modifiers, one list everywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from enum import Enum


class Status(str, Enum):
    """How one planned case ended; every planned case has exactly one."""

    PASS = "pass"
    FAIL_ACCURACY = "fail_accuracy"
    ERROR = "error"
    OOM = "oom"
    TIMEOUT = "timeout"
    CRASH = "crash"
    UNSUPPORTED = "unsupported"
    SKIPPED = "skipped"
    INFRA = "infra"
    NOT_RUN = "not_run"


ATTEMPTED = frozenset(
    {Status.PASS, Status.FAIL_ACCURACY, Status.ERROR, Status.OOM, Status.TIMEOUT, Status.CRASH}
)
"""Statuses that count as attempted; the other four never say anything against the model."""

INCOMPLETE = frozenset({Status.INFRA, Status.NOT_RUN})
"""Statuses that make a run incomplete."""


class Phase(str, Enum):
    """The last phase that a case reached, in the order of its life."""

    START = "start"
    IMPORT = "import"
    BUILD = "build"
    EAGER = "eager"
    ACCURACY = "accuracy"
    COMPILE = "compile"
    WARMUP = "warmup"
    MEASURE = "measure"
    CHECK = "check"
    DONE = "done"


class Cause(str, Enum):
    """The closed list of causes that refine a status."""

    DECLARED = "declared"
    MISSING_PACKAGE = "missing_package"
    CONFLICTING_PACKAGE = "conflicting_package"
    MISSING_DATA = "missing_data"
    NO_NETWORK = "no_network"
    DEVICE = "device"
    HOST_LIMIT = "host_limit"
    TOLERANCE = "tolerance"
    NONFINITE = "nonfinite"
    NONDETERMINISTIC_EAGER = "nondeterministic_eager"
    CONTRACT = "contract"
    CANCELLED = "cancelled"
    BUDGET = "budget"
    NO_DEVICE = "no_device"
    SIGNAL = "signal"
    EXIT = "exit"
    KILLED = "killed"
    LOST_WORKER = "lost_worker"
    DISK_FULL = "disk_full"
    QUARANTINED = "quarantined"
    CLOCK_CONTRADICTION = "clock_contradiction"


CAUSES_OF: Mapping[Status, frozenset[Cause]] = {
    Status.SKIPPED: frozenset(
        {
            Cause.DECLARED,
            Cause.MISSING_PACKAGE,
            Cause.CONFLICTING_PACKAGE,
            Cause.MISSING_DATA,
            Cause.NO_NETWORK,
        }
    ),
    Status.OOM: frozenset({Cause.DEVICE, Cause.HOST_LIMIT}),
    Status.FAIL_ACCURACY: frozenset(
        {
            Cause.TOLERANCE,
            Cause.NONFINITE,
            Cause.NONDETERMINISTIC_EAGER,
            Cause.CONTRACT,
        }
    ),
    Status.CRASH: frozenset({Cause.SIGNAL, Cause.EXIT}),
    Status.INFRA: frozenset(
        {Cause.KILLED, Cause.LOST_WORKER, Cause.NO_DEVICE, Cause.DISK_FULL, Cause.CLOCK_CONTRADICTION}
    ),
    Status.NOT_RUN: frozenset({Cause.CANCELLED, Cause.BUDGET, Cause.NO_DEVICE, Cause.QUARANTINED}),
}
"""Which causes a status may carry; statuses that are absent carry none."""


class Modifier(str, Enum):
    """What is counted apart from the ten statuses."""

    FLAKY = "flaky"
    EXPECTED = "expected"
    STALE = "stale"
    SUPERSEDED = "superseded"
    DEGRADED = "degraded"
    OTHER_CAUSE = "other_cause"
    OTHER_MODEL = "other_model"
    UNCHECKED = "unchecked"
    UNSTEADY = "unsteady"
    FASTER_THAN_PEAK = "faster_than_peak"
    REUSES_OUTPUT = "reuses_output"
    TIES = "ties"
    LEAKS = "leaks"


UNCOUNTED = frozenset({Modifier.DEGRADED, Modifier.OTHER_MODEL, Modifier.UNCHECKED})
"""Modifiers that keep a row of status ``pass`` out of every count of passes: it ran, but it is not what was
asked for, not the model that its name says, or nothing says that its numbers are right.
"""

WITHOUT_FACT: Mapping[Modifier, str] = {
    Modifier.DEGRADED: "did not run on the requested path",
    Modifier.OTHER_CAUSE: "has the expected status, but not the expected cause",
    Modifier.OTHER_MODEL: "the model differs from the one that its suite declares",
    Modifier.UNCHECKED: "no result was compared with a reference",
    Modifier.UNSTEADY: "its step times are in doubt",
    Modifier.FASTER_THAN_PEAK: "its steps take less time than the device's peak rates allow",
    Modifier.FLAKY: "another attempt ended differently",
    Modifier.REUSES_OUTPUT: "each call overwrites the result of the call before",
    Modifier.LEAKS: "memory grows with each step",
    Modifier.TIES: "integers, booleans or a shape differ by rounding alone",
}
"""What is said of a modifier whose reason, the fact of its name, a row lacks."""

BESIDE_A_NUMBER: Mapping[Modifier, str] = {
    Modifier.DEGRADED: "not wholly on the requested path; not a pass",
    Modifier.OTHER_MODEL: "not the declared model; excluded from passes and comparisons",
    Modifier.UNCHECKED: "not shown to be correct; excluded from passes and comparisons",
    Modifier.FASTER_THAN_PEAK: "impossibly fast; excluded from means, claims, trends and comparisons",
    Modifier.UNSTEADY: "inexact time; excluded from means, claims, trends and comparisons",
    Modifier.FLAKY: "another attempt ended differently; not counted as a pass",
    Modifier.REUSES_OUTPUT: "each call overwrites the last result; still counted",
    Modifier.LEAKS: "memory grows with each step; still counted",
    Modifier.TIES: "integers, booleans or shapes differ by rounding alone; still counted",
}
"""What a modifier means for the number beside it, in ten words at most."""

BY_FACT = (
    Modifier.UNCHECKED,
    Modifier.FASTER_THAN_PEAK,
    Modifier.REUSES_OUTPUT,
    Modifier.TIES,
    Modifier.LEAKS,
)
"""Modifiers of a passed row that has the fact of their name."""

UNTIMED = frozenset({Modifier.OTHER_MODEL, Modifier.UNCHECKED, Modifier.FASTER_THAN_PEAK, Modifier.UNSTEADY})
"""Modifiers that keep the step times of a row out of every mean, claim, trend and comparison."""


def counts_as_pass(status: str, modifiers: Collection[str]) -> bool:
    """Whether a row is counted among the passes; the one rule of every page, report and claim.

    Such a row stays in the status ``pass``: the ten statuses sum to what was planned.
    """
    return status == Status.PASS.value and not UNCOUNTED.intersection(modifiers)


def undeclared_skip(status: Status, cause: Cause | None) -> bool:
    """Return whether a case was skipped for a cause that no data file declares."""
    return status is Status.SKIPPED and cause is not Cause.DECLARED


def says_something(status: str, modifiers: Collection[str], *, of_a_model: bool = True) -> bool:
    """Whether a row says anything of its case: it was measured, or failed, expected or not.

    An unchecked pass does: its times were asked for. What was skipped, is unsupported, ran by another path or
    is another model does not, and neither does what a run has lost. Of a check or an operator "not here" is
    an answer.
    """
    if not of_a_model:
        return True
    if status == Status.PASS.value:
        return not UNCOUNTED.difference({Modifier.UNCHECKED}).intersection(modifiers)
    return Status(status) in ATTEMPTED


def times_count(status: str, modifiers: Collection[str]) -> bool:
    """Whether the step times of a row may enter a mean, a claim, a trend or a comparison: the one rule.

    What does not count is shown all the same, apart from the others and with the reason.
    """
    return status == Status.PASS.value and not UNTIMED.intersection(modifiers)


def why_marked(modifier: Modifier, modifiers: Collection[str], facts: Mapping[str, object]) -> str:
    """Why a row has ``modifier``, as the fact of that name says; empty where it has not."""
    return str(facts.get(modifier.value) or WITHOUT_FACT[modifier]) if modifier in modifiers else ""


def left_out(doubts: Iterable[str]) -> str:
    """What is said beside a mean of the numbers that ``doubts`` kept out of it: ``3 unsteady left out``.

    Empty where every one of them is empty.
    """
    counts = Counter(each for each in doubts if each)
    told = ", ".join(f"{counts[name]} {name}" for name in sorted(counts))
    return f"{told} left out" if told else ""

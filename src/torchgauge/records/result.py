"""How a case ended: what the worker says (outcome) and the row that is kept (result)."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchgauge.records.attempt import Attempt
from torchgauge.records.case import Case
from torchgauge.records.codec import LATER, SCHEMA_VERSION, Scalar
from torchgauge.records.measurement import Measurement, Summary
from torchgauge.records.status import (
    ATTEMPTED,
    CAUSES_OF,
    Cause,
    Modifier,
    Phase,
    Status,
    counts_as_pass,
    why_marked,
)


@dataclass(frozen=True)
class Failure:
    """What went wrong, in a form that can be clustered.

    ``fingerprint`` is the digest of exception type, first frame inside torch or the backend and the
    normalised message; ``missing_op`` names the operator where the failure is a missing one.
    """

    type: str
    message: str
    frame: str = ""
    missing_op: str = ""
    fingerprint: str = ""
    traceback: str = ""


@dataclass(frozen=True)
class Realised:
    """What the worker really built: the second half of a workload's identity."""

    hash: str
    parameters: int
    buffers: int
    inputs: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Accuracy:
    """How right a result is, beside the verdict."""

    reference: str
    max_abs_error: float | None = None
    rmse: float | None = None
    rmse_eager: float | None = None
    rmse_ratio: float | None = None
    eager_spread: float | None = None
    cosine: float | None = None
    detail: str = ""


@dataclass(frozen=True)
class OutputError:
    """Holds how far one tensor of a result lies from its reference, for a comparison of two builds.

    The reference is the float64 result or, without one, eager's with other rounding. ``size`` is its RMS,
    ``error`` that of the distance. ``sums`` are sums of its four quarters and two sums weighted by position,
    over the square root of its number of elements: those of different tensors rarely agree. They are empty
    if sizes alone are compared. A tensor of integers or booleans is ``whole`` and has no error.
    """

    path: str
    size: float
    error: float
    sums: tuple[float, ...]
    whole: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a worker says of one case; the runner turns it into a :class:`Result`."""

    case_key: str
    status: Status
    phase: Phase
    cause: Cause | None = None
    reason: str = ""
    failure: Failure | None = None
    modifiers: tuple[Modifier, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    realised: Realised | None = None
    accuracy: Accuracy | None = None
    facts: tuple[tuple[str, Scalar], ...] = ()
    outputs: tuple[OutputError, ...] = field(default=(), metadata={LATER: True})

    def __post_init__(self) -> None:
        check_cause(self.status, self.cause)


@dataclass(frozen=True)
class Result:
    """The one row of a planned case.

    ``attempt`` is the number of the attempt that it is of, ``attempts`` are all where there were several.
    """

    run_id: str
    case_id: str
    case: Case
    status: Status
    phase: Phase
    expected: Status | None
    cause: Cause | None = None
    reason: str = ""
    failure: Failure | None = None
    modifiers: tuple[Modifier, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    summaries: tuple[Summary, ...] = ()
    realised: Realised | None = None
    accuracy: Accuracy | None = None
    facts: tuple[tuple[str, Scalar], ...] = ()
    environment_id: str = ""
    started_at: float = 0.0
    duration_s: float = 0.0
    exit: str = ""
    teardown: str = ""
    log: str = ""
    log_excerpt: str = ""
    reproduce: str = ""
    attempt: int = 1
    attempts: tuple[Attempt, ...] = ()
    schema_version: int = SCHEMA_VERSION

    def __post_init__(self) -> None:
        check_cause(self.status, self.cause)

    @property
    def unexpected(self) -> bool:
        """Return whether status or cause differs from the data file's (``pass`` without an entry).

        Statuses of cases that were not attempted are unexpected only where the data file has an entry. An
        unchecked pass is expected where wrong numbers are.
        """
        if self.unchecked and self.expected is Status.FAIL_ACCURACY:
            return False
        if self.expected is not None:
            return self.status is not self.expected or Modifier.OTHER_CAUSE in self.modifiers
        return self.status in ATTEMPTED and self.status is not Status.PASS

    @property
    def counted(self) -> bool:
        """Whether it is counted among the passes."""
        return counts_as_pass(self.status, self.modifiers)

    @property
    def degraded(self) -> str:
        """By what other path than the requested one the case ran; empty where it is not degraded."""
        return self._why(Modifier.DEGRADED)

    @property
    def other_cause(self) -> str:
        """Return the actual cause where it is not the expected cause; empty otherwise."""
        return self._why(Modifier.OTHER_CAUSE)

    @property
    def other_model(self) -> str:
        """How the built model differs from the one that its name says; empty where it does not."""
        return self._why(Modifier.OTHER_MODEL)

    @property
    def unchecked(self) -> str:
        """Why no reference was compared with what the case computed; empty where one was."""
        return self._why(Modifier.UNCHECKED)

    @property
    def unsteady(self) -> str:
        """Why the step times are in doubt; empty where they are not."""
        return self._why(Modifier.UNSTEADY)

    @property
    def faster_than_peak(self) -> str:
        """By how much the steps exceed the peak of the device; empty if they do not."""
        return self._why(Modifier.FASTER_THAN_PEAK)

    @property
    def flaky(self) -> str:
        """How its attempts differ; empty where they do not."""
        return self._why(Modifier.FLAKY)

    def _why(self, modifier: Modifier) -> str:
        return why_marked(modifier, self.modifiers, dict(self.facts))


def check_cause(status: Status, cause: Cause | None) -> None:
    """Raise ``ValueError`` where ``cause`` is not one that ``status`` may carry."""
    if cause is not None and cause not in CAUSES_OF.get(status, frozenset()):
        raise ValueError(f"status {status.value!r} cannot have the cause {cause.value!r}")

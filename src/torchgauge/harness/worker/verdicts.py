"""How an exception inside a worker becomes an outcome with a status, a cause and a reason."""

from __future__ import annotations

import errno
import traceback
from pathlib import Path

from torchgauge.devices.session import DeviceSession
from torchgauge.errors import (
    ClockContradictionError,
    JudgeError,
    MissingDataError,
    MissingPackageError,
    NoNetworkError,
    NotOfferedError,
    TooLargeError,
    TorchgaugeError,
    note_on,
)
from torchgauge.harness.suspects import Remedies, Suspect, blamed
from torchgauge.harness.worker.failure import TRACEBACK, describe
from torchgauge.records import Cause, Outcome, Phase, PlannedCase, Status, from_plain, to_json, to_plain
from torchgauge.suites.lacking import absent_package, refusal

_SAYS: tuple[tuple[type[TorchgaugeError], Status, Cause | None], ...] = (
    (MissingPackageError, Status.SKIPPED, Cause.MISSING_PACKAGE),
    (NotOfferedError, Status.UNSUPPORTED, None),
    (MissingDataError, Status.SKIPPED, Cause.MISSING_DATA),
    (NoNetworkError, Status.SKIPPED, Cause.NO_NETWORK),
    (TooLargeError, Status.OOM, Cause.HOST_LIMIT),
    (ClockContradictionError, Status.INFRA, Cause.CLOCK_CONTRADICTION),
    (JudgeError, Status.INFRA, None),
)
"""What an exception of ours says by its type."""
MOST_SAMPLES, MOST_TOLD = 20_000, 64 << 10
"""Samples of a metric and characters of facts that one row takes."""
_BUILDING = frozenset({Phase.IMPORT, Phase.BUILD, Phase.EAGER})
"""Phases in which a package is imported for the first time, and breaks what imports it."""


_REPEATING = frozenset({Phase.WARMUP, Phase.MEASURE})
"""Phases after the first step of each configuration."""


class WrongResultError(Exception):
    """Code computes something else than its reference."""

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause


def outcome_of(
    error: BaseException, case: str, phase: Phase, session: DeviceSession, remedies: Remedies
) -> Outcome:
    """The outcome of ``case`` whose ``phase`` raised ``error``."""
    if phase in _REPEATING and isinstance(error, NotOfferedError) and error.__cause__ is not None:
        error = error.__cause__  # the first steps ran, so the suite offers them
    reason = first_line(error)
    conflict = blamed(error, remedies.suspects) if phase in _BUILDING else None
    if conflict is not None:
        said = conflict_reason(conflict, error)
        return Outcome(case, Status.SKIPPED, phase, Cause.CONFLICTING_PACKAGE, said, describe(error))
    for kind, status, cause in _SAYS:
        if isinstance(error, kind):
            return Outcome(case, status, phase, cause, reason)
    if phase in (Phase.IMPORT, Phase.BUILD) and (absent := absent_package(error)):
        hint = remedies.install_hint or f"pip install {absent}"
        reason = f"package {absent!r} is not installed; try: {hint}"
        return Outcome(case, Status.SKIPPED, phase, Cause.MISSING_PACKAGE, reason)
    if refusal(error) is not None:
        return Outcome(case, Status.SKIPPED, phase, Cause.NO_NETWORK, reason)
    if (full := _full_disk(error)) is not None:
        said = f"the disk is full: {first_line(full)}"[:500]
        return Outcome(case, Status.INFRA, phase, Cause.DISK_FULL, said, describe(error))
    if session.is_oom(error):
        return Outcome(case, Status.OOM, phase, Cause.DEVICE, reason, describe(error))
    if session.is_lost(error):
        lost = f"the device was lost: {reason}"[:500]
        return Outcome(case, Status.INFRA, phase, Cause.NO_DEVICE, lost, describe(error))
    return Outcome(case, Status.ERROR, phase, None, reason, describe(error))


def _full_disk(error: BaseException) -> BaseException | None:
    """The error among ``error`` and what it came of that says that a disk is full."""
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in seen:
        if isinstance(link, OSError) and link.errno in (errno.ENOSPC, errno.EDQUOT):
            return link
        seen.append(link)
        link = link.__cause__ or link.__context__
    return None


def sound(planned: PlannedCase, outcome: Outcome) -> Outcome:
    """``outcome`` where it can cross to the parent, else an error that names whose code made it."""
    try:
        from_plain(Outcome, to_plain(outcome))
        _check_size(outcome)
    except (TypeError, ValueError, AttributeError) as error:
        workload, configuration = planned.case.workload, planned.case.configuration.name
        said = (
            f"suite {workload.suite} ({workload.mode}, {configuration}) reported values "
            f"that cannot be stored: {error}"
        )
        return Outcome(planned.case.key, Status.ERROR, outcome.phase, None, said[:500], describe(error))
    return outcome


def _check_size(outcome: Outcome) -> None:
    """Raise ``ValueError`` for more than the parent can summarise, and the door of a history takes."""
    if (told := len(to_json(outcome.facts))) > MOST_TOLD:
        raise ValueError(f"facts of {told:,} characters, but at most {MOST_TOLD:,} are allowed")
    if (most := max((len(each.samples) for each in outcome.measurements), default=0)) > MOST_SAMPLES:
        raise ValueError(f"{most:,} samples of a metric, but at most {MOST_SAMPLES:,} are allowed")


def conflict_reason(suspect: Suspect, error: BaseException) -> str:
    """What a row says that failed of ``suspect``: the package, why it does not fit, and what to type."""
    why = suspect.why or f"{suspect.package} {suspect.version} breaks modules that import it here"
    remedy = f"; try: {suspect.remedy}"
    return f"{why} ({first_line(error)})"[: 500 - len(remedy)] + remedy


def first_line(error: BaseException) -> str:
    """Return the message of ``error`` in at most 500 characters, after its type unless torchgauge raised it.

    The message is the first line, plus the second if the first ends with a colon, or the exception if a
    traceback follows. If it is empty, the line of code that raised is quoted. The last line of a failed
    command's captured stderr and an attached note follow.
    """
    note = f" ({note_on(error)})" if note_on(error) else ""
    if isinstance(error, TorchgaugeError):  # written for people: no type, and what to try
        message = error.in_a_line
    else:
        text, carried = TRACEBACK.subn("", str(error))
        first, *more = [line.strip() for line in text.splitlines() if line.strip()] or [_raising(error)]
        follows = carried or first.endswith(":")
        message = " ".join([f"{type(error).__name__}:", first, *(more[:1] if follows else [])])
        stderr = getattr(error, "stderr", None)
        stderr = stderr.decode(errors="replace") if isinstance(stderr, bytes) else stderr
        if isinstance(stderr, str) and stderr.strip():
            note = f" {stderr.strip().splitlines()[-1][:200]}{note}"
    return message[: 500 - len(note)] + note


def _raising(error: BaseException) -> str:
    """Return the line of code that raised ``error``, with its place unless a note has that; else empty."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames or not frames[-1].line:
        return ""
    place = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
    return f"`{frames[-1].line}`{'' if note_on(error) else place}"

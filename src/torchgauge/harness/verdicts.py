"""How an exception inside a worker becomes an outcome with a status, a cause and a reason."""

from __future__ import annotations

from torchgauge.devices.session import DeviceSession
from torchgauge.errors import (
    MissingDataError,
    MissingPackageError,
    NoNetworkError,
    NotOfferedError,
    TorchgaugeError,
)
from torchgauge.harness.failure import describe
from torchgauge.records import Cause, Outcome, Phase, Status

_OFFLINE = {"LocalEntryNotFoundError", "OfflineModeIsEnabled"}


def outcome_of(
    error: BaseException, case: str, phase: Phase, session: DeviceSession, install_hint: str
) -> Outcome:
    """The outcome of ``case`` whose ``phase`` raised ``error``."""
    reason = first_line(error)
    if isinstance(error, ModuleNotFoundError) and phase in (Phase.IMPORT, Phase.BUILD):
        reason = (
            f"package {error.name!r} is not installed; try: {install_hint or f'pip install {error.name}'}"
        )
        return Outcome(case, Status.SKIPPED, phase, Cause.MISSING_PACKAGE, reason)
    if isinstance(error, MissingPackageError):
        return Outcome(case, Status.SKIPPED, phase, Cause.MISSING_PACKAGE, reason)
    if isinstance(error, NotOfferedError):
        return Outcome(case, Status.UNSUPPORTED, phase, None, reason)
    if isinstance(error, MissingDataError):
        return Outcome(case, Status.SKIPPED, phase, Cause.MISSING_DATA, reason)
    if isinstance(error, NoNetworkError) or type(error).__name__ in _OFFLINE:
        return Outcome(case, Status.SKIPPED, phase, Cause.NO_NETWORK, reason)
    if isinstance(error, NotImplementedError) and phase is Phase.BUILD:
        return Outcome(case, Status.UNSUPPORTED, phase, None, reason)
    if session.is_oom(error):
        return Outcome(case, Status.OOM, phase, Cause.DEVICE, reason, describe(error))
    if session.is_lost(error):
        lost = f"the device was lost: {reason}"[:500]
        return Outcome(case, Status.INFRA, phase, Cause.NO_DEVICE, lost, describe(error))
    return Outcome(case, Status.ERROR, phase, None, reason, describe(error))


def first_line(error: BaseException) -> str:
    """What ``error`` says in at most 500 characters, with its type where it is no error of ours."""
    if isinstance(error, TorchgaugeError):  # written for people: no type, and what to try
        return f"{error.message}; try: {error.hint}"[:500] if error.hint else error.message[:500]
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:500]

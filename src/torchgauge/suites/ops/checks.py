"""One operator case as a check: what the harness calls for each row of the suite ``ops``. Worker side."""

from __future__ import annotations

import contextlib

from torchgauge.records import Cause, Scalar, Status
from torchgauge.records.case import Workload
from torchgauge.suites.check import CheckOutcome, CheckSession, NotOnThisDeviceError
from torchgauge.suites.ops.database import NoDatabaseError, operators, torch_dtype
from torchgauge.suites.ops.judge import FAIL_ACCURACY, SAMPLES, SKIPPED, Verdict, judge
from torchgauge.suites.ops.script import Shown, script

with contextlib.suppress(Exception):  # so that forks of a warm process have it; a case says what is missing
    operators()


def check(workload: Workload, session: CheckSession) -> CheckOutcome:
    """The verdict on the operator, dtype and variant that ``workload`` names (model, dtype, mode)."""
    try:
        known = operators()
    except NoDatabaseError as error:
        return CheckOutcome(Status.SKIPPED, str(error), Cause.MISSING_PACKAGE)
    op, dtype = known.get(workload.model), torch_dtype(workload.dtype)
    if op is None:
        raise NotOnThisDeviceError(f"this torch has no operator {workload.model!r} in its database")
    if dtype is None:
        raise NotOnThisDeviceError(f"this torch has no dtype {workload.dtype!r}")
    limit = workload.sizes.get("samples", SAMPLES)
    verdict = judge(op, dtype, workload.mode, session.torch_device, limit=limit)
    with contextlib.suppress(Exception):  # what the operator left queued must not be charged to the next one
        session.synchronize()
    if verdict.error is not None and session.is_oom(verdict.error):
        raise verdict.error
    return outcome(workload, str(session.torch_device), verdict)


def outcome(workload: Workload, device: str, verdict: Verdict) -> CheckOutcome:
    """The row's half of ``verdict``: status, reason, samples, and a script where something is wrong."""
    facts: dict[str, Scalar] = {
        "samples": verdict.judged,
        "samples_not_judged": verdict.not_judged,
        "beyond_wide": verdict.beyond_wide,
    }
    if verdict.kernel:
        facts["kernel"] = verdict.kernel
    if verdict.parts:
        facts["kernel_parts"] = verdict.parts
    if verdict.upstream:
        facts["upstream"] = verdict.upstream
    if verdict.failed_at is not None:
        at = verdict.failed_at
        facts["failed_at"] = at.index
        facts["inputs"] = verdict.inputs
        shown = Shown(workload.model, workload.dtype, workload.mode, device, at.index, at.form, at.on_host)
        facts["script"] = script(shown)
    status = Status(verdict.status)
    cause = {SKIPPED: Cause.DECLARED, FAIL_ACCURACY: Cause.TOLERANCE}.get(verdict.status)
    return CheckOutcome(status, verdict.reason, cause, facts=tuple(facts.items()), error=verdict.error)

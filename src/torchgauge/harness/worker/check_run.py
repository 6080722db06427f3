"""The worker's run of a group of checks: one after another, each with its own deadline and outcome.

What kills or hangs the process is charged to the check that was announced last, and the parent starts the
checks behind it in a fresh process (:mod:`torchgauge.harness.pool.derived_status`): one crash costs one
check.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import replace

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.devices.session import DeviceSession
from torchgauge.harness.events import EventWriter
from torchgauge.harness.job import Job
from torchgauge.harness.worker.failure import describe
from torchgauge.harness.worker.libraries import import_builder
from torchgauge.harness.worker.verdicts import first_line, outcome_of, sound
from torchgauge.records import Cause, Outcome, Phase, PlannedCase, Scalar, Status
from torchgauge.suites.check import Check, CheckOutcome, NotOnThisDeviceError, WrongAnswerError


class CheckRun:
    """One group of checks in one process; every check gets exactly one outcome unless the process dies."""

    def __init__(
        self,
        job: Job,
        session: DeviceSession,
        events: EventWriter,
        where: Mapping[str, Scalar] | None = None,
    ) -> None:
        """``where`` says on which CPUs and threads this process runs; every row carries it."""
        if job.group is None:
            raise ValueError("a job of checks needs a group")
        self.job, self.session, self.events, self.group = job, session, events, job.group
        self.where = dict(where or {})

    def run(self) -> None:
        """Import the suite once, then run and report each check."""
        self.events.phase(Phase.IMPORT)
        try:
            check: Check = import_builder(self.job)
        except Exception as error:  # noqa: BLE001  the suite's own failure: it becomes the checks' status
            for planned in self.group.cases:
                self._report(planned, self._raised(planned, error, Phase.IMPORT))
        else:
            # What was announced last is in flight: no cursor, which has 255 places.
            for planned in self.group.cases:
                self.events.phase(Phase.CHECK, planned.case.key)
                began = SYSTEM_CLOCK.steady()
                outcome = self._outcome(planned, check)
                self._report(planned, outcome, seconds=round(SYSTEM_CLOCK.steady() - began, 6))
                gc.collect(0)
        self.events.phase(Phase.DONE)

    def _outcome(self, planned: PlannedCase, check: Check) -> Outcome:
        try:
            said: object = check(planned.case.workload, self.session)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  libraries raise BaseException, and a check may exit
            return self._raised(planned, error, Phase.CHECK)
        if not isinstance(said, CheckOutcome):
            workload = planned.case.workload
            reason = (
                f"the check {workload.model} of suite {workload.suite} returned "
                f"{type(said).__name__} instead of a CheckOutcome"
            )
            return Outcome(planned.case.key, Status.ERROR, Phase.CHECK, None, reason)
        return sound(planned, _outcome_of(planned.case.key, said))

    def _raised(self, planned: PlannedCase, error: BaseException, phase: Phase) -> Outcome:
        key = planned.case.key
        if isinstance(error, NotOnThisDeviceError):
            return Outcome(key, Status.UNSUPPORTED, phase, None, str(error))
        if phase is Phase.CHECK and isinstance(error, NotImplementedError):
            failure = describe(error)
            missing = f"the operator {failure.missing_op} is not implemented for the device"
            reason = missing if failure.missing_op else first_line(error)
            return Outcome(key, Status.UNSUPPORTED, phase, None, reason, failure)
        if isinstance(error, WrongAnswerError):
            reason = " ".join(str(error).split())[:500]
            return Outcome(key, Status.FAIL_ACCURACY, phase, Cause.TOLERANCE, reason, describe(error))
        return outcome_of(error, key, phase, self.session, self.job.remedies)

    def _report(self, planned: PlannedCase, outcome: Outcome, **more: Scalar) -> None:
        facts = {**self.where, **dict(outcome.facts), **more}
        self.events.outcome(replace(outcome, facts=tuple(sorted(facts.items()))))


def _outcome_of(key: str, said: CheckOutcome) -> Outcome:
    """The outcome of the check ``key`` that said ``said``."""
    failure = said.failure
    if failure is None and said.error is not None:
        failure = describe(said.error)
    phase = Phase.DONE if said.status is Status.PASS else Phase.CHECK
    return Outcome(
        key,
        said.status,
        phase,
        said.cause,
        said.reason,
        failure,
        measurements=said.measurements,
        facts=said.facts,
    )

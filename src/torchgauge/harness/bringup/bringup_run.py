"""A bringup from its first part to its last: each within its time, its state on disk before and after."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path

from torchgauge.clock import SYSTEM_CLOCK, Clock
from torchgauge.counted import counted
from torchgauge.devices.device import Device
from torchgauge.devices.discover import parse_target
from torchgauge.errors import InfrastructureError, TorchgaugeError, UnknownNameError
from torchgauge.harness.bringup.campaigns import CASE_S, campaign_of
from torchgauge.harness.bringup.machine import (
    ailments,
    calibrated_findings,
    identity,
    imports,
    unusable,
)
from torchgauge.harness.bringup.part import LATER, SHARES_S, Part, PartRecord, PartState
from torchgauge.harness.bringup.state import STORE, Asked, Bringup, alone, begin, save
from torchgauge.harness.doctor.doctor_run import calibration_campaign, run_calibration
from torchgauge.harness.interpreter.foreign_plugins import device_of
from torchgauge.harness.interpreter.interpreter import Interpreter, interpreter
from torchgauge.harness.run.campaigns import resumed_campaign
from torchgauge.harness.run.progress import Progress
from torchgauge.harness.run.runner import Campaign
from torchgauge.results.journal import RunState
from torchgauge.results.lookup import results_of
from torchgauge.results.store import RunFolder, Store

LEAST_S = 5.0
"""Seconds below which a part is not begun: its first process takes as long."""
NEEDS_AN_ANSWER = frozenset({Part.OPS, Part.MODELS, Part.COLLECTIVES, Part.ALL_OPS})
"""Parts that are not tried on a device that does not answer: each case would hang as the first did."""


@dataclass
class BringupRun:
    """One command of a bringup, in ``folder``: at ``until`` (of the steady clock) its budget is spent.

    Until ``counted_to`` its seconds are in the state. ``after`` is called with the state after each part.
    """

    folder: Path
    state: Bringup
    there: Interpreter
    device: Device | None
    counted_to: float
    until: float
    after: Callable[[Bringup], None]
    clock: Clock = SYSTEM_CLOCK
    interrupted: bool = False

    def run(self) -> Bringup:
        """Every part that is not done, in order, for as long as there is time."""
        for part, share in self._order():
            before = self.state.of(part)
            if before.state is PartState.DONE or self.interrupted:
                continue
            left = min(share, self.until - self.clock.steady())
            self._keep(self._tried(before, left))
            if self.state.answered_s is None and self.state.first_ended and not self.interrupted:
                self.state = replace(self.state, answered_s=self.state.spent_s)
                save(self.folder, self.state)
            if self.state.of(part).state is not PartState.NOT_ASKED:
                self.after(self.state)
        return self.state

    def _order(self) -> Iterator[tuple[Part, float]]:
        """The first parts within their shares (less of a short budget), what they left, the later ones.

        What a part does not use of its share is for those after it.
        """
        whole, wanted, ends = float("inf"), self.state.asked.parts, self.clock.steady()
        needed = sum(share for part, share in SHARES_S.items() if not wanted or part.value in wanted)
        less = min(1.0, (self.until - ends) / needed) if needed else 1.0
        for part, share in SHARES_S.items():
            if not wanted or part.value in wanted:
                ends += less * share
            # in a budget of seconds it is enough for one
            yield part, max(2 * LEAST_S, ends - self.clock.steady())
        for part in SHARES_S:
            if self.state.of(part).state is PartState.OUT_OF_BUDGET and not self.silent:
                yield part, whole
        yield from ((part, whole) for part in LATER)

    @property
    def silent(self) -> str:
        """Why nothing can be measured on the device; empty where something can."""
        return unusable((*self.state.of(Part.IDENTITY).findings, *self.state.of(Part.DOCTOR).findings))

    def _keep(self, record: PartRecord) -> None:
        now = self.clock.steady()
        self.state = replace(self.state.having(record), spent_s=self.state.spent_s + now - self.counted_to)
        self.counted_to = now
        save(self.folder, self.state)

    def _tried(self, before: PartRecord, left_s: float) -> PartRecord:
        """What becomes of the part of ``before`` within ``left_s`` seconds; nothing is raised but Ctrl-C."""
        part = before.part
        if self.state.asked.parts and part.value not in self.state.asked.parts:
            return replace(before, state=PartState.NOT_ASKED, reason="not in --parts")
        if part is Part.COLLECTIVES and not self.state.facts.presence:
            return replace(before, state=PartState.NOT_TRIED, reason="part identity did not count devices")
        if part is Part.COLLECTIVES and self.state.facts.count < 2:
            return replace(before, state=PartState.NOT_ASKED, reason="this part needs two devices")
        if part in NEEDS_AN_ANSWER and self.silent:
            return replace(before, state=PartState.NOT_TRIED, reason=f"no answer: {self.silent}")
        if left_s < LEAST_S:
            return replace(before, state=PartState.OUT_OF_BUDGET, reason=before.reason or "not begun")
        began = self.clock.steady()
        self._keep(replace(before, state=PartState.BEGUN, reason=""))
        try:
            after = self._done(self.state.of(part), left_s)
        except TorchgaugeError as error:
            after = replace(self.state.of(part), state=PartState.FAILED, reason=error.in_a_line)
        except KeyboardInterrupt:
            self.interrupted = True
            after = replace(self.state.of(part), state=PartState.INTERRUPTED)
        except Exception as error:  # noqa: BLE001  a stranger's device: the other parts have their answers
            why = f"{type(error).__name__}: {error}"
            after = replace(self.state.of(part), state=PartState.FAILED, reason=why)
        return replace(after, seconds=before.seconds + self.clock.steady() - began)

    def _done(self, record: PartRecord, left_s: float) -> PartRecord:
        part, name = record.part, parse_target(self.state.asked.device).name
        done = replace(record, state=PartState.DONE, reason="")
        with redirect_stdout(sys.stderr):
            if part is Part.IDENTITY:
                facts, found = identity(self.there, name, left_s)
                self.state = replace(self.state, facts=facts)
                return replace(done, findings=found)
            if part is Part.IMPORT:
                return replace(done, findings=imports(self.there, name, self.device, left_s))
            if part is Part.DOCTOR:
                return self._doctor(done, left_s)
            return self._measured(done, left_s)

    def _doctor(self, done: PartRecord, left_s: float) -> PartRecord:
        """The diagnosis, and a calibration that begins anew where it was interrupted."""
        asked, ends = self.state.asked, self.clock.steady() + left_s
        findings = list(ailments(self.there, parse_target(asked.device).name, left_s / 2))
        if unusable((*self.state.of(Part.IDENTITY).findings, *findings)):
            return replace(done, findings=tuple(findings))
        options = {
            "device": asked.device,
            "store": str(self.folder / STORE),
            "python": asked.python or None,
            "quick": True,
            "threads": asked.threads,
            "timeout": min(CASE_S, left_s / 3),
        }
        campaign = replace(calibration_campaign(options, Progress()), until=ends)
        self._keep(replace(self.state.of(Part.DOCTOR), run_id=campaign.plan.run_id))
        found = run_calibration(campaign)
        rows = results_of(campaign.store, found.run_id)
        findings += calibrated_findings(asked.device, found, rows)
        record = replace(done, run_id=found.run_id, findings=tuple(findings))
        if found.interrupted:
            self.interrupted = True
            return replace(record, state=PartState.INTERRUPTED)
        missing = len(campaign.plan.cases) - len(rows)
        return _late(record, missing) if missing else record

    def _measured(self, done: PartRecord, left_s: float) -> PartRecord:
        campaign, folder = self._campaign(done, left_s)
        if campaign is None:
            return done
        self._keep(replace(self.state.of(done.part), run_id=campaign.plan.run_id))
        report = campaign.run(folder)
        record = replace(done, run_id=report.run_id)
        if report.interrupted:
            self.interrupted = True
            return replace(record, state=PartState.INTERRUPTED)
        if report.out_of_budget:
            return _late(record, report.planned - len(results_of(campaign.store, report.run_id)))
        return record

    def _campaign(self, record: PartRecord, left_s: float) -> tuple[Campaign | None, RunFolder | None]:
        """The campaign of the part, with its folder where it goes on; None where its run is complete."""
        store, until = self.folder / STORE, self.clock.steady() + left_s
        folder = RunFolder(store / "runs" / record.run_id)
        if not record.run_id or not folder.plan_path.is_file():
            made = campaign_of(record.part, self.state.asked, self.there, str(store), left_s)
            return replace(made, until=until), None
        stored = Store.open(store)
        if folder.journal_path.is_file() and stored.info(record.run_id).state is RunState.COMPLETE:
            stored.finish(record.run_id)
            return None, folder
        campaign, folder = resumed_campaign(
            str(folder.path), Progress(), python=self.state.asked.python or None
        )
        settings = replace(campaign.plan.settings, budget_s=left_s)
        return replace(campaign, plan=replace(campaign.plan, settings=settings), until=until), folder


def _late(record: PartRecord, left: int) -> PartRecord:
    return replace(
        record, state=PartState.OUT_OF_BUDGET, reason=f"{counted(left, 'case is', 'cases are')} left"
    )


@contextmanager
def bringup_run(
    folder: Path, asked: Asked, budget_s: float, after: Callable[[Bringup], None]
) -> Iterator[BringupRun]:
    """The bringup in ``folder``, begun or to be gone on with, which no other command has meanwhile.

    A name that nothing answers to writes nothing. Raises :class:`UsageError` for such names and for a folder
    that is of another bringup, or of another command at this moment.
    """
    for word in asked.parts:
        if word not in [part.value for part in Part]:
            raise UnknownNameError("part", word, [part.value for part in Part])
    began = SYSTEM_CLOCK.steady()
    there = interpreter(asked.python or None)
    target = parse_target(asked.device)
    try:
        device = device_of(there, target.name)
    except InfrastructureError:
        device = None  # its package is broken: the parts say how
    with alone(folder):
        state = begin(folder, asked, SYSTEM_CLOCK.now())
        save(folder, state)
        Store.open(folder / STORE, create=True)
        found = BringupRun(folder, state, there, device, began, began + budget_s, after)
        for part in (Part.IDENTITY, Part.DOCTOR) if found.silent else ():  # it may answer by now
            found.state = found.state.having(PartRecord(part, seconds=state.of(part).seconds))
        yield found

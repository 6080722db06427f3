"""What a report of an ordinary run says: how many cases ended how, and which ended other than expected."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from torchgauge.records import INCOMPLETE, Modifier, Status, Subject, counts_as_pass, says_something
from torchgauge.results.journal import RunState, results
from torchgauge.results.reports.report import VERSION
from torchgauge.results.store import RunFolder, Store


@dataclass(frozen=True)
class CaseLine:
    """One case: how it ended, why, how long it took (seconds) and how to run it again.

    ``degraded`` says by what other path than the requested one it ran; empty where it did not. So does
    ``other_model`` of a model that is not what its name says, ``unchecked`` of a result that was compared
    with no reference, and ``unsteady`` of step times in doubt.
    """

    case_id: str
    suite: str
    device: str
    status: Status
    unexpected: bool
    reason: str
    duration_s: float
    reproduce: str
    degraded: str = ""
    other_model: str = ""
    unchecked: str = ""
    unsteady: str = ""
    of_a_model: bool = True

    @property
    def counted(self) -> bool:
        """Whether it is counted among the passes."""
        return counts_as_pass(self.status, self._modifiers())

    @property
    def tells(self) -> bool:
        """Whether it says anything of its case."""
        return says_something(self.status, self._modifiers(), of_a_model=self.of_a_model)

    def _modifiers(self) -> list[str]:
        return [modifier.value for modifier in Modifier if getattr(self, modifier.value, "")]


@dataclass(frozen=True)
class RunReport:
    """A run as it is reported: its state, a line for each case that has a row; the rest is ``not_run``."""

    run_id: str
    created_at: float
    state: RunState
    planned: int
    cases: tuple[CaseLine, ...]
    not_run: tuple[str, ...]
    command: tuple[str, ...]
    version: int = VERSION

    @property
    def counts(self) -> dict[str, int]:
        """Cases by status; those without a row count as ``not_run``."""
        found = Counter(each.status.value for each in self.cases)
        found[Status.NOT_RUN.value] += len(self.not_run)
        return {status.value: found[status.value] for status in Status if found[status.value]}

    @property
    def unexpected(self) -> tuple[CaseLine, ...]:
        """Return the cases whose status, or its cause, is not the expected one."""
        return tuple(each for each in self.cases if each.unexpected)

    @property
    def degraded(self) -> tuple[CaseLine, ...]:
        """Cases that passed, but not by the requested path."""
        return tuple(each for each in self.cases if each.status is Status.PASS and each.degraded)

    @property
    def other_models(self) -> tuple[CaseLine, ...]:
        """Cases of another model than their name says, which say nothing of the named one."""
        return tuple(each for each in self.cases if each.other_model)

    @property
    def unchecked(self) -> tuple[CaseLine, ...]:
        """Cases whose numbers nothing checked, which count as no pass."""
        return tuple(each for each in self.cases if each.unchecked)

    @property
    def unsteady(self) -> tuple[CaseLine, ...]:
        """Cases whose step times are in doubt, which count as passes and are compared with nothing."""
        return tuple(each for each in self.cases if each.unsteady)

    @property
    def incomplete(self) -> bool:
        """Whether something that was planned has not been measured."""
        missing = bool(self.not_run) or any(each.status in INCOMPLETE for each in self.cases)
        return missing or self.state is not RunState.COMPLETE


def run_report(store: Store, folder: RunFolder) -> RunReport:
    """The report of the run in ``folder``; raises :class:`DataFileError` for a damaged plan."""
    plan, info = folder.plan(), store.info(folder.run_id)
    rows = list(results(folder.journal_path)) if folder.journal_path.is_file() else []
    known = {row.case.key for row in rows}
    return RunReport(
        plan.run_id,
        plan.created_at,
        info.state,
        len(plan.cases),
        tuple(
            CaseLine(
                row.case_id,
                row.case.workload.suite,
                str(row.case.device),
                row.status,
                row.unexpected,
                row.other_cause or row.reason or (row.failure.message if row.failure else ""),
                row.duration_s,
                row.reproduce,
                row.degraded,
                row.other_model,
                row.unchecked,
                row.unsteady,
                row.case.workload.subject is Subject.MODELS,
            )
            for row in rows
        ),
        tuple(planned.case.id for planned in plan.cases if planned.case.key not in known),
        plan.command,
    )

"""What an executor yields, on its way into the journal: durable, counted, and shown."""

from __future__ import annotations

from dataclasses import dataclass, field

from torchgauge.clock import Clock
from torchgauge.errors import UsageError
from torchgauge.harness.executors.executor import Attempted, BudgetSpent, RunNote, Yield
from torchgauge.harness.run.progress import Progress
from torchgauge.harness.run.rows import unattempted
from torchgauge.harness.run.run_report import RunReport
from torchgauge.harness.run.versions import ALLOW, Versions
from torchgauge.records import Calibration, Cause, Environment, Plan, PlannedCase, Result, Status
from torchgauge.results.attempts import Attempts
from torchgauge.results.journal import Journal, Kind, Note, read


@dataclass
class RowKeeper:
    """Keeps what ``journal`` is to hold of ``plan``; rows are those of cases that are ``left``.

    A case leaves ``left`` with its row. What a resumed journal has of attempts and versions is taken up.
    """

    plan: Plan
    journal: Journal
    report: RunReport
    progress: Progress
    clock: Clock
    left: dict[str, PlannedCase]
    versions: Versions = field(default_factory=Versions)
    attempts: Attempts = field(default_factory=Attempts)

    def __post_init__(self) -> None:
        for said in self.journal.attempts():
            self.attempts.restore(said)
        for line in read(self.journal.path):
            if line.kind is Kind.ENVIRONMENT:
                self.versions.differ(line.payload())

    def keep(self, item: Yield) -> None:
        """Keep ``item``; raises ``TypeError`` and ``ValueError`` for what no executor may yield.

        Raises :class:`UsageError` for an environment of another torch than the run has.
        """
        if isinstance(item, Environment):
            if differs := self.versions.differ(item):
                raise UsageError(f"run {self.plan.run_id} would mix versions: {differs}", hint=ALLOW)
            self.journal.append(Kind.ENVIRONMENT, [item])
        elif isinstance(item, Calibration):
            self.journal.append(Kind.CALIBRATION, [item])
        elif isinstance(item, BudgetSpent):
            self.report.out_of_budget = True
        elif isinstance(item, RunNote):
            self.note(item.text)
        elif isinstance(item, Attempted):
            self._refuse_unknown(item.rows)
            said = [self.attempts.add(item.again, each) for each in item.rows if not self.attempts.has(each)]
            self.journal.append(Kind.ATTEMPT, said)
        elif not isinstance(item, list) or not all(isinstance(each, Result) for each in item):
            raise TypeError(f"an executor must not yield objects of type {type(item).__name__}")
        else:
            self._refuse_unknown(item)
            self.rows(self.versions.marked(item))

    def note(self, text: str) -> None:
        """Keep a fact about the run, and say it."""
        self.journal.append(Kind.NOTE, [Note(text, self.clock.now())])
        self.progress.note(text)

    def rows(self, last: list[Result]) -> None:
        """Keep the rows of cases whose ``last`` attempts these are."""
        closed = [self.attempts.close(each) for each in last]
        self.journal.append(Kind.ATTEMPT, [said for _, said in closed if said is not None])
        results = [row for row, _ in closed]
        self.journal.append(Kind.RESULT, results)
        for result in results:
            del self.left[result.case.key]
            self.report.add(result)
        self.progress.results(results, self.report)

    def lose(self, how: str) -> None:
        """The rows of what the executor left: every planned case has one."""
        lost = [
            unattempted(self.plan, each, Status.INFRA, Cause.LOST_WORKER, how) for each in self.left.values()
        ]
        if lost:
            self.rows(lost)

    def _refuse_unknown(self, rows: list[Result] | tuple[Result, ...]) -> None:
        if unknown := [each.case_id for each in rows if each.case.key not in self.left]:
            raise ValueError(f"a result of a case that is not left to run: {unknown[0]}")

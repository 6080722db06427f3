"""The untrusted half of the gate of a pull request: base and head on one machine, in one job, and a set.

Whatever happens on the way, something is submitted that says so: without it a broken build would be as silent
as a job that never ran.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from torchgauge.errors import TorchgaugeError
from torchgauge.harness.ab.comparison import Request, new_comparison
from torchgauge.harness.ab.judging import judge_for, read_policy
from torchgauge.harness.ab.progress import AbProgress
from torchgauge.harness.ab.run_comparison import run_comparison
from torchgauge.harness.planning.selection import Selection
from torchgauge.records import RunSettings
from torchgauge.records.comparison import CodeSource, SideSpec
from torchgauge.results.comparing.comparison_store import ComparisonFolder
from torchgauge.results.comparing.gate_verdict import EXIT_CODES, GATE_VERDICTS, INTERRUPTED, GateVerdict
from torchgauge.results.journal import RunState
from torchgauge.results.reports.report import ComparisonReport, comparison_report
from torchgauge.results.store import Store
from torchgauge.workflows.gate_set import Origin, write_gate_set
from torchgauge.workflows.side_environment import make_environment


@dataclass(frozen=True)
class Side:
    """One side: what to install, or an interpreter that is there already, its name, and its code if known."""

    label: str
    specification: str = ""
    python: str = ""
    source: CodeSource | None = None


@dataclass(frozen=True)
class AbGate:
    """Holds what to compare, where, and for how long (seconds); ``install`` is the command of the pool."""

    pool: str
    base: Side
    head: Side
    selection: Selection
    settings: RunSettings
    origin: Origin
    budget_s: float | None = None
    policy: str = ""
    also: tuple[str, ...] = ()
    install: str = ""
    max_launches: int = 12
    controls: int = 2
    seed: int | None = None


@dataclass(frozen=True)
class AbGateEnding:
    """What was submitted: the verdict and its report, or in ``trouble`` why nothing was measured.

    ``exit_code`` is that of ``torchgauge ab`` after the same.
    """

    verdict: GateVerdict
    trouble: str
    report: ComparisonReport | None
    exit_code: int

    @property
    def run_id(self) -> str:
        """The A/B run; empty where there is none."""
        return self.report.run_id if self.report else ""


def run_ab_gate(wanted: AbGate, store: Path, work: Path, out: Path, progress: AbProgress) -> AbGateEnding:
    """Compare as ``wanted`` says and write the set to ``out``; environments are made in ``work``.

    Raises :class:`UsageError` only where no set can be written. All other trouble is what the set tells of.
    """
    sides = (wanted.base.label, wanted.head.label)
    report: ComparisonReport | None = None
    trouble, code = "", None
    try:
        report = _measured(wanted, store, work, progress)
    except TorchgaugeError as error:
        trouble, code = str(error), error.exit_code
    write_gate_set(out, wanted.origin, wanted.pool, sides, report, trouble=trouble)
    verdict = GateVerdict.INCOMPLETE if report is None else GATE_VERDICTS[report.headline]
    if report is not None and report.state is RunState.INTERRUPTED:
        code = INTERRUPTED
    return AbGateEnding(verdict, trouble, report, EXIT_CODES[verdict] if code is None else code)


def _measured(wanted: AbGate, store: Path, work: Path, progress: AbProgress) -> ComparisonReport:
    policy = read_policy(wanted.policy)
    base, head = (
        SideSpec(side.label, _interpreter(side, work / name, wanted), source=side.source)
        for name, side in (("base", wanted.base), ("head", wanted.head))
    )
    request = Request(
        selection=wanted.selection,
        settings=wanted.settings,
        base=base,
        head=head,
        controls=wanted.controls,
        seed=wanted.seed,
        max_launches=wanted.max_launches,
        policy=str(Path(wanted.policy).absolute()) if wanted.policy else "",
    )
    comparison = new_comparison(request, store=str(store), progress=progress)
    ending = run_comparison(comparison, judge_for(comparison, policy), max_time_s=wanted.budget_s)
    return comparison_report(Store.open(store), ComparisonFolder(ending.folder))


def _interpreter(side: Side, folder: Path, wanted: AbGate) -> str:
    if not side.specification:
        return side.python or sys.executable
    return str(make_environment(folder, side.specification, wanted.also, wanted.install))

"""What A/B runs of the store say, worst verdicts first, and how often the rule was seen to cry wolf."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchgauge.dashboard.plain_rows import Row, plain_rows
from torchgauge.errors import TorchgaugeError
from torchgauge.records.comparison import CodeSource, Verdict
from torchgauge.results import units
from torchgauge.results.comparing.verdict_words import CHANGED, ORDER, WORSE

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext
    from torchgauge.results.comparing.noise_ledger import CaseNoise, Ledger

MOST_RUNS, MOST_VERDICTS, MOST_CASES = 20, 25, 50

_COLUMNS = (
    "pair_id", "pair_key", "base_label", "head_label", "metric", "verdict", "reason", "ratio", "low", "high",
    "confidence", "tolerance", "launches", "confirmed", "quarantined", "control", "action", "run_created_at",
)  # fmt: skip
_UNCLEAR = frozenset({Verdict.UNDECIDED, Verdict.NOT_COMPARABLE})
BADGES: dict[str, str] = {
    each.value: "s-err" if each in WORSE else "s-acc" if each in _UNCLEAR else "s-pass" for each in Verdict
}
"""The class of each verdict's badge: red for what is worse, blue for what is better or the same."""


@dataclass(frozen=True)
class ABRun:
    """One A/B run: ``rows`` are the verdicts that are listed, of ``judged``, which ``counts`` has by verdict.

    ``controls`` are its A/A comparisons, of which ``alarms`` said that something changed.
    """

    run_id: str
    rows: list[Row]
    judged: int
    counts: Mapping[str, int]
    controls: int
    alarms: int
    command: str
    problem: str
    sources: tuple[CodeSource | None, CodeSource | None] = (None, None)


@dataclass(frozen=True)
class ABRuns:
    """All of it; ``older`` A/B runs are counted only, ``open`` ones have no tables yet."""

    runs: tuple[ABRun, ...]
    older: int
    open: tuple[str, ...]
    ledger: Ledger | None
    problem: str

    @property
    def quarantine(self) -> list[CaseNoise]:
        """Cases in quarantine."""
        return [each for each in self.ledger.cases if each.quarantine][:MOST_CASES] if self.ledger else []

    @property
    def alarming(self) -> list[CaseNoise]:
        """Cases that raised false alarms and are not in quarantine, the loudest first."""
        loud = [each for each in self.ledger.cases if each.alarms.alarms] if self.ledger else []
        loud.sort(key=lambda each: (-each.alarms.alarms, each.case_id))
        return [each for each in loud if not each.quarantine][:MOST_CASES]


def ab_runs(context: SiteContext) -> ABRuns | None:
    """What the A/B runs say; None where the store has none."""
    folder = context.store.path / "comparisons"
    if not folder.is_dir() or not any(folder.glob("[!.]*")):
        return None
    from torchgauge.results.comparing.comparison_store import comparison_ids
    from torchgauge.results.comparing.noise_ledger import read_ledger

    ids = comparison_ids(context.store)
    there = [run for run in ids if context.store.table_path("verdicts", run).is_file()]
    ledger, problem = None, ""
    try:
        ledger = read_ledger(context.store, context.now)
    except TorchgaugeError as error:
        problem = f"the noise ledger cannot be read: {error.message}"
    shown = tuple(_ab_run(context, run) for run in reversed(there[-MOST_RUNS:]))
    return ABRuns(
        shown, len(there) - len(shown), tuple(run for run in ids if run not in there), ledger, problem
    )


def _ab_run(context: SiteContext, run: str) -> ABRun:
    from torchgauge.results.comparing.comparison_store import ComparisonFolder, read_comparisons

    command, problem = "", ""
    sources: tuple[CodeSource | None, CodeSource | None] = None, None
    rows: list[Row] = []
    try:
        rows = plain_rows(read_comparisons(context.store, "verdicts", [run], _COLUMNS))
    except TorchgaugeError as error:
        problem = error.message
    try:
        plan = ComparisonFolder(context.store.path / "comparisons" / run).plan()
        command = units.shortened(shlex.join(plan.command), 4_000)
        sources = plan.base.source, plan.head.source
    except TorchgaugeError as error:
        problem = problem or error.message
    judged = sorted((row for row in rows if not row["control"]), key=_rank)
    listed = [row for row in judged if row["verdict"] != Verdict.UNCHANGED.value]
    controls = {row["pair_key"] for row in rows if row["control"]}
    alarms = {row["pair_key"] for row in rows if row["control"] and row["verdict"] in CHANGED}
    counts = Counter(row["verdict"] for row in judged)
    return ABRun(
        run,
        (listed or judged)[:MOST_VERDICTS],
        len(judged),
        counts,
        len(controls),
        len(alarms),
        command,
        problem,
        sources,
    )


def _rank(row: Row) -> tuple[int, float, str, str]:
    place = ORDER.index(row["verdict"]) if row["verdict"] in BADGES else 0
    return place, -abs((row["ratio"] or 1.0) - 1.0), row["pair_id"], row["metric"]

"""Comparisons and gates for a terminal: the verdict first, then what it rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from torchgauge import registry
from torchgauge.records.comparison import Action, MetricVerdict, Verdict
from torchgauge.records.metrics import METRICS
from torchgauge.results import document
from torchgauge.results.comparing.gate import GateResult
from torchgauge.results.comparing.policy import STEP_TIMES
from torchgauge.results.comparing.run_pairs import Difference
from torchgauge.results.comparing.two_runs import TwoRuns
from torchgauge.results.comparing.verdict_words import ORDER, change, gain, gains, named
from torchgauge.results.document import ours


def comparison_text(found: TwoRuns) -> str:
    """``torchgauge compare`` for a person."""
    pairs = [each for each in found.verdicts if each.pair_key]
    told = [each for each in pairs if not _goes_without_saying(each)]
    told.sort(key=lambda each: (ORDER.index(each.verdict), each.pair_id, each.metric))
    rest = [each for each in pairs if _goes_without_saying(each)]
    speeds = found.differs is not Difference.RUN

    return document.terminal(
        "results/comparing/comparison",
        found=found,
        said=_counts(pairs),
        suite=[each for each in found.verdicts if not each.pair_key],
        told=told,
        unchanged=_metrics_of(each for each in rest if each.verdict is Verdict.UNCHANGED),
        silent=_metrics_of(each for each in rest if each.verdict is Verdict.UNDECIDED),
        speeds=speeds,
        value=lambda each: ours(gain(each) or "-"),
        gains=ours(gains(told)),
        change=lambda each: ours(change(each) or "-"),
    )


def gate_text(result: GateResult, title: str) -> str:
    """``torchgauge gate`` for a person: what it says, and why."""
    seen = [each for each in result.verdicts if not each.control]
    return document.terminal(
        "results/comparing/gate",
        result=result,
        title=title,
        said=_counts(seen),
        ignored=sum(each.action is Action.IGNORE for each in seen),
        quarantined=sorted({each.pair_id for each in seen if each.quarantined}),
        value=lambda each: ours(named(each) or "-"),
    )


def _counts(verdicts: Iterable[MetricVerdict]) -> str:
    counts = Counter(each.verdict for each in verdicts)
    return ours(", ".join(f"{counts[verdict]} {verdict.value}" for verdict in ORDER if counts[verdict]))


def _metrics_of(verdicts: Iterable[MetricVerdict]) -> str:
    """Return each metric of ``verdicts`` with its number of cases: ``status 3, peak_memory 2``."""
    return ours(
        ", ".join(f"{name} {count}" for name, count in Counter(each.metric for each in verdicts).items())
    )


def _goes_without_saying(verdict: MetricVerdict) -> bool:
    """Return whether a metric needs no row: unchanged, or undecided where that gates nothing.

    Step times and the metrics of packages always have one.
    """
    if verdict.metric in STEP_TIMES or verdict.metric in registry.metrics().keys() - METRICS.keys():
        return False
    undecided = verdict.verdict is Verdict.UNDECIDED and verdict.action is not Action.GATE
    return undecided or verdict.verdict is Verdict.UNCHANGED

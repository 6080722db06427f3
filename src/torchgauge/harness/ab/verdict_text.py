"""Verdicts as a person reads them on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from torchgauge.records.comparison import Action, MetricVerdict, Verdict
from torchgauge.results import units

BAD = frozenset({Verdict.REGRESSION, Verdict.BROKEN})
UNKNOWN = frozenset({Verdict.UNDECIDED, Verdict.NOT_COMPARABLE})
_NAMES = {Verdict.NOT_COMPARABLE: "not comparable"}


def verdict_lines(verdicts: Sequence[MetricVerdict]) -> list[str]:
    """Headline, one row per pair, what else was found, and the whole suite.

    Metrics other than the latency have a row where they are more than unchanged.
    """
    judged = [each for each in verdicts if not each.control]
    lines = [headline(verdicts)]
    latency = [each for each in verdicts if each.metric == "latency" and each.pair_key]
    others = [each for each in verdicts if each.metric != "latency" and each.pair_key and _is_news(each)]
    rows = [_row(each) for each in latency]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    for cells, each in zip(rows, latency, strict=True):
        lines.append("  " + "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip())
        lines += _why(each)
    for each in others:
        lines.append(f"  {each.pair_id}  {each.metric}: {_name(each.verdict)}  {_change(each)}".rstrip())
        lines += _why(each)
    for each in verdicts:
        if not each.pair_key:
            lines.append(f"whole suite: {ratio_text(each)}, {_name(each.verdict)}")
            lines += _why(each)
    lines.append(counts_text(judged or verdicts))
    return lines


def headline(verdicts: Sequence[MetricVerdict]) -> str:
    """The verdict on everything in one line; A/A pairs count only where there is nothing else."""
    judged = [each for each in verdicts if not each.control]
    if not verdicts:
        return "UNDECIDED: nothing was compared"
    if not judged:
        wrong = sum(each.verdict in BAD | {Verdict.IMPROVEMENT, Verdict.FIXED} for each in verdicts)
        pairs = len({each.pair_key for each in verdicts if each.pair_key})
        return f"A/A: {wrong} false alarms in {pairs} pairs"
    bad = [each for each in judged if each.verdict in BAD]
    gating = [each for each in bad if each.action is Action.GATE]
    if bad:
        softened = "" if gating else " (nothing of it gates)"
        broken = len({each.pair_key for each in bad if each.verdict is Verdict.BROKEN})
        slower = len({each.pair_key for each in bad if each.verdict is Verdict.REGRESSION})
        parts = [f"{broken} broken"] * bool(broken) + [f"{slower} worse"] * bool(slower)
        return f"REGRESSION: {', '.join(parts)}{softened}"
    unknown = {each.pair_key for each in judged if each.verdict in UNKNOWN and each.metric == "latency"}
    if unknown:
        return f"UNDECIDED: no regression was found, but {len(unknown)} could not be decided"
    better = {each.pair_key for each in judged if each.verdict in (Verdict.IMPROVEMENT, Verdict.FIXED)}
    return f"IMPROVEMENT: {len(better)} better, none worse" if better else "UNCHANGED within the tolerance"


def ratio_text(verdict: MetricVerdict) -> str:
    """``1.012x [1.004, 1.020] after 4 launches``."""
    if verdict.ratio is None:
        return "no ratio"
    text = units.interval(verdict.ratio, verdict.low, verdict.high, "ratio")
    return f"{text} after {_launches(verdict.launches)}"


def counts_text(verdicts: Sequence[MetricVerdict]) -> str:
    """How many verdicts of each kind there are, over all metrics."""
    counts = Counter(each.verdict for each in verdicts)
    found = ", ".join(f"{counts[each]} {_name(each)}" for each in Verdict if counts[each])
    return f"{len(verdicts)} verdicts over all metrics: {found or 'none'}"


def _is_news(verdict: MetricVerdict) -> bool:
    """Whether a metric beside the latency needs a row; what does not gate needs one only where it changed."""
    quiet = {Verdict.UNCHANGED} | (UNKNOWN if verdict.action is not Action.GATE else set())
    return verdict.verdict not in quiet


def _row(verdict: MetricVerdict) -> list[str]:
    ratio = (
        units.interval(verdict.ratio, verdict.low, verdict.high, "ratio")
        if verdict.ratio is not None
        else "-"
    )
    return [verdict.pair_id, _change(verdict), ratio, _name(verdict.verdict), _launches(verdict.launches)]


def _change(verdict: MetricVerdict) -> str:
    ends = [
        "-" if each is None else units.quantity(each, verdict.unit) for each in (verdict.base, verdict.head)
    ]
    return "" if ends == ["-", "-"] else f"{ends[0]} -> {ends[1]}"


def _why(verdict: MetricVerdict) -> list[str]:
    said = verdict.verdict in UNKNOWN or verdict.verdict in (Verdict.BROKEN, Verdict.FIXED)
    return [f"    {verdict.reason}"] if verdict.reason and said else []


def _name(verdict: Verdict) -> str:
    return _NAMES.get(verdict, verdict.value)


def _launches(count: int) -> str:
    return f"{count} launch" if count == 1 else f"{count} launches"

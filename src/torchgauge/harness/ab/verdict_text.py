"""Verdicts as a person reads them on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from torchgauge.counted import counted
from torchgauge.records.comparison import Action, MetricVerdict, Verdict
from torchgauge.results.comparing import gate_verdict
from torchgauge.results.comparing import verdict_words as words
from torchgauge.results.comparing.gate_verdict import Headline
from torchgauge.results.journal import RunState
from torchgauge.results.reports import report

STATUS = "status"


def verdict_lines(verdicts: Sequence[MetricVerdict], state: RunState = RunState.COMPLETE) -> list[str]:
    """Headline, one row per pair, what else was found, and the whole suite.

    Metrics other than the latency have a row where they are more than unchanged.
    """
    judged = [each for each in verdicts if not each.control]
    lines = [headline(verdicts, state)]
    latency = [each for each in verdicts if each.metric == "latency" and each.pair_key]
    others = [each for each in verdicts if each.metric != "latency" and each.pair_key and _is_news(each)]
    rows = [_row(each) for each in latency]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    for cells, each in zip(rows, latency, strict=True):
        lines.append("  " + "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip())
        lines += _why(each)
    for each in others:
        lines.append(
            f"  {each.pair_id}  {each.metric}: {words.name(each.verdict)}  {words.change(each)}".rstrip()
        )
        lines += _why(each)
    for each in verdicts:
        if not each.pair_key:
            so_far = f"{words.named(each) or 'no speed-up'} after {words.launches(each.launches)}"
            lines.append(f"whole suite: {so_far}, {words.name(each.verdict)}")
            lines += _why(each)
    if judged and words.alarms(verdicts):
        lines.append(f"in doubt: {words.in_doubt(verdicts)}")
    lines.append(counts_text(judged or verdicts))
    return lines


def headline(verdicts: Sequence[MetricVerdict], state: RunState = RunState.COMPLETE) -> str:
    """The verdict on everything in one line, by the rule of the reports; A/A pairs count only when alone."""
    judged = [each for each in verdicts if not each.control]
    pairs = {each.pair_key for each in judged or verdicts if each.pair_key}
    if verdicts and not judged:
        wrong = sum(each.verdict in words.CHANGED for each in verdicts)
        return f"A/A: {counted(wrong, 'false alarm')} in {words.pairs(len(pairs))}"
    counts = report.count(len(pairs), judged, 0)
    silent = counts.undecided + counts.not_comparable
    # The other headlines begin with a capital letter, so this text does too.
    first, comma, rest = words.let_pass(judged).partition(",")
    texts = {
        Headline.REGRESSION: f"Regression: {words.worse(judged)}",
        Headline.NOTHING_COMPARED: "Undecided: nothing was compared",
        Headline.INCOMPLETE: f"Incomplete: no regression was found, and {silent} could not be decided so far",
        Headline.IN_DOUBT: "In doubt: the same build, measured twice, was judged to have changed, see below",
        Headline.NOTHING_GATES: "Undecided: under the policy, none of the compared pairs can fail the gate",
        Headline.UNDECIDED: f"Undecided: no regression was found, but {silent} could not be decided",
        Headline.REPORTED: first.capitalize() + comma + rest,
        Headline.IMPROVEMENT: f"Improvement: {counts.changed} better, none worse",
        Headline.UNCHANGED: f"Unchanged within the tolerance: {words.pairs(len(pairs))}",
    }
    return texts[gate_verdict.headline(verdicts, incomplete=state is not RunState.COMPLETE)]


def counts_text(verdicts: Sequence[MetricVerdict]) -> str:
    """How many verdicts of each kind there are, over all metrics."""
    counts = Counter(each.verdict for each in verdicts)
    found = ", ".join(f"{counts[each]} {words.name(each)}" for each in Verdict if counts[each])
    return f"{counted(len(verdicts), 'verdict')} over all metrics: {found or 'none'}"


def _is_news(verdict: MetricVerdict) -> bool:
    """Whether a metric beside the latency needs a row; what does not gate needs one only where it changed."""
    quiet = {Verdict.UNCHANGED} | (words.SILENT if verdict.action is not Action.GATE else set())
    told = verdict.metric == STATUS and verdict.verdict is Verdict.UNCHANGED and verdict.reason
    return verdict.verdict not in quiet or bool(told)


def _row(verdict: MetricVerdict) -> list[str]:
    count = words.launches(verdict.launches)
    found = (words.change(verdict), words.named(verdict) or "-", words.name(verdict.verdict), count)
    return [verdict.pair_id, *found]


def _why(verdict: MetricVerdict) -> list[str]:
    said = verdict.metric == STATUS or verdict.verdict in {*words.SILENT, Verdict.BROKEN, Verdict.FIXED}
    return [f"    {verdict.reason}"] if verdict.reason and said else []

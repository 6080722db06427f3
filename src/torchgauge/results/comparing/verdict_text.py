"""Comparisons and gates as lines of text for a terminal: the verdict first, then what it rests on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from torchgauge.records.comparison import Action, MetricVerdict, Verdict
from torchgauge.results.comparing.gate import GateResult
from torchgauge.results.comparing.policy import STEP_TIMES
from torchgauge.results.comparing.run_pairs import Difference
from torchgauge.results.comparing.two_runs import TwoRuns
from torchgauge.results.comparing.verdict_words import ORDER, change
from torchgauge.results.units import shortened

_WIDTH = 100
_FACTS = 12


def comparison_lines(found: TwoRuns) -> Iterator[str]:
    """``torchgauge compare`` for a person; devices and configurations have a speed-up in place of a ratio."""
    suite = [each for each in found.verdicts if not each.pair_key]
    pairs = [each for each in found.verdicts if each.pair_key]
    counts = Counter(each.verdict for each in pairs)
    said = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in ORDER if counts[verdict])
    yield f"{found.base.label} -> {found.head.label}: {said or 'nothing to compare'}"
    speeds = found.differs is not Difference.RUN
    for each in suite:
        value = f"speed-up {speed_up(each)}" if speeds else ratio(each)
        yield f"suite: {each.verdict.value} {value}; {each.reason}"
    yield from _facts(found)
    yield ""
    head = "speed-up" if speeds else "ratio"
    yield f"{'verdict':<15} {'metric':<13} {'first -> second':<22} {head + ' [95 %]':<24} case"
    told = [each for each in pairs if not _goes_without_saying(each)]
    for each in sorted(told, key=lambda each: (ORDER.index(each.verdict), each.pair_id, each.metric)):
        value = speed_up(each) if speeds and each.unit == "s" else ratio(each)
        yield f"{shown(each):<15} {each.metric:<13} {change(each) or '-':<22} {value:<24} {each.pair_id}"
        if each.reason and each.verdict is not Verdict.UNCHANGED:
            yield f"{'':<15} {shortened(each.reason, _WIDTH)}"
    if len(told) < len(pairs):
        silent = sum(each.verdict is Verdict.UNDECIDED for each in pairs if each not in told)
        said = f", {silent} measured once and not judged" if silent else ""
        unchanged = len(pairs) - len(told) - silent
        yield f"and {unchanged} unchanged in status, compile time, memory or graphs{said}"
    if found.dropped:
        yield ""
        yield f"outside the common set: {', '.join(found.dropped)}"


def _goes_without_saying(verdict: MetricVerdict) -> bool:
    """Whether a metric beside step times needs no row: unchanged, or undecided where that gates nothing."""
    if verdict.metric in STEP_TIMES:
        return False
    undecided = verdict.verdict is Verdict.UNDECIDED and verdict.action is not Action.GATE
    return undecided or verdict.verdict is Verdict.UNCHANGED


def gate_lines(result: GateResult, title: str) -> Iterator[str]:
    """``torchgauge gate`` for a person: what it says, and why."""
    word = {0: "pass", 1: "FAIL", 3: "NOT KNOWN"}[result.exit_code]
    seen = [each for each in result.verdicts if not each.control]
    counts = Counter(each.verdict for each in seen)
    said = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in ORDER if counts[verdict])
    yield f"{word}: {title}: {said or 'no verdicts'}"
    yield from (f"  {reason}" for reason in result.reasons)
    yield from (f"  does not gate: {_brief(each)}" for each in result.reported)
    yield from (f"  {_brief(each)}" for each in result.undecided)
    ignored = sum(each.action is Action.IGNORE for each in seen)
    if ignored:
        yield f"  {ignored} verdicts are ignored by the policy"
    quarantined = sorted({each.pair_id for each in seen if each.quarantined})
    if quarantined:
        yield f"  in quarantine, at three times the tolerance: {', '.join(quarantined)}"


def shown(verdict: MetricVerdict) -> str:
    """The verdict with a mark of quarantine."""
    return f"{verdict.verdict.value}{' (q)' if verdict.quarantined else ''}"


def ratio(verdict: MetricVerdict) -> str:
    """Ratio with its interval, such as ``1.053 [1.041, 1.066]``; ``-`` where there is none."""
    return _interval(verdict.ratio, verdict.low, verdict.high)


def speed_up(verdict: MetricVerdict) -> str:
    """How many times faster the second side is, with its interval: the ratio upside down."""
    values = (verdict.ratio, verdict.high, verdict.low)
    return _interval(*(1 / value if value else None for value in values))


def _interval(value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return "-"
    text = f"{value:.3f}"
    return text if low is None or high is None else f"{text} [{low:.3f}, {high:.3f}]"


def _facts(found: TwoRuns) -> Iterator[str]:
    """What of the environment differs."""
    names: Sequence[str] = list(found.facts)
    if not names and found.differs is Difference.RUN:
        yield "the environments are equal: what differs is the hour"
    for name in names[:_FACTS]:
        ours, theirs = found.facts[name]
        yield f"differs: {name}: {ours} -> {theirs}"
    if len(names) > _FACTS:
        yield f"differs: and {len(names) - _FACTS} more facts of the environment"


def _brief(verdict: MetricVerdict) -> str:
    detectable = (
        f"; smallest change that it could have seen {verdict.detectable:.1%}" if verdict.detectable else ""
    )
    why = f": {shortened(verdict.reason, _WIDTH)}" if verdict.reason else ""
    return f"{verdict.verdict.value}: {verdict.metric} of {verdict.pair_id} {ratio(verdict)}{why}{detectable}"

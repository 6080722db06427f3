"""The words for one verdict and for a handful of them, the same on terminals and in reports."""

from __future__ import annotations

from collections.abc import Iterable

from torchgauge.counted import counted
from torchgauge.records.comparison import Action, MetricVerdict, Verdict
from torchgauge.results import units
from torchgauge.results.gain import gain_names, gain_text, named_gain

ORDER = (
    Verdict.BROKEN,
    Verdict.OUTPUTS_DIFFER,
    Verdict.REGRESSION,
    Verdict.NOT_COMPARABLE,
    Verdict.UNDECIDED,
    Verdict.FIXED,
    Verdict.IMPROVEMENT,
    Verdict.UNCHANGED,
)
"""Verdicts in the order in which a person needs them."""

WORSE = frozenset({Verdict.REGRESSION, Verdict.BROKEN, Verdict.OUTPUTS_DIFFER})
"""Verdicts that fail a gate."""
BETTER = frozenset({Verdict.IMPROVEMENT, Verdict.FIXED})
CHANGED = WORSE | BETTER
MOST_ALARMS = 3
SILENT = frozenset({Verdict.UNDECIDED, Verdict.NOT_COMPARABLE})
"""Verdicts that say nothing of the metric, and never that it is fine."""

_NAMES = {Verdict.NOT_COMPARABLE: "not comparable", Verdict.OUTPUTS_DIFFER: "outputs differ"}


def name(verdict: Verdict) -> str:
    """The verdict as it is written in a sentence."""
    return _NAMES.get(verdict, verdict.value)


def gain(verdict: MetricVerdict) -> str:
    """Return how many times better the head is: ``1.012x [1.004, 1.020]``; empty without a ratio."""
    return gain_text(verdict.metric, verdict.ratio, verdict.low, verdict.high)


def named(verdict: MetricVerdict) -> str:
    """Return :func:`gain` after its name, such as ``speed-up 1.012x [1.004, 1.020]``."""
    return named_gain(verdict.metric, verdict.ratio, verdict.low, verdict.high)


def gains(verdicts: Iterable[MetricVerdict]) -> str:
    """Return the head of a column of :func:`gain`, such as ``speed-up or compression``."""
    return gain_names(each.metric for each in verdicts if each.ratio is not None)


def change(verdict: MetricVerdict) -> str:
    """Medians of both sides, such as ``12.3 ms -> 12.9 ms``; empty where there is none of either."""
    if verdict.base is None and verdict.head is None:
        return ""
    ends = (verdict.base, verdict.head)
    return " -> ".join("-" if each is None else units.quantity(each, verdict.unit) for each in ends)


def launches(count: int) -> str:
    """``1 launch``, ``4 launches``."""
    return counted(count, "launch")


def pairs(count: int) -> str:
    """``1 pair``, ``4 pairs``."""
    return counted(count, "pair")


def let_pass(verdicts: Iterable[MetricVerdict]) -> str:
    """What is said where the policy lets pass what is worse or undecided, such as ``changed: 1 worse``."""
    found = list(verdicts)
    bad = worse(found)
    open_ = len({each.pair_key for each in found if each.verdict is Verdict.UNDECIDED and not each.control})
    return (
        f"changed, but allowed by the policy: {bad}"
        if bad
        else (f"undecided, but allowed by the policy: {pairs(open_)}")
    )


def alarms(verdicts: Iterable[MetricVerdict]) -> tuple[MetricVerdict, ...]:
    """Verdicts on head against head that say something changed: rule or machine errs in this run."""
    return tuple(
        each
        for each in verdicts
        if each.control and each.verdict in CHANGED and each.action is not Action.IGNORE
    )


def in_doubt(verdicts: Iterable[MetricVerdict]) -> str:
    """What is said of :func:`alarms`, such as ``head against head: peak_memory improvement of PAIR``."""
    found = [f"{each.metric} {name(each.verdict)} of {each.pair_id}" for each in alarms(verdicts)]
    more = f" and {len(found) - MOST_ALARMS} more" if len(found) > MOST_ALARMS else ""
    return f"head against head: {', '.join(found[:MOST_ALARMS])}{more}" if found else ""


def worse(verdicts: Iterable[MetricVerdict]) -> str:
    """How many pairs are broken and how many worse, such as ``1 broken, 2 worse``."""
    bad = [each for each in verdicts if each.verdict in WORSE and not each.control]
    kinds = {
        Verdict.BROKEN: "broken",
        Verdict.OUTPUTS_DIFFER: "with other outputs",
        Verdict.REGRESSION: "worse",
    }
    counts = {
        word: len({each.pair_key for each in bad if each.verdict is kind and each.pair_key})
        for kind, word in kinds.items()
    }
    parts = [f"{count} {word}" for word, count in counts.items() if count]
    parts += ["the whole suite is slower"] * any(not each.pair_key for each in bad)
    return ", ".join(parts)

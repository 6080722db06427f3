"""A comparison of two builds as a picture: every case that base and head share, for a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchgauge.counted import counted
from torchgauge.dashboard.pictures.picture import Picture
from torchgauge.dashboard.pictures.ratio_picture import ratio_picture
from torchgauge.dashboard.pictures.ratios import Edge, Lack, Ratio, RatioChart, RatioGroup, Tone, group_of
from torchgauge.records.comparison import MetricVerdict, Verdict
from torchgauge.results import units
from torchgauge.results.comparing import verdict_words as words
from torchgauge.results.comparing.gate_verdict import LATENCY
from torchgauge.results.gain import inverse
from torchgauge.results.reports.report import STATUS, ComparisonReport

METHOD = (
    "Each row is one case that ran with base and head, in pairs on one machine. The speed-up is base's "
    "latency over head's, with its interval. The colour is the verdict of the comparison; grey is "
    "unchanged or undecided."
)

_TONES = {Verdict.REGRESSION: Tone.WORSE, Verdict.IMPROVEMENT: Tone.BETTER}
_EDGES = {Verdict.BROKEN: Edge.LEFT, Verdict.OUTPUTS_DIFFER: Edge.LEFT, Verdict.FIXED: Edge.RIGHT}


def comparison_picture(report: ComparisonReport) -> Picture:
    """The speed-up of head over base, case by case; the mean is that of the report."""
    found = list(_rows(report))
    group = group_of("", [*found, *(Lack(name, Edge.NOWHERE, "not run") for name in report.not_run)])
    suite = report.suite
    mean = None
    if suite is not None and suite.ratio and suite.low and suite.high:
        mean = inverse(suite.ratio, suite.low, suite.high)
    counts = report.counts
    said = report.headline.value.replace("_", " ").capitalize()
    parts = (
        (counts.changed, "changed"), (counts.unchanged, "unchanged"), (counts.undecided, "undecided"),
        (counts.not_comparable, "not comparable"), (counts.not_run, "not run"),
    )  # fmt: skip
    told = ", ".join(f"{count} {word}" for count, word in parts if count)
    says = f"{said}: of {counted(counts.planned, 'case')} {told}."
    chart = RatioChart(
        f"{report.head.label} against {report.base.label}",
        ("case", "base", "head"),
        (RatioGroup("", group.ratios, group.lacks, mean),),
        f"torchgauge, {units.day(report.created_at)}, {report.run_id}, {_confidence(report.judged)}",
        says,
        "head slower",
        "head faster",
    )
    return ratio_picture("comparison", "comparison", chart, METHOD)


def _confidence(verdicts: Sequence[MetricVerdict]) -> str:
    found = sorted({f"{each.confidence:.3g}" for each in verdicts if each.metric == LATENCY})
    return f"intervals at {' and '.join(f'{100 * float(each):.4g} %' for each in found)}" if found else ""


def _rows(report: ComparisonReport) -> Iterator[Ratio | Lack]:
    """What is drawn of each pair: its latency, or why there is none."""
    by_pair: dict[str, list[MetricVerdict]] = {}
    for each in report.judged:
        by_pair.setdefault(each.pair_id, []).append(each)
    parts = [name.split(" ") for name in by_pair]
    shared = 0  # words at the end that say the same of every case
    while len(parts) > 1 and all(len(each) > shared + 1 for each in parts):
        if len({each[-1 - shared] for each in parts}) > 1:
            break
        shared += 1
    for (name, verdicts), split in zip(by_pair.items(), parts, strict=True):
        yield _row(name, " ".join(split[: len(split) - shared]).rstrip(" ·"), verdicts)


def _row(name: str, label: str, verdicts: Sequence[MetricVerdict]) -> Ratio | Lack:
    status = next((each for each in verdicts if each.metric == STATUS and each.verdict in _EDGES), None)
    if status is not None:
        return Lack(name, _EDGES[status.verdict], status.verdict.value, "err", label=label)
    timed = next((each for each in verdicts if each.metric == LATENCY), None)
    if timed is None or timed.ratio is None or not timed.low or not timed.high:
        said = words.name(verdicts[0].verdict) if timed is None else words.name(timed.verdict)
        return Lack(name, Edge.NOWHERE, said, label=label)
    sides = tuple(
        "" if each is None else units.quantity(each, timed.unit) for each in (timed.base, timed.head)
    )
    beside = ", ".join([words.name(timed.verdict), *(["quarantined"] if timed.quarantined else [])])
    tone = _TONES.get(timed.verdict, Tone.OPEN)
    ratio = inverse(timed.ratio, timed.low, timed.high)
    return Ratio(name, *ratio, tone, sides, beside, label=label, sure=not timed.quarantined)

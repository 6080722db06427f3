"""The figures of ``campaign.py`` as Markdown, from its records alone: times, intervals, where time went."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from statistics import median

from campaign_phases import SHARED

from torchgauge.results.stats import geometric_mean, median_interval

PEER, PEER_AGAIN = "peer", "peer-again"
"""The peer with an empty cache, and the same once more with what it kept."""
LIMITS = {"default": 0.70, "restricted": 0.70, "first-night": 0.50, "second-night": 0.20}
"""Largest share of the peer's wall time by side, as asked for."""
CONFIGURATIONS = ("eager", "inductor")


@dataclass(frozen=True)
class ModelRecord:
    """One model on one side.

    ``seconds`` is its share of the wall time (None where the peer fell over) and ``cpu_s`` of the CPU time;
    ``samples`` are raw step times in seconds by configuration, ``parts`` seconds by what they went into,
    ``compile_s`` the side's own figure of compile time (the two sides define it differently), and ``problem``
    is why the model has no result where it has none. A side that works on several models at once has no
    ``parts``: no model has a time of its own.
    """

    side: str
    model: str
    seconds: float | None
    samples: dict[str, list[float]] = field(default_factory=dict)
    _: KW_ONLY
    parts: dict[str, float] = field(default_factory=dict)
    compile_s: float | None = None
    cpu_s: float | None = None
    problem: str = ""


@dataclass(frozen=True)
class Precision:
    """How wide the intervals of two sides are, model by model and configuration by configuration."""

    narrower: int
    pairs: int
    ratio: float | None


def relative_width(samples: Sequence[float]) -> float | None:
    """Width of the median's 95 % interval over the median.

    None for fewer than six samples, which have no interval.
    """
    found = median_interval(samples)
    if found.low is None or found.high is None or not found.estimate:
        return None
    return (found.high - found.low) / found.estimate


def precision(peer: Mapping[str, ModelRecord], ours: Mapping[str, ModelRecord]) -> Precision:
    """Where ``ours`` is at least as narrow as ``peer``, and the median of width ratios (ours / theirs).

    A pair in which a side has no interval counts as one that is not narrower, and has no ratio.
    """
    narrower, ratios, pairs = 0, [], 0
    for model in sorted(peer.keys() & ours.keys()):
        for name in CONFIGURATIONS:
            sides = [side[model].samples.get(name) for side in (peer, ours)]
            if not all(sides):
                continue
            theirs, own = (relative_width(samples or ()) for samples in sides)
            pairs += 1
            if theirs is None or own is None:
                continue
            narrower += own <= theirs
            ratios.append(own / theirs if theirs else 1.0)
    return Precision(narrower, pairs, median(ratios) if ratios else None)


def by_side(records: Sequence[ModelRecord]) -> dict[str, dict[str, ModelRecord]]:
    """Side to model to record, in the order of the records."""
    found: dict[str, dict[str, ModelRecord]] = defaultdict(dict)
    for record in records:
        found[record.side][record.model] = record
    return dict(found)


def render(records: Sequence[ModelRecord]) -> str:
    """All tables; sides are compared on the models that have a result on both."""
    sides = by_side(records)
    good = {
        name: {model: record for model, record in side.items() if not record.problem}
        for name, side in sides.items()
    }
    peer = good.pop(PEER, {})
    sides.pop(PEER, None)
    parts = [_totals(peer, good), _models(peer, good), _phases(sides), _problems(records)]
    return "\n".join(part for part in parts if part)


def totals(peer: Mapping[str, ModelRecord], ours: Mapping[str, ModelRecord]) -> dict[str, float | None]:
    """Wall times in seconds over the common models, their ratio, and the geometric mean of model ratios."""
    common = sorted(peer.keys() & ours.keys())
    theirs, own = (sum(side[model].seconds for model in common) for side in (peer, ours))
    cpu = [sum(side[model].cpu_s or 0.0 for model in common) for side in (peer, ours)]
    ratios = {model: ours[model].seconds / peer[model].seconds for model in common}
    return {
        "models": len(common),
        "peer_s": theirs or None,
        "ours_s": own or None,
        "ratio": own / theirs if theirs else None,
        "cpu_ratio": cpu[1] / cpu[0] if all(cpu) else None,
        "geomean": geometric_mean(ratios).estimate,
        "smallest": min(ratios.values(), default=None),
        "largest": max(ratios.values(), default=None),
    }


def _totals(peer: Mapping[str, ModelRecord], sides: Mapping[str, Mapping[str, ModelRecord]]) -> str:
    heads = ["torchgauge", "models", "peer, s", "torchgauge, s", "ratio", "limit", "CPU ratio"]
    heads += ["per model: geomean, range", "intervals at least as narrow", "median width ratio"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, ours in sides.items():
        sums, narrow = totals(peer, ours), precision(peer, ours)
        ratio = sums["ratio"]
        limit = LIMITS.get(name)
        met = "-" if ratio is None or limit is None else f"{limit}: {'met' if ratio <= limit else 'missed'}"
        span = f"{_r(sums['geomean'])}, {_r(sums['smallest'])} to {_r(sums['largest'])}"
        if not any(record.parts for record in ours.values()):
            span = "-"
        cells = [
            name,
            str(sums["models"]),
            _s(sums["peer_s"]),
            _s(sums["ours_s"]),
            _r(ratio),
            met,
        ]
        cells += [_r(sums["cpu_ratio"]), span, f"{narrow.narrower} of {narrow.pairs}", _r(narrow.ratio)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _models(peer: Mapping[str, ModelRecord], sides: Mapping[str, Mapping[str, ModelRecord]]) -> str:
    heads = [f"{name}, s | compile, s | ratio | width, eager | width, inductor" for name in sides]
    lines = [
        f"| model | peer, s | compile, s | width, eager | width, inductor | {' | '.join(heads)} |",
        "|---" * (5 + 5 * len(sides)) + "|",
    ]
    for model, theirs in peer.items():
        cells = [model, _s(theirs.seconds), _s(theirs.compile_s), *_widths(theirs)]
        for ours in sides.values():
            record = ours.get(model)
            if record is None:
                cells += ["-"] * 5
                continue
            own = [_s(record.seconds), _r(record.seconds / theirs.seconds)] if record.parts else ["-", "-"]
            cells += [own[0], _s(record.compile_s), own[1], *_widths(record)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _phases(sides: Mapping[str, Mapping[str, ModelRecord]]) -> str:
    """Seconds of each side by part, summed over models, and their share."""
    lines = []
    for name, ours in sides.items():
        sums: dict[str, float] = defaultdict(float)
        for record in ours.values():
            for part, seconds in record.parts.items():
                sums[part] += seconds
        total = sum(sums.values())
        if not total:
            continue
        lines += [f"| {name}: part | s | share |", "|---|---|---|"]
        for part, seconds in sorted(sums.items(), key=lambda item: -item[1]):
            shared = " (shared by the models)" if part in SHARED else ""
            lines.append(f"| {part}{shared} | {seconds:.1f} | {seconds / total:.0%} |")
        lines.append("")
    return "\n".join(lines)


def _problems(records: Sequence[ModelRecord]) -> str:
    bad = [f"- {r.side}, {r.model}: {r.problem}" for r in records if r.problem]
    return "\n".join(["Without a result:", "", *bad, ""]) if bad else ""


def _widths(record: ModelRecord) -> list[str]:
    found = [relative_width(samples) if (samples := record.samples.get(c)) else None for c in CONFIGURATIONS]
    return [f"{100 * width:.2f} %" if width is not None else "-" for width in found]


def _s(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f}"


def _r(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}"

"""A trend for a terminal and as plain values for JSON."""

from __future__ import annotations

from typing import Any

from torchgauge.counted import counted
from torchgauge.records import left_out
from torchgauge.records.codec import to_plain
from torchgauge.results import document
from torchgauge.results.trends.trend import Series, SeriesTrend, Suspicion, Trend

_DIRECTIONS = {True: "worse", False: "better", None: "changed"}


def trend_text(found: Trend, *, every_series: bool = False) -> str:
    """Suspicions grouped by date and direction, then what the series are like."""
    return document.terminal(
        "results/trends/trend",
        found=found,
        series=[each for each in found.series if every_series or _remarkable(each)],
        directions=_DIRECTIONS,
        summary=summary_line,
        beside=_beside,
        nights_of=nights_of,
    )


def summary_line(found: Trend) -> str:
    """How much was looked at: silence is never success."""
    ready = [each for each in found.series if each.findings.ready]
    short = len(found.series) - len(ready)
    points = [night for each in found.series for night in each.series.nights if night.value is not None]
    nights, runs = ({getattr(point, name) for point in points} for name in ("date", "run_id"))
    states: dict[str, int] = {}
    for each in found.suspicions:
        states[each.state.value] = states.get(each.state.value, 0) + 1
    counts = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in states.items())
    parts = [
        f"{len(found.series)} series",
        f"{_nights(len(nights), len(runs))}",
        f"changes: {counts or 'none'}",
    ]
    if short:
        parts.append(f"{short} series too short for a verdict")
    changed: dict[str, set[str]] = {}
    for series in (each.series for each in found.series):
        for night in series.code_changes:
            changed.setdefault(night.date, set()).add(f"{series.suite}/{series.model}")
    for date, names in sorted(changed.items()):
        more = f" and {len(names) - 1} more" * (len(names) > 1)
        parts.append(f"model code changed on {date}: {min(names)}{more}")
    if apart := left_out(night.doubt for each in found.series for night in each.series.nights):
        parts.append(apart)
    return "; ".join(parts)


def _nights(nights: int, runs: int) -> str:
    """``3 nights``, or ``3 nights with 7 runs``: several runs of one day are one night."""
    said = counted(nights, "night")
    return said if runs <= nights else f"{said} with {counted(runs, 'run')}"


def nights_of(series: Series) -> int:
    """The dates on which ``series`` has a number; several runs of one day are one night."""
    return len({night.date for night in series.nights if night.value is not None})


def _beside(trend: SeriesTrend) -> str:
    """What else is said of a series: nights that are missing or left out, and whether it is too short."""
    found, nights = trend.findings, trend.series.nights
    missing = found.missing - sum(bool(night.doubt) for night in nights)
    parts = [f"{missing} missing"] * bool(missing)
    parts += filter(None, [left_out(night.doubt for night in nights)])
    parts += [f"{found.unusable} values not positive, left out"] * bool(found.unusable)
    parts += ["too short for a verdict"] * (not found.ready)
    dates = dict.fromkeys(night.date for night in trend.series.code_changes)
    parts += [f"another model since {nights[0].date}"] * trend.series.rebuilt
    parts += [f"model code changed on {' and '.join(dates)}"] * bool(dates)
    return ", ".join(parts)


def trend_plain(found: Trend) -> dict[str, Any]:
    """The trend as JSON values."""
    return {
        "series": [
            {
                "case_id": each.series.case_id,
                "case_key": each.series.case_key,
                "metric": each.series.metric,
                "unit": each.series.unit,
                "machine": each.series.machine,
                "nights": nights_of(each.series),
                "runs": each.findings.nights,
                "missing": each.findings.missing,
                "doubts": {night.run_id: night.doubt for night in each.series.nights if night.doubt},
                "unusable": each.findings.unusable,
                "noise": each.findings.noise,
                "autocorrelation": each.findings.autocorrelation,
                "ready": each.findings.ready,
                "drift": each.drift,
                "rebuilt": each.series.rebuilt,
                "code_changed": {night.run_id: night.code for night in each.series.code_changes},
                "changes": [suspicion_plain(one) for one in each.suspicions],
            }
            for each in found.series
        ]
    }


def suspicion_plain(each: Suspicion) -> dict[str, Any]:
    """One change as JSON values."""
    nights, change = each.series.nights, each.change
    return {
        "key": each.key,
        "state": each.state.value,
        "worse": each.worse,
        "size": change.size,
        "before": change.before,
        "after": change.after,
        "score": change.score,
        "good_run": each.good.run_id,
        "suspect_run": each.suspect.run_id,
        "date": each.suspect.date,
        "first_date": nights[change.first].date,
        "last_date": nights[change.last].date,
        "noticed_date": nights[change.noticed].date,
        "good_torch": each.good.torch_version,
        "suspect_torch": each.suspect.torch_version,
        "code_changed": each.code_changed,
        "outcome": to_plain(each.outcome) if each.outcome else None,
    }


def _remarkable(trend: SeriesTrend) -> bool:
    drifted = abs(trend.drift or 0.0) >= 0.05
    return bool(trend.suspicions or trend.findings.unusable or trend.series.rebuilt) or drifted

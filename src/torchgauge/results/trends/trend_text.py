"""A trend as lines of text and as plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchgauge.records import left_out
from torchgauge.records.codec import to_plain
from torchgauge.results.trends.trend import SeriesTrend, Suspicion, Trend
from torchgauge.results.units import quantity

_DIRECTIONS = {True: "worse", False: "better", None: "changed"}


def trend_lines(found: Trend, *, every_series: bool = False) -> Iterator[str]:
    """Suspicions grouped by date and direction, then what the series are like."""
    yield summary_line(found)
    for date, worse, members in found.groups():
        yield ""
        yield f"{date}: {len(members)} {_DIRECTIONS[worse]}"
        for each in members:
            yield from suspicion_lines(each)
    shown = found.series if every_series else [each for each in found.series if _remarkable(each)]
    if shown:
        yield ""
        yield "series"
        for trend in shown:
            yield f"  {series_line(trend)}"


def summary_line(found: Trend) -> str:
    """How much was looked at: silence is never success."""
    ready = [each for each in found.series if each.findings.ready]
    short = len(found.series) - len(ready)
    nights = sum(each.findings.nights for each in found.series)
    states: dict[str, int] = {}
    for each in found.suspicions:
        states[each.state.value] = states.get(each.state.value, 0) + 1
    counts = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in states.items())
    parts = [f"{len(found.series)} series", f"{nights} nights", f"changes: {counts or 'none'}"]
    if short:
        parts.append(f"{short} series too short to say anything")
    if apart := left_out(night.doubt for each in found.series for night in each.series.nights):
        parts.append(apart)
    return "; ".join(parts)


def suspicion_lines(each: Suspicion) -> Iterator[str]:
    """One change: what, how much, between which nights, and what became of it."""
    series, change = each.series, each.change
    levels = f"{quantity(change.before, series.unit)} -> {quantity(change.after, series.unit)}"
    builds = f"torch {each.good.torch_version or '?'} -> {each.suspect.torch_version or '?'}"
    yield f"  {each.state.name}  {series.case_id}  {change.size:+.1%}  ({levels})"
    nights = series.nights
    between = f"{nights[change.first].date} to {nights[change.last].date}"
    score = f"score {change.score:.1f}" if change.score else "reset by its confirmation"
    yield f"    begins {between}, known on {nights[change.noticed].date}; {score}; {builds}"
    yield f"    last good {each.good.run_id}, suspect {each.suspect.run_id}"
    if each.outcome is not None:
        yield f"    {each.outcome.reason}"


def series_line(trend: SeriesTrend) -> str:
    """One series: how long, how noisy, how far from its baseline."""
    found = trend.findings
    parts = [f"{found.nights} nights"]
    apart = left_out(night.doubt for night in trend.series.nights)
    if missing := found.missing - sum(bool(night.doubt) for night in trend.series.nights):
        parts.append(f"{missing} missing")
    if apart:
        parts.append(apart)
    if found.unusable:
        parts.append(f"{found.unusable} not positive, left out")
    if found.noise is not None:
        parts.append(f"noise {found.noise:.1%}")
        parts.append(f"autocorrelation {found.autocorrelation or 0.0:.2f}")
    if trend.drift is not None:
        parts.append(f"{trend.drift:+.1%} since its baseline")
    if not found.ready:
        parts.append("too short to say anything")
    return f"{trend.series.case_id}: {', '.join(parts)}"


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
                "nights": each.findings.nights,
                "missing": each.findings.missing,
                "doubts": {night.run_id: night.doubt for night in each.series.nights if night.doubt},
                "unusable": each.findings.unusable,
                "noise": each.findings.noise,
                "autocorrelation": each.findings.autocorrelation,
                "ready": each.findings.ready,
                "drift": each.drift,
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
        "outcome": to_plain(each.outcome) if each.outcome else None,
    }


def _remarkable(trend: SeriesTrend) -> bool:
    return bool(trend.suspicions) or bool(trend.findings.unusable) or abs(trend.drift or 0.0) >= 0.05

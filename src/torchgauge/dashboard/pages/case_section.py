"""All that is known of one case, as HTML: thousands of them are written in a second, so no template does it.

Whatever the store says passes through :func:`~torchgauge.dashboard.pages.html_text.shown`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache

from torchgauge.dashboard.freshness import aged
from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.pages.environments import LastPass
from torchgauge.dashboard.pages.html_text import facts_html, repeated, scroll_html, shown
from torchgauge.dashboard.pages.number_text import NO_NUMBER
from torchgauge.dashboard.pages.reason import reason_of
from torchgauge.dashboard.plain_rows import Row
from torchgauge.dashboard.statuses import MARKS, look_of
from torchgauge.records import METRICS, Status, is_of_a_step
from torchgauge.results import units
from torchgauge.results.hostile_text import LOG_LIMIT, tail
from torchgauge.results.stats import TOO_FEW

Facts = list[tuple[str, str]]

PAGE_LIMIT = 96 * 1024
"""Bytes of logs and tracebacks on one page; after that each has its last :data:`LEAST` bytes."""

LEAST = 1024

_HEAD = (
    '<thead><tr><th scope="col">metric</th><th scope="col" class="num">median</th>'
    '<th scope="col">interval</th><th scope="col" class="num">n</th><th scope="col">method</th>'
    '<th scope="col">counter</th><th scope="col">stop reason</th></tr></thead>'
)
_ORDER = {name: place for place, name in enumerate(METRICS)}
_TOLD_ELSEWHERE = (
    "degraded", "unchecked", "unsteady", "fallback_ops", "fallback_share", "fallback_names", "fallback_calls",
    "fallback_unproven", "fallback_unproven_names", "fallback_unknown",
)  # fmt: skip
"""Facts that have a place of their own."""
_ERRORS = (
    ("max_abs_error", "largest absolute error"), ("rmse", "RMSE"), ("rmse_eager", "RMSE of eager"),
    ("rmse_ratio", "RMSE ratio"), ("eager_spread", "eager spread"), ("cosine", "cosine similarity"),
)  # fmt: skip


@dataclass
class LongTexts:
    """Logs and tracebacks of one page: equal ones stand there once, and all together within a limit."""

    left: int = PAGE_LIMIT
    seen: dict[str, str] = field(default_factory=dict)

    def html(self, title: str, text: str, anchor: str, case: str) -> str:
        """``text`` of the case at ``anchor`` to be opened, or where on the page the same text stands."""
        if not text:
            return ""
        first = self.seen.setdefault(title + text, f'<a href="#{anchor}">{shown(case)}</a>')
        if anchor not in first:
            return f'<p class="where">{title}: equal to {first}.</p>'
        part = tail(text, min(LOG_LIMIT, max(self.left, LEAST)))
        self.left -= len(part)
        code = f'<pre tabindex="0"><code>{shown(part, len(part))}</code></pre>'
        return f"<details><summary>{title}</summary>{code}</details>"


@dataclass(frozen=True)
class Place:
    """Where a case's environment and run are described, its machine, and its last pass."""

    run: str
    environment: str
    machine: str
    last_pass: LastPass | None
    difference: str


def case_html(entry: Entry, place: Place, texts: LongTexts, root: str) -> str:
    """The section of ``entry``; ``root`` leads from its page to the site's root."""
    row, newest = entry.shown, entry.newest
    anchor, name = links.case_anchor(entry), entry.column.name
    look = entry.look
    tags = "".join(
        [f' <span class="tag" title="{_meaning(mark)}">{repeated(mark)}</span>' for mark in entry.marks]
    )
    command = newest["reproduce"] or row["reproduce"] or ""
    head = (
        f'<article class="card case" aria-labelledby="{anchor}"><h3 id="{anchor}">{repeated(name)} '
        f'<span class="badge s-{look.css}" title="{look.meaning}">{look.code}</span>{tags}</h3>'
        f'<p class="case-id"><code>{shown(newest["case_id"])}</code></p>'
    )
    parts = [
        head,
        facts_html(_why(entry)),
        _stand_in(entry),
        _in_doubt(entry),
        _metrics(entry),
        _titled("Accuracy", facts_html(_accuracy(row))),
        _titled("CPU fallbacks", facts_html(_on_the_host(entry))),
        "<h4>Where and when</h4>",
        facts_html(_facts(entry)),
        _where(entry, place, root),
        _before(place),
        _titled("Reproduce", _command(command)),
        texts.html("Traceback", row["traceback"] or "", anchor, name),
        texts.html("End of the log", row["log_excerpt"] or newest["log_excerpt"] or "", anchor, name),
        "</article>",
    ]
    return "".join(parts)


def _command(text: str) -> str:
    return f'<pre class="command" tabindex="0" data-copy><code>{shown(text)}</code></pre>' if text else ""


def _titled(title: str, html: str) -> str:
    return f"<h4>{title}</h4>{html}" if html else ""


@lru_cache(maxsize=64)
def _meaning(mark: str) -> str:
    return shown(MARKS.get(mark, ""))


def _stand_in(entry: Entry) -> str:
    if entry.stands_in and entry.known is not None:
        code = look_of(Status(entry.known["status"]), entry.known["modifiers"] or ()).code
        return (
            '<p class="notice">The newest attempt has no result'
            f"{_lost(entry)}. The last known result follows: {code}, {aged(entry.known_at)}.</p>"
        )
    stale = f'<p class="notice">This result is stale: measured {aged(entry.known_at)}.</p>'
    return stale if "stale" in entry.marks else ""


def _lost(entry: Entry) -> str:
    """Why a whole night was lost, whose row tells nothing else here."""
    return f" ({repeated(reason_of(entry.newest))})" if entry.lost else ""


def _why(entry: Entry) -> Facts:
    row = entry.counted
    quiet = row["status"] == Status.PASS.value
    apart = [(name, getattr(entry, name)) for name in ("degraded", "unchecked", "unsteady")]
    if quiet and not (row["error_type"] or row["reason"] or row["teardown"] or row["expected"]):
        return [(name, why) for name, why in apart if why]
    return _kept(
        ("last phase", "" if quiet else row["phase"]),
        ("cause", row["cause"]),
        ("reason", row["reason"]),
        *apart,
        ("expected", row["expected"]),
        ("error", row["error_type"]),
        ("message", tail(row["error_message"] or "", 4096)),
        ("frame", row["error_frame"]),
        ("missing op", row["missing_op"]),
        ("fingerprint", row["fingerprint"]),
        ("process", "" if quiet else row["exit"]),
        ("after the case", row["teardown"]),
        ("log, in the run's folder of the store", row["log"]),
    )


def _in_doubt(entry: Entry) -> str:
    """Which of the numbers below are compared with nothing."""
    doubt = next((entry.doubt(name) for name in entry.numbers if is_of_a_step(name)), "")
    if not doubt:
        return ""
    return (
        f'<p class="notice">The step times are {repeated(doubt)}: italic numbers are excluded from '
        "means, trends and comparisons.</p>"
    )


def _metrics(entry: Entry) -> str:
    numbers = entry.numbers
    if not numbers:
        return '<p class="muted">No metric was measured.</p>'
    order = sorted(numbers, key=lambda metric: (_ORDER.get(metric, len(_ORDER)), metric))
    rows = "".join([_metric(entry, numbers[metric]) for metric in order])
    return scroll_html(
        f"Metrics of {entry.newest['case_id']}", f"{_HEAD}<tbody>{rows}</tbody>", "plain metrics"
    )


def _metric(entry: Entry, number: Row) -> str:
    head = _metric_head(number["metric"])
    if number["median"] is None:
        why = repeated(number["absent"])
        return f'{head}<td colspan="6" class="muted">no number: {why}</td></tr>'
    value, bracket = number_parts(number["median"], number["low"], number["high"], number["unit"])
    interval = f"{bracket}{_confidence(number['confidence'])}" if bracket else "n < 6: no interval"
    method = NO_NUMBER if number["method"] == TOO_FEW else number["method"]
    beside = _beside(number["n"], method, number["provenance"], number["stopped"])
    if doubt := entry.doubt(number["metric"]):
        apart = f'<span class="doubt">{shown(entry.told(number))}</span> <small>{repeated(doubt)}</small>'
        return f'{head}<td class="num">{apart}</td><td class="nowrap doubt">{interval}{beside}'
    return f'{head}<td class="num"><b>{value}</b></td><td class="nowrap">{interval}{beside}'


@lru_cache(maxsize=64)
def _confidence(share: float) -> str:
    return f' <span class="muted">{share:.0%}</span>'


@lru_cache(maxsize=4096)
def _beside(n: int, method: str, provenance: str | None, stopped: str | None) -> str:
    """What stands beside a number and its interval; thousands of numbers share it."""
    return (
        f'</td><td class="num">{n}</td><td>{shown(method)}</td><td>{shown(provenance or "not recorded")}</td>'
        f"<td>{shown(stopped or 'not recorded')}</td></tr>"
    )


@lru_cache(maxsize=1024)
def number_parts(median: float, low: float | None, high: float | None, unit: str) -> tuple[str, str]:
    """A number, fit for HTML, and its interval as text; a page says many of them twice."""
    value, bracket = units.interval_parts(median, low, high, unit)
    return shown(value), bracket


@lru_cache(maxsize=256)
def _metric_head(metric: str) -> str:
    doc = METRICS[metric].doc if metric in METRICS else ""
    return f'<tr><th scope="row" title="{shown(doc)}">{shown(metric.replace("_", " "))}</th>'


def _accuracy(row: Row) -> Facts:
    if not row["accuracy_reference"] and not row["accuracy_detail"]:
        return []
    numbers = [(title, units.small_number(row[key])) for key, title in _ERRORS if row[key] is not None]
    return _kept(("reference", row["accuracy_reference"]), *numbers, ("detail", row["accuracy_detail"]))


def _on_the_host(entry: Entry) -> Facts:
    """What was found of operators that ran on the host; empty where nobody looked."""
    facts = entry.facts
    number, unknown = facts.get("fallback_ops"), facts.get("fallback_unknown")
    if number is None and unknown is None:
        return []
    share, unproven = facts.get("fallback_share"), facts.get("fallback_unproven")
    return _kept(
        ("operators", "none was found" if number == 0 else number),
        ("of the step", f"{share:.1%}" if isinstance(share, float) and number else ""),
        ("calls", facts.get("fallback_calls") or ""),
        ("names", facts.get("fallback_names")),
        ("unknown", unknown),
        ("cannot be attributed", unproven),
        ("such as", facts.get("fallback_unproven_names")),
    )


def _facts(entry: Entry) -> Facts:
    row = entry.shown
    began = row["started_at"]
    others = {name: value for name, value in entry.facts.items() if name not in _TOLD_ELSEWHERE}
    return _kept(
        ("started", units.moment(began.timestamp()) if began else "never"),
        ("took", units.duration(row["duration_s"]) if row["duration_s"] else ""),
        ("torch", row["torch_version"]),
        ("threads", row["threads"]),
        ("options", row["configuration_options"]),
        ("variables", row["configuration_env"]),
        ("conditions", "; ".join([f"{name}: {_plain(value)}" for name, value in sorted(others.items())])),
    )


def _where(entry: Entry, place: Place, root: str) -> str:
    row = entry.shown
    environment = row["environment_id"] or ""
    if place.environment:
        said = f'<a href="{root}{place.environment}"><code>{repeated(environment)}</code></a>'
    elif environment:
        said = f"<code>{repeated(environment)}</code>"
    else:
        said = '<span class="muted">unknown: no worker started</span>'
    run = f'<a href="{root}{place.run}">{repeated(row["run_id"])}</a>'
    came = repeated(entry.origin.text)
    run += f" on {repeated(place.machine)}" if place.machine else ""
    return f'<p class="where">Run {run}, environment {said}. Source: <b>{came}</b>.</p>'


def _before(place: Place) -> str:
    """What has changed in the environment since the case passed for the last time."""
    last = place.last_pass
    if last is None:
        return ""
    head = f"<h4>Since it last passed, {last.date}</h4>"
    return head + (place.difference or '<p class="where">The environment of that run is unknown.</p>')


def _kept(*pairs: tuple[str, object]) -> Facts:
    return [(name, _plain(value)) for name, value in pairs if value not in (None, "", "{}")]


def _plain(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return units.integer(value)
    return json.dumps(value, ensure_ascii=False)

"""No text of a record acts where it is shown: each field of each record in each form, found by its type."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from hostile_records import (
    HOSTILE,
    csv_faults,
    html_parts,
    markdown_faults,
    sample,
    spoiled,
    terminal_faults,
    title_faults,
)

from torchgauge.dashboard.pictures.comparison_chart import comparison_picture
from torchgauge.harness.bringup import page
from torchgauge.harness.bringup.report import Report as BringupReport
from torchgauge.harness.checks.check_card import Card, card_lines
from torchgauge.harness.run.run_report import RunReport as RunEnding
from torchgauge.harness.run.summary import brief_text, plan_lines, report_lines, result_lines
from torchgauge.records import Modifier, Plan, Result, Status
from torchgauge.records.comparison import Verdict
from torchgauge.results.blockers import text as blockers_text
from torchgauge.results.blockers.ranking import Blockers
from torchgauge.results.comparing.gate import GateResult
from torchgauge.results.comparing.noise_ledger import Ledger
from torchgauge.results.comparing.noise_text import ledger_text
from torchgauge.results.comparing.two_runs import TwoRuns
from torchgauge.results.comparing.verdict_text import comparison_text, gate_text
from torchgauge.results.compat import text as compat_text
from torchgauge.results.compat.table import Table as CompatTable
from torchgauge.results.matrix import text as matrix_text
from torchgauge.results.matrix.table import Table as MatrixTable
from torchgauge.results.reports import as_json, junit, markdown
from torchgauge.results.reports.report import ComparisonReport
from torchgauge.results.reports.run_report import RunReport
from torchgauge.results.trends.trend import Trend
from torchgauge.results.trends.trend_text import trend_text
from torchgauge.results.triage import text as triage_text
from torchgauge.results.triage.findings import Triage
from torchgauge.workflows.comment import comment_text
from torchgauge.workflows.gate import gate_json, gate_summary, nightly_gate
from torchgauge.workflows.gate_received import Gathered
from torchgauge.workflows.issues import wanted_issues
from torchgauge.workflows.night_findings import NightFindings
from torchgauge.workflows.watch import WatchReport, watch_lines, watch_markdown

Faults = Callable[..., list[str]]


def json_faults(text: str) -> list[str]:
    """Return why ``text`` is not JSON in ASCII, which no terminal obeys."""
    json.loads(text)
    return [] if text.isascii() else ["not ASCII"]


def xml_faults(text: str) -> list[str]:
    """Return what acts in a document that a viewer opens."""
    ET.fromstring(text)
    return html_parts(text)[1]


OWN_WORDS = {
    ".ended",  # of clusters of a night: a status, a modifier, or words for its absence
    ".now", ".expect_by", ".night",  # dates
    ".presence", ".question.text", ".title", ".subject", ".scorecard", ".verified",  # sentences of a bringup
    ".status", ".id", ".feature",  # a status, a digest, the heading of a column
}  # fmt: skip
"""Ends of paths of texts that torchgauge itself makes: their words may be read, and must not act."""

APART = {
    ".plan.pools[0]", ".plan.base",  # names that the configuration's reader and ``shown_branch`` let through
    ".run.repository",  # of an event: refused unless it is OWNER/NAME
    ".rows[0].case", ".steps[0].case",  # of a matrix: a step names the case of a row
}  # fmt: skip
"""Ends of paths of texts that are what their names say, or nothing is shown at all."""


@dataclass(frozen=True)
class Sink:
    """A form of records of one kind: a base whose every text is spoiled in turn, and what shows it."""

    base: Any
    show: Callable[[Any], str]
    faults: Faults


def _verdicts(report: Any) -> Any:
    """Return ``report`` with a verdict of each kind and one of the whole suite."""
    (one,) = report.verdicts
    kinds = [
        replace(one, verdict=kind, metric="latency", pair_key=kind.value, control=False) for kind in Verdict
    ]
    return replace(report, verdicts=(*kinds, replace(one, pair_key="")))


def _rows() -> Iterator[Result]:
    row = sample(Result)
    doubts = tuple((each.value, "why") for each in Modifier)
    yield replace(row, modifiers=tuple(Modifier), facts=(*doubts, *row.facts))
    yield replace(row, status=Status.ERROR, failure=replace(row.failure, traceback=""))


def _ending(row: Result) -> str:
    report = RunEnding("run", 1)
    report.add(row)
    return "\n".join([*report_lines(report), *result_lines(row), brief_text([row])])


def _issues(found: NightFindings) -> str:
    return "\n\n".join(each.body for each in wanted_issues(found, "https://a.invalid/"))


def _titles(found: NightFindings) -> str:
    return "; ".join(each.title for each in wanted_issues(found))


def _sinks() -> Iterator[tuple[str, Sink]]:
    compared, ended = _verdicts(sample(ComparisonReport)), sample(RunReport)
    failed = replace(ended, cases=tuple(replace(each, status=Status.ERROR) for each in ended.cases))
    for name, report in (("comparison", compared), ("run", ended), ("failed run", failed)):
        yield f"report of a {name} as Markdown", Sink(report, markdown.render, markdown_faults)
        yield f"report of a {name} as JUnit", Sink(report, junit.render, xml_faults)
        yield f"report of a {name} as JSON", Sink(report, as_json.render, json_faults)
    yield "chart", Sink(compared, lambda it: comparison_picture(it).wide.text, xml_faults)
    gathered = sample(Gathered)
    (received,) = gathered.received
    for name, trouble in (("report", ""), ("trouble", "sample")):
        manifest = replace(received.found.manifest, trouble=trouble)
        gate_set = replace(received.found, manifest=manifest, report=compared)
        base = replace(gathered, received=(replace(received, found=gate_set),))
        told = lambda it: comment_text(it, name="torchgauge", server="https://a.invalid")  # noqa: E731
        yield f"comment about a {name}", Sink(base, told, markdown_faults)
    night = sample(NightFindings)
    yield "summary of a night", Sink(night, lambda it: gate_summary(nightly_gate(it)), markdown_faults)
    yield "issues of a night", Sink(night, _issues, markdown_faults)
    yield "titles of a night", Sink(night, _titles, title_faults)
    yield "gate of a night", Sink(night, lambda it: json.dumps(gate_json(nightly_gate(it))), json_faults)
    yield "watch", Sink(sample(WatchReport), watch_markdown, markdown_faults)
    yield "watch, lines", Sink(sample(WatchReport), lambda it: "\n".join(watch_lines(it)), terminal_faults)
    brought = sample(BringupReport)
    yield "bringup", Sink(brought, page.markdown_of, markdown_faults)
    yield "bringup, page", Sink(brought, page.html_of, lambda text: html_parts(text)[1])
    yield "bringup, terminal", Sink(brought, page.terminal_of, terminal_faults)
    several: tuple[tuple[str, Any, Any, Callable[[Any], Any]], ...] = (
        ("matrix", sample(MatrixTable), matrix_text, lambda it: it),
        ("compat", sample(CompatTable), compat_text, lambda it: it),
        ("triage", sample(Triage), triage_text, lambda it: it),
        ("blockers", sample(Blockers), blockers_text, lambda it: [it]),
    )
    for name, base, module, wrap in several:
        forms = {"markdown_of": markdown_faults, "terminal_of": terminal_faults, "csv_of": csv_faults}
        for form, faults in forms.items():
            if show := getattr(module, form, None):
                yield f"{name} {form}", Sink(base, lambda it, show=show, wrap=wrap: show(wrap(it)), faults)
    yield "comparison of runs", Sink(_verdicts(sample(TwoRuns)), comparison_text, terminal_faults)
    gated = _verdicts(sample(GateResult))
    yield "gate", Sink(gated, lambda it: gate_text(it, "title"), terminal_faults)
    yield "noise", Sink(sample(Ledger), lambda it: ledger_text(it, 1.0), terminal_faults)
    yield "trend", Sink(sample(Trend), lambda it: trend_text(it, every_series=True), terminal_faults)
    yield "card", Sink(sample(Card), lambda it: "\n".join(card_lines(it)), terminal_faults)
    yield "plan", Sink(sample(Plan), lambda it: "\n".join(plan_lines(it)), terminal_faults)
    for number, row in enumerate(_rows()):
        yield f"row {number}", Sink(row, _ending, terminal_faults)


def _is_markdown(sink: Sink) -> bool:
    return sink.faults is markdown_faults


SINKS = dict(_sinks())


@pytest.mark.parametrize("name", SINKS)
def test_no_text_of_a_record_acts_in_any_form_of_it(name: str) -> None:
    """Fields are found by their types, so that a new one is tried as well."""
    sink, faults, tried = SINKS[name], [], 0
    assert sink.faults(sink.show(sink.base)) == []
    for text in HOSTILE:
        for where, record in spoiled(type(sink.base), sink.base, text):
            if where.endswith(tuple(APART)):
                continue
            tried += 1
            more = {"own_words": True} if where.endswith(tuple(OWN_WORDS)) and _is_markdown(sink) else {}
            faults += [f"{where} {text!r}: {fault}" for fault in sink.faults(sink.show(record), **more)]
    assert tried >= 2 * len(HOSTILE)
    assert faults == []

"""A report as JUnit XML, the form that test viewers of CI systems read.

A test case is one metric of one pair. What gates fails; what nobody decided is skipped and says so; what was
not run is an error. A run in which nothing was compared has an error of its own, so that no viewer shows it
green.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from datetime import datetime, timezone

from torchgauge.records import INCOMPLETE, Status, to_plain
from torchgauge.records.comparison import Action, MetricVerdict, Verdict
from torchgauge.results import units
from torchgauge.results.comparing.gate_verdict import Headline
from torchgauge.results.comparing.verdict_words import WORSE, in_doubt, launches, named
from torchgauge.results.hostile_text import visible
from torchgauge.results.reports.publisher import Publisher, Report
from torchgauge.results.reports.report import ComparisonReport
from torchgauge.results.reports.run_report import CaseLine, RunReport

_NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LIMIT = 4_000
"""Characters of a message."""


def render(report: Report) -> str:
    """``report`` as a document with one ``testsuites`` element."""
    suites = _run(report) if isinstance(report, RunReport) else _comparison(report)
    root = ET.Element("testsuites", {"name": "torchgauge"})
    root.extend(suites)
    for suite in suites:
        for name, number in _tally(suite).items():
            suite.set(name, str(number))
    total = [_tally(suite) for suite in suites]
    for name in ("tests", "failures", "errors", "skipped"):
        root.set(name, str(sum(each[name] for each in total)))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _comparison(report: ComparisonReport) -> list[ET.Element]:
    by_suite: dict[str, list[ET.Element]] = {}
    for verdict in (*report.judged, *([report.suite] if report.suite else [])):
        by_suite.setdefault(verdict.pair_id.partition("/")[0] if verdict.pair_key else "suite", []).append(
            _verdict_case(verdict)
        )
    for pair in report.not_run:
        case = _case(pair.partition("/")[0], pair, 0.0)
        _say(case, "error", "not run", "the pair was planned but has no verdict")
        by_suite.setdefault(pair.partition("/")[0], []).append(case)
    words = {
        Headline.NOTHING_COMPARED: "nothing could be compared",
        Headline.INCOMPLETE: f"the run is not complete: {report.state.value}",
        Headline.IN_DOUBT: in_doubt(report.verdicts),
        Headline.NOTHING_GATES: "under the policy, none of the compared pairs can fail the gate",
        Headline.UNDECIDED: "a pair that can fail the gate is undecided",
    }
    if report.headline in words:
        case = _case("torchgauge", "the comparison", 0.0)
        _say(case, "error", report.headline.value, words[report.headline])
        by_suite.setdefault("torchgauge", []).append(case)
    return [
        _suite(name, report.created_at, cases, _properties(report))
        for name, cases in sorted(by_suite.items())
    ]


def _verdict_case(verdict: MetricVerdict) -> ET.Element:
    case = _case(
        verdict.pair_id.partition("/")[0] if verdict.pair_key else "suite",
        f"{verdict.pair_id} {verdict.metric}",
        verdict.time_s,
    )
    text = _text(verdict)
    if verdict.verdict in WORSE and verdict.action is Action.GATE:
        _say(case, "failure", verdict.verdict.value, text)
    elif verdict.verdict in WORSE:
        _say(case, "skipped", verdict.verdict.value, f"{text} (policy: {verdict.action.value})")
    elif verdict.verdict in (Verdict.UNDECIDED, Verdict.NOT_COMPARABLE):
        _say(case, "skipped", verdict.verdict.value, text)
    else:
        ET.SubElement(case, "system-out").text = text
    return case


def _text(verdict: MetricVerdict) -> str:
    parts = [verdict.verdict.value]
    if verdict.ratio is not None:
        parts.append(named(verdict))
    if verdict.base is not None and verdict.head is not None:
        ends = (units.quantity(value, verdict.unit) for value in (verdict.base, verdict.head))
        parts.append(" -> ".join(ends))
    if verdict.p_adjusted is not None:
        parts.append(f"adjusted p {verdict.p_adjusted:.2g}")
    parts.append(launches(verdict.launches))
    return _clean(", ".join([*parts, *([verdict.reason] if verdict.reason else [])]))


def _properties(report: ComparisonReport) -> dict[str, str]:
    alarms = report.false_alarms
    return {
        "run_id": report.run_id,
        "verdict": report.headline.value,
        "base": report.base.label,
        "head": report.head.label,
        **{
            f"{name}_{field}": value
            for name, side in (("base", report.base), ("head", report.head))
            if side.source is not None
            for field, value in to_plain(side.source).items()
            if value
        },
        "detectable": "" if report.detectable is None else f"{report.detectable:.4g}",
        "false_alarms_30_days": "" if alarms is None else f"{alarms.alarms} of {alarms.trials}",
    }


def _run(report: RunReport) -> list[ET.Element]:
    by_suite: dict[str, list[ET.Element]] = {}
    for line in report.cases:
        by_suite.setdefault(line.suite, []).append(_status_case(line))
    for case_id in report.not_run:
        case = _case(case_id.partition("/")[0], case_id, 0.0)
        _say(case, "error", Status.NOT_RUN.value, "the case was planned but has no row")
        by_suite.setdefault(case_id.partition("/")[0], []).append(case)
    if not by_suite:
        case = _case("torchgauge", "the run", 0.0)
        _say(case, "error", "empty", "the run has no case")
        by_suite["torchgauge"] = [case]
    elif not any(line.tells for line in report.cases) and not report.not_run:
        case = _case("torchgauge", "the run", 0.0)
        _say(case, "error", "nothing measured", "no case was measured, so this is not a pass")
        by_suite["torchgauge"] = [case]
    properties = {"run_id": report.run_id, "state": report.state.value}
    return [_suite(name, report.created_at, cases, properties) for name, cases in sorted(by_suite.items())]


def _status_case(line: CaseLine) -> ET.Element:
    case = _case(line.suite, line.case_id, line.duration_s)
    text = f"{line.status.value}: {line.reason or 'no reason was recorded'}"
    if line.status in INCOMPLETE:
        _say(case, "error", line.status.value, text)
    elif line.unexpected:
        _say(case, "failure", line.status.value, text)
    elif line.status is not Status.PASS:
        _say(case, "skipped", line.status.value, f"as expected: {text}")
    elif line.other_model:
        _say(
            case,
            "skipped",
            "other_model",
            f"{line.status.value}, but the built model is not the named one: {line.other_model}",
        )
    elif line.degraded:  # right, and no pass of what was asked for: no viewer may show it green
        _say(case, "skipped", "degraded", f"{line.status.value}, but {line.degraded}")
    elif line.unchecked:
        _say(case, "skipped", "unchecked", f"{line.status.value}, but unchecked: {line.unchecked}")
    if line.unsteady:  # a pass all the same: what is in doubt are its step times
        ET.SubElement(case, "system-out").text = _clean(f"unsteady step times: {line.unsteady}")
    return case


def _suite(name: str, at: float, cases: Iterable[ET.Element], properties: dict[str, str]) -> ET.Element:
    when = datetime.fromtimestamp(at, tz=timezone.utc)
    suite = ET.Element("testsuite", {"name": _clean(name), "timestamp": f"{when:%Y-%m-%dT%H:%M:%S}"})
    below = ET.SubElement(suite, "properties")
    for key, value in properties.items():
        ET.SubElement(below, "property", {"name": key, "value": _clean(value)})
    suite.extend(cases)
    return suite


def _case(suite: str, name: str, time_s: float) -> ET.Element:
    told = {"classname": _clean(f"torchgauge.{suite}"), "name": _clean(name), "time": f"{time_s:.3f}"}
    return ET.Element("testcase", told)


def _say(case: ET.Element, tag: str, kind: str, text: str) -> None:
    """Add why a test case did not pass; ``skipped`` has no type in the format."""
    told = {"message": _clean(text)} if tag == "skipped" else {"type": kind, "message": _clean(text)}
    ET.SubElement(case, tag, told)


def _tally(suite: ET.Element) -> dict[str, int]:
    return {
        "tests": len(suite.findall("testcase")),
        "failures": len(suite.findall("testcase/failure")),
        "errors": len(suite.findall("testcase/error")),
        "skipped": len(suite.findall("testcase/skipped")),
    }


def _clean(text: str) -> str:
    """Visible text without characters that XML does not have, cut to a length that viewers bear."""
    shown = _NOT_XML.sub("\ufffd", visible(text))
    return shown if len(shown) <= _LIMIT else shown[: _LIMIT - 3] + "..."


PUBLISHER = Publisher("junit", render)

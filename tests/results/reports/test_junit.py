"""JUnit XML, read by a real parser: no viewer may show green what nobody decided."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from comparison_builder import comparison, pair, suite_verdict, verdict

from torchgauge.records import Status
from torchgauge.records.comparison import Action, Verdict
from torchgauge.results.journal import RunState
from torchgauge.results.reports.junit import render
from torchgauge.results.reports.report import comparison_report
from torchgauge.results.reports.run_report import CaseLine, RunReport
from torchgauge.results.store import Store

LINEAR, CONV = pair("linear"), pair("conv")


def document(store, pairs, verdicts, **fields) -> ET.Element:
    report = comparison_report(Store.open(store, create=True), comparison(store, pairs, verdicts, **fields))
    return ET.fromstring(render(report).encode())


@pytest.mark.parametrize(
    ("kind", "fields", "tag"),
    [
        (Verdict.REGRESSION, {}, "failure"),
        (Verdict.BROKEN, {"metric": "status"}, "failure"),
        (Verdict.REGRESSION, {"action": Action.REPORT}, "skipped"),
        (Verdict.REGRESSION, {"action": Action.IGNORE}, "skipped"),
        (Verdict.UNDECIDED, {"reason": "too noisy"}, "skipped"),
        (Verdict.NOT_COMPARABLE, {"reason": "other hashes"}, "skipped"),
        (Verdict.UNCHANGED, {}, None),
        (Verdict.IMPROVEMENT, {}, None),
    ],
)
def test_a_verdict_has_its_element(tmp_path, kind, fields, tag) -> None:
    """What gates fails, what is not decided is skipped with its reason, and nothing else passes."""
    root = document(tmp_path, [LINEAR, CONV], [verdict(LINEAR), verdict(CONV, kind, **fields)])
    case = next(each for each in root.iter("testcase") if each.get("name", "").startswith(CONV.id))
    found = [below.tag for below in case if below.tag != "system-out"]
    assert found == ([tag] if tag else [])
    if tag:
        message = case.find(tag).get("message")
        assert kind.value in message
        assert fields.get("reason", "") in message


def test_counts_are_those_of_the_elements(tmp_path) -> None:
    """Viewers believe the attributes; they are what a parser counts."""
    verdicts = [
        verdict(LINEAR, Verdict.REGRESSION),
        verdict(LINEAR, Verdict.UNDECIDED, "compile_warm"),
        suite_verdict(),
    ]
    root = document(tmp_path, [LINEAR, CONV], verdicts)
    counted = {tag: len(list(root.iter(tag))) for tag in ("testcase", "failure", "error", "skipped")}
    assert (root.get("tests"), root.get("failures"), root.get("errors"), root.get("skipped")) == tuple(
        str(counted[tag]) for tag in ("testcase", "failure", "error", "skipped")
    )
    assert counted == {"testcase": 4, "failure": 1, "error": 1, "skipped": 1}
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("fields", [{}, {"state": RunState.INTERRUPTED}], ids=["nothing", "interrupted"])
def test_a_run_without_a_comparison_has_an_error(tmp_path, fields) -> None:
    """An empty file would be shown as a success."""
    verdicts = [verdict(LINEAR)] if fields else []
    root = document(tmp_path, [LINEAR], verdicts, **fields)
    assert int(root.get("errors")) >= 1


def test_an_ordinary_run_maps_its_statuses() -> None:
    """Unexpected is a failure, no pass or one that is not counted is skipped, what never ran an error."""
    line = CaseLine("toy/a", "toy", "fake", Status.PASS, False, "", 1.0, "")
    cases = (
        line,
        replace(line, case_id="toy/b", status=Status.CRASH, unexpected=True, reason="signal 11"),
        replace(line, case_id="toy/c", status=Status.SKIPPED),
        replace(line, case_id="toy/d", status=Status.INFRA),
        replace(line, case_id="toy/f", degraded="1 operator ran on the host"),
        replace(line, case_id="toy/g", other_model="36 built, 1,000 declared"),
    )
    root = ET.fromstring(
        render(RunReport("r", 0.0, RunState.COMPLETE, 7, cases, ("toy/e",), ("x",))).encode()
    )
    found = {case.get("name"): [below.tag for below in case] for case in root.iter("testcase")}
    assert found == {
        "toy/a": [],
        "toy/b": ["failure"],
        "toy/c": ["skipped"],
        "toy/d": ["error"],
        "toy/e": ["error"],
        "toy/f": ["skipped"],
        "toy/g": ["skipped"],
    }
    assert next(root.iter("failure")).get("message") == "crash: signal 11"
    empty = ET.fromstring(render(RunReport("r", 0.0, RunState.COMPLETE, 0, (), (), ("x",))).encode())
    assert empty.get("errors") == "1"

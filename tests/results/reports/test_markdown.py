"""The comment on a pull request: what it says, and that nothing in it can act."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from comparison_builder import comparison, pair, suite_verdict, verdict
from markdown_it import MarkdownIt

from torchgauge.records import Status
from torchgauge.records.comparison import Action, CodeSource, SideSpec, Verdict
from torchgauge.results.journal import RunState
from torchgauge.results.markdown_text import code, fenced
from torchgauge.results.reports.markdown import LIMIT, render
from torchgauge.results.reports.report import FalseAlarms, comparison_report
from torchgauge.results.reports.run_report import CaseLine, RunReport
from torchgauge.results.store import Store

LINEAR, CONV = pair("linear"), pair("conv")
HOSTILE = [
    "a | b | c",
    r"a \| b \\| c",
    "`` ` ```",
    "<script>alert(1)</script><img src=x onerror=y>",
    "@everyone please look at #1 and GH-2",
    "https://evil.example/x www.evil.example [a](http://b) ![i](http://c)",
    "-->\n<details><summary>x",
    "\n\n# heading\n- item\n| a | b |",
    "\x1b[31mred\x00\x07",
    "\u202eevil\u200b",
    "x" * 5_000,
    "*bold* _it_ ~~gone~~ $x$ :tada: &amp; &#124;",
    "\ud800 lone",  # the last one, since no journal can hold it
]


def rendered(store, pairs, verdicts, **fields) -> str:
    return render(
        comparison_report(Store.open(store, create=True), comparison(store, pairs, verdicts, **fields))
    )


def parsed(text: str):
    return MarkdownIt("commonmark").enable("table").parse(text)


def rows(text: str) -> list[list[str]]:
    """Cells of every table, as a parser sees them."""
    found: list[list[str]] = []
    tokens = parsed(text)
    for number, token in enumerate(tokens):
        if token.type == "tr_open":
            found.append([])
        if token.type in ("td_open", "th_open"):
            found[-1].append(tokens[number + 1].content)
    return found


def test_base_and_head_are_named_by_commit_branch_and_link(tmp_path) -> None:
    """Whatever a branch is called; an address that is not plain makes no link."""
    commit = "1234567890ab" + 28 * "c"
    known = CodeSource(commit, "a (b)|`c", "https://forge.example/owner/project")
    unknown = CodeSource(commit, "main", "javascript://x)")
    sides = {"base": SideSpec("old", "p", source=known), "head": SideSpec("new", "p", source=unknown)}
    text = rendered(tmp_path, [LINEAR], [verdict(LINEAR)], **sides)
    line = next(line for line in text.splitlines() if line.startswith("Base "))
    links = [each.attrs["href"] for token in parsed(line) for each in token.children or [] if each.attrs]
    page = "https://forge.example/owner/project"
    assert links == [f"{page}/commit/{commit}", f"{page}/tree/a%20%28b%29%7C%60c"]
    assert line.endswith(", head `new` (`1234567890ab` of `main`).")


def test_a_regression_comes_first_with_all_its_evidence(tmp_path) -> None:
    """One row: base to head in units for people, ratio with interval, adjusted p, launches, noise."""
    found = verdict(CONV, Verdict.REGRESSION, p_adjusted=0.0004, confirmed=True, quarantined=True)
    text = rendered(tmp_path, [LINEAR, CONV], [verdict(LINEAR), found, suite_verdict()])
    assert text.splitlines()[1].startswith("**Regression**: 1 worse, of 2 cases.")
    row = next(cells for cells in rows(text) if "regression" in cells[2])
    assert row == [
        f"`{CONV.id}`", "`latency`", "**regression**", "10.0 ms -> 10.8 ms", "0.926x [0.917, 0.935]",
        "0.0004", "6, confirmed", "quiet, quarantined",
    ]  # fmt: skip
    assert f"`{LINEAR.id}`" not in text.split("<details>")[0]


def test_the_false_alarm_rate_has_its_interval(tmp_path) -> None:
    """A rate without an interval would be a boast."""
    folder = comparison(tmp_path, [LINEAR], [verdict(LINEAR)])
    report = comparison_report(Store.open(tmp_path), folder)
    text = render(replace(report, false_alarms=FalseAlarms(2, 200, 0.01, 0.0012, 0.0357)))
    assert "in 30 days: 2 of 200, 1 % [0.12 %, 3.6 %]" in text


@pytest.mark.parametrize(
    ("verdicts", "fields", "begins"),
    [
        ([], {}, "**Nothing could be compared**"),
        ([verdict(LINEAR, Verdict.NOT_COMPARABLE, reason="both fail")], {}, "**Nothing could be compared**"),
        ([verdict(LINEAR)], {"state": RunState.INTERRUPTED}, "**Incomplete**: interrupted"),
        ([verdict(LINEAR, Verdict.UNDECIDED, needed=9, reason="too noisy")], {}, "**Undecided**"),
    ],
)
def test_what_is_no_success_does_not_read_as_one(tmp_path, verdicts, fields, begins) -> None:
    """The first line says that nothing is known, and the reasons are below."""
    text = rendered(tmp_path, [LINEAR], verdicts, **fields)
    assert text.splitlines()[1].startswith(begins)
    assert "Unchanged" not in text
    for each in verdicts:  # may be empty: where there is no pair there is no reason
        assert each.reason in text


def test_what_the_policy_ignores_is_not_silent(tmp_path) -> None:
    """An ignored regression is still said on the first line."""
    verdicts = [
        verdict(LINEAR),
        verdict(CONV, Verdict.REGRESSION, "compile_warm", action=Action.IGNORE),
        verdict(CONV),
    ]
    line = rendered(tmp_path, [LINEAR, CONV], verdicts).splitlines()[1]
    assert line.startswith("**Unchanged**")
    assert "1 case worse, which the policy ignores" in line


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_one_code_span_that_does_nothing(text) -> None:
    """A parser finds one cell, and nothing in it but code and the two tags of it."""
    line = f"| before | {code(text)} | after |"
    cells = rows(f"| a | b | c |\n| --- | --- | --- |\n{line}")[1]
    assert (len(cells), cells[0], cells[2]) == (3, "before", "after")
    inline = [child for token in parsed(code(text)) for child in token.children or []]
    assert {child.type for child in inline} <= {"code_inline", "html_inline", "text", "text_special"}
    assert {child.content for child in inline if child.type == "html_inline"} <= {"<code>", "</code>"}
    assert "\n" not in code(text)
    assert len(code(text)) < 1_200


@pytest.mark.parametrize("text", HOSTILE[:-1], ids=range(len(HOSTILE) - 1))
def test_hostile_names_break_out_of_nowhere(tmp_path, text) -> None:
    """Reasons, labels, commands and variables of a hostile run leave the outline of the comment as it is."""
    hostile = SideSpec(text, text, (("X", text),), "")
    verdicts = [
        replace(verdict(LINEAR, Verdict.BROKEN, "status"), reason=text, pair_id=text, metric=text),
        replace(verdict(CONV, Verdict.UNDECIDED), reason=text, pair_id=text),
        replace(verdict(CONV, Verdict.REGRESSION, "compile_warm"), unit=text, pair_id=text),
        replace(suite_verdict(), reason=text),
    ]
    shown = rendered(
        tmp_path, [LINEAR, CONV], verdicts, base=hostile, head=hostile, command=("x", text), policy=text
    )
    harmless = rendered(
        tmp_path / "harmless",
        [LINEAR, CONV],
        [replace(each, reason="r", pair_id="p") for each in verdicts],
        base=SideSpec("b", "b", (("X", "b"),)),
        head=SideSpec("b", "b", (("X", "b"),)),
        command=("x", "y"),
        policy="p",
    )
    outline = [token.type for token in parsed(shown)]
    assert outline == [token.type for token in parsed(harmless)]
    assert not re.search(r"[\x00-\x08\x1b\u202e\u200b]", shown)


def test_a_fence_is_longer_than_what_it_holds() -> None:
    """A command full of backticks stays in its block."""
    tokens = parsed(fenced("a ```` b\n```\nc"))
    assert [token.type for token in tokens] == ["fence"]
    assert tokens[0].content == "a ```` b\n```\nc\n"


def test_a_comment_never_exceeds_what_github_takes(tmp_path) -> None:
    """Six hundred broken cases with long reasons: as many rows as fit, and a line on the others."""
    pairs = [pair(f"model_{number:04d}") for number in range(600)]
    verdicts = [verdict(each, Verdict.BROKEN, "status", reason="w" * 500) for each in pairs]
    text = rendered(tmp_path, [*pairs, LINEAR], verdicts)
    assert len(text) <= LIMIT
    kept = sum("broken" in line and line.startswith("| `") for line in text.splitlines())
    assert kept > 50
    cut = re.search(r"^([\d,]+) more changed rows are cut", text, re.MULTILINE)
    assert cut is not None
    assert kept + int(cut[1].replace(",", "")) == 600
    assert "600 broken" in text
    assert "Not run" in text


def test_an_ordinary_run_shows_what_was_not_expected() -> None:
    """Counts and a row for each surprise; an incomplete run is no pass."""
    line = CaseLine("toy/a:x", "toy", "fake", Status.CRASH, True, "signal | 11", 1.0, "")
    report = RunReport(
        "run",
        0.0,
        RunState.COMPLETE,
        2,
        (line, replace(line, status=Status.PASS, unexpected=False)),
        (),
        ("x",),
    )
    text = render(report)
    assert text.startswith("**1 unexpected**. Of 2 cases: 1 pass, 1 crash.")
    assert ["`toy/a:x`", "crash", "<code>signal &#124; 11</code>"] in rows(text)
    degraded = replace(line, status=Status.PASS, unexpected=False, degraded="nothing | was captured")
    fine = replace(line, status=Status.PASS, unexpected=False)
    text = render(replace(report, cases=(degraded, fine)))
    assert text.startswith("**As expected**. Of 2 cases: 2 pass. **Degraded passes: 1**")
    assert ["`toy/a:x`", "<code>nothing &#124; was captured</code>"] in rows(text)
    other = replace(line, status=Status.PASS, unexpected=False, other_model="36 built | 1000 declared")
    text = render(replace(report, cases=(other,), planned=1))
    assert "1 pass. **Not the named model: 1**: the suite built another model, so not a pass." in text
    assert ["`toy/a:x`", "pass", "<code>36 built &#124; 1000 declared</code>"] in rows(text)
    assert render(replace(report, cases=(), not_run=("a", "b"))).startswith(
        "**Incomplete**: this is not a pass"
    )
    for nothing in (degraded, other, replace(fine, status=Status.SKIPPED)):
        alone = render(replace(report, cases=(nothing,), planned=1))
        assert alone.startswith("**Nothing measured**: this is not a pass. Of 1 case: 1 ")
    unchecked = replace(fine, unchecked="--no-accuracy")
    assert render(replace(report, cases=(unchecked,), planned=1)).startswith("**As expected**")

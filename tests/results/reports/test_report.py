"""What a report says of a comparison, whatever its form."""

from __future__ import annotations

from pathlib import Path

import pytest
from comparison_builder import CREATED_AT, DAY, comparison, pair, suite_verdict, verdict

from torchgauge.records.comparison import Action, Verdict
from torchgauge.results.comparing.gate_verdict import Headline
from torchgauge.results.journal import RunState
from torchgauge.results.reports import junit, markdown
from torchgauge.results.reports.report import comparison_report
from torchgauge.results.store import Store

LINEAR, CONV = pair("linear"), pair("conv")


def report_of(store: Path, pairs, verdicts, **fields):
    folder = comparison(store, pairs, verdicts, **fields)
    return comparison_report(Store.open(store), folder)


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        (Verdict.UNCHANGED, {}, Headline.UNCHANGED),
        (Verdict.IMPROVEMENT, {}, Headline.IMPROVEMENT),
        (Verdict.REGRESSION, {}, Headline.REGRESSION),
        (Verdict.REGRESSION, {"action": Action.REPORT}, Headline.REPORTED),
        (Verdict.BROKEN, {"metric": "status"}, Headline.REGRESSION),
        (Verdict.UNDECIDED, {}, Headline.UNDECIDED),
        (Verdict.NOT_COMPARABLE, {}, Headline.UNDECIDED),
    ],
)
def test_the_headline_is_the_worst_that_holds(tmp_path, kind, fields, expected) -> None:
    """One case that is fine beside one that is not: the other one decides what is said first."""
    report = report_of(tmp_path, [LINEAR, CONV], [verdict(LINEAR), verdict(CONV, kind, **fields)])
    assert report.headline is expected


@pytest.mark.parametrize(
    "verdicts",
    [
        [],
        [verdict(LINEAR, Verdict.NOT_COMPARABLE), verdict(CONV, Verdict.NOT_COMPARABLE)],
        [verdict(LINEAR, Verdict.NOT_COMPARABLE)],
        [verdict(LINEAR, Verdict.UNCHANGED, "status", ratio=None), verdict(LINEAR, Verdict.NOT_COMPARABLE)],
        [verdict(LINEAR, action=Action.IGNORE), verdict(CONV, action=Action.IGNORE)],
        [verdict(LINEAR, Verdict.UNCHANGED, "peak_memory"), verdict(CONV, Verdict.UNCHANGED, "status")],
    ],
    ids=["no verdict", "none comparable", "one missing", "status only", "all ignored", "memory only"],
)
def test_a_run_in_which_nothing_was_compared_is_no_success(tmp_path, verdicts) -> None:
    """Neither no verdict at all nor equal statuses of cases without timings read as unchanged."""
    report = report_of(tmp_path, [LINEAR, CONV], verdicts)
    assert report.headline is Headline.NOTHING_COMPARED


def test_a_regression_of_a_control_pair_puts_the_run_in_doubt(tmp_path) -> None:
    """Head against head is about the rule, not about the head: no regression, and no pass either."""
    control = pair("linear", control=True)
    report = report_of(tmp_path, [LINEAR, control], [verdict(LINEAR), verdict(control, Verdict.REGRESSION)])
    assert report.headline is Headline.IN_DOUBT
    for render in (markdown.render, junit.render):
        assert "head against head: latency regression of" in render(report)
    assert (report.counts.planned, report.counts.changed) == (1, 0)
    assert report.flagged == ()


@pytest.mark.parametrize("state", [RunState.INTERRUPTED, RunState.OUT_OF_BUDGET, None])
def test_a_run_that_was_cut_short_is_incomplete(tmp_path, state) -> None:
    """What was measured may be unchanged; the run as a whole says nothing."""
    report = report_of(tmp_path, [LINEAR], [verdict(LINEAR)], state=state)
    assert report.headline is Headline.INCOMPLETE


def test_a_pair_without_a_verdict_was_not_run(tmp_path) -> None:
    """It is counted and named."""
    report = report_of(tmp_path, [LINEAR, CONV], [verdict(LINEAR)])
    assert (report.headline, report.not_run, report.counts.not_run) == (Headline.INCOMPLETE, (CONV.id,), 1)


def test_a_regression_outranks_an_incomplete_run(tmp_path) -> None:
    """What was found stays found."""
    report = report_of(tmp_path, [LINEAR, CONV], [verdict(LINEAR, Verdict.REGRESSION)])
    assert report.headline is Headline.REGRESSION


@pytest.mark.parametrize(
    ("metric", "action", "expected"),
    [
        ("latency_wall", Action.REPORT, Headline.UNCHANGED),
        ("compile_warm", Action.GATE, Headline.UNDECIDED),
        ("compile_warm", Action.IGNORE, Headline.UNCHANGED),
        ("latency", Action.REPORT, Headline.REPORTED),
    ],
)
def test_silence_counts_where_something_was_to_be_said(tmp_path, metric, action, expected) -> None:
    """Wall time that is only watched may stay undecided; what gates, and the latency, may not."""
    silent = verdict(LINEAR, Verdict.UNDECIDED, metric, action=action)
    others = [] if metric == "latency" else [verdict(LINEAR)]
    report = report_of(tmp_path, [LINEAR, CONV], [*others, silent, verdict(CONV)])
    assert report.headline is expected
    assert bool(report.unclear) == (expected is not Headline.UNCHANGED)


def test_better_memory_hides_no_undecided_latency(tmp_path) -> None:
    """Of the same pair and of another: the headline, the counts and the comment all say what is open."""
    better = [verdict(each, Verdict.IMPROVEMENT, "peak_memory") for each in (LINEAR, CONV)]
    report = report_of(tmp_path, [LINEAR, CONV], [verdict(LINEAR, Verdict.UNDECIDED), verdict(CONV), *better])
    assert (report.headline, report.counts.undecided, report.counts.changed) == (Headline.UNDECIDED, 1, 1)
    comment = markdown.render(report)
    assert "**Undecided**" in comment.splitlines()[1]
    assert f"| `{LINEAR.id}` | `latency` | undecided |" in comment


def test_every_pair_is_counted_once(tmp_path) -> None:
    """Counts add up to the plan, whatever each metric says; better memory hides no undecided latency."""
    pairs = [pair(name) for name in ("a", "b", "c", "d", "e", "f", "g", "h")]
    verdicts = [
        verdict(pairs[0], Verdict.REGRESSION, quarantined=True),
        verdict(pairs[0], Verdict.UNDECIDED, "compile_warm"),
        verdict(pairs[1], Verdict.UNDECIDED),
        verdict(pairs[2], Verdict.NOT_COMPARABLE),
        verdict(pairs[3]),
        verdict(pairs[3], Verdict.UNCHANGED, "peak_memory"),
        verdict(pairs[4]),
        verdict(pairs[4], Verdict.REGRESSION, "compile_warm", action=Action.IGNORE),
        verdict(pairs[6], Verdict.UNDECIDED),
        verdict(pairs[6], Verdict.IMPROVEMENT, "peak_memory"),
        verdict(pairs[7]),
        verdict(pairs[7], Verdict.NOT_COMPARABLE, "peak_memory"),
    ]
    counts = report_of(tmp_path, pairs, verdicts).counts
    found = (counts.changed, counts.undecided, counts.not_comparable, counts.unchanged, counts.not_run)
    assert found == (1, 2, 2, 2, 1)
    assert (sum(found), counts.planned, counts.quarantined, counts.ignored) == (8, 8, 1, 1)


def test_four_of_five_pairs_could_have_shown_the_smallest_change(tmp_path) -> None:
    """One very noisy case does not set the figure, and one very quiet case does not either."""
    pairs = [pair(name) for name in "abcde"]
    values = (0.01, 0.02, 0.03, 0.04, 0.9)
    report = report_of(
        tmp_path, pairs, [verdict(each, detectable=value) for each, value in zip(pairs, values, strict=True)]
    )
    assert report.detectable == 0.04


def test_the_false_alarm_rate_is_that_of_the_last_thirty_days(tmp_path) -> None:
    """Older A/A pairs do not count; the interval is the exact binomial one."""
    control = pair("linear", control=True)
    for number, (days, kind) in enumerate(
        [(40, Verdict.REGRESSION), (20, Verdict.REGRESSION), (10, Verdict.UNCHANGED), (5, Verdict.UNCHANGED)]
    ):
        at = CREATED_AT - days * DAY
        comparison(tmp_path, [control], [verdict(control, kind)], f"old-{number}", created_at=at)
    alarms = report_of(tmp_path, [LINEAR], [verdict(LINEAR)]).false_alarms
    assert alarms is not None
    assert (alarms.alarms, alarms.trials, alarms.rate) == (1, 3, pytest.approx(1 / 3))
    # Clopper and Pearson for 1 of 3 at 95 %
    assert (alarms.low, alarms.high) == (pytest.approx(0.0084, abs=1e-4), pytest.approx(0.9057, abs=1e-4))


def test_equal_selections_share_a_marker_and_others_do_not(tmp_path) -> None:
    """A/A pairs are chosen by chance and must not change which comment is edited."""
    control = pair("conv", control=True)
    first = report_of(tmp_path / "1", [LINEAR, CONV], [verdict(LINEAR)])
    second = report_of(tmp_path / "2", [CONV, LINEAR, control], [suite_verdict()])
    third = report_of(tmp_path / "3", [LINEAR], [verdict(LINEAR)])
    assert first.marker == second.marker != third.marker

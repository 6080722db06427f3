"""The page of regressions: changes with age and verdict, new failures, A/B runs, damaged files."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from store_builder import NOW
from subject_store import finding, keep_findings, night

from torchgauge.dashboard import build_site
from torchgauge.records import Status
from torchgauge.records.comparison import CodeSource, SideSpec, Verdict
from torchgauge.results.store import Store
from torchgauge.results.trends.trend_findings import Finding
from torchgauge.results.trends.trend_outcomes import TrendOutcome, TrendState, append_outcome

sys.path.insert(0, str(Path(__file__).parents[1] / "results" / "reports"))


def _page(store: Path, out: Path) -> str:
    build_site(store, out, now=NOW)
    return (out / "regressions.html").read_text()


def _text(page: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Two nights, of which the second breaks one model of three."""
    path = tmp_path / "store"
    night(path, 1, dict.fromkeys(("a", "b", "c"), Status.PASS))
    night(path, 2, {"a": Status.PASS, "b": Status.ERROR, "c": Status.PASS}, reason="it broke")
    return path


def test_a_store_in_which_nobody_looked_says_so(store, tmp_path):
    """No findings is not "no change"; what no command can tell yet asks for none."""
    text = _text(_page(store, tmp_path / "site"))
    assert "Regression detection requires 20 nights with a number; no case has so many yet." in text
    assert "torchgauge results trend --store DIR" not in text
    assert "No change was found" not in text


def test_a_change_has_size_range_age_and_verdict(store, tmp_path):
    """What changed, by how much, since which builds, for how long, and what became of it."""
    keep_findings(
        store, finding("a"), finding("gone", key="f" * 16, worse=False, size=-0.1, low=None, high=None)
    )
    page = _page(store, tmp_path / "site")
    text = _text(page)
    assert "latency +25.0% time [+20.0%, +30.0%]" in text
    assert "1.00 ms → 1.25 ms" in text
    assert "after torch 2.13, up to and including torch 2.14" in text
    assert re.search(r"suspected after .* since 2025-12-04 12:00 UTC", text)
    assert "\N{MINUS SIGN}10.0% time no interval: too few nights" in text
    assert re.search(r'<a href="models/[^"]+">toy/a</a>', page)
    assert "toy/gone" in text
    assert "up to run night-002 of 2025-12-04 12:00 UTC" in text
    changes = json.loads((tmp_path / "site/data/regressions.json").read_bytes())["changes"]
    assert [(each["model"], each["open"]) for each in changes] == [("a", True), ("gone", True)]


def test_a_change_beside_changed_model_code_is_marked(store, tmp_path):
    """The mark stands beside the builds of that change alone."""
    keep_findings(store, finding("a", code_changed=True), finding("c", key="e" * 16))
    assert _text(_page(store, tmp_path / "site")).count("the model code changed") == 1


def test_a_confirmation_moves_and_closes_changes(store, tmp_path):
    """An outcome that was appended later counts; what was none of the software is no longer open."""
    first, second = finding("a"), finding("c", key="e" * 16)
    keep_findings(store, first, second)
    for each, state in ((first, TrendState.CONFIRMED), (second, TrendState.ENVIRONMENT)):
        outcome = TrendOutcome(
            each.case_key, each.case_id, each.metric, each.machine, each.good_run, each.suspect_run, state,
            f"said of {each.model}", NOW, 1.3, 1.29, 1.31,
        )  # fmt: skip
        append_outcome(Store.open(store), outcome)
    text = _text(_page(store, tmp_path / "site"))
    worse, _, closed = text.partition("Closed (1)")
    assert "Slower or worse (1)" in worse
    assert "+30.0% time [+29.0%, +31.0%]" in worse
    assert "said of a" in worse
    assert "environment said of c" in closed


def test_a_level_that_went_back_is_no_longer_open(store, tmp_path):
    """The second change ends the first."""
    back = finding("a", key="d" * 16, size=-0.2, low=-0.21, high=-0.19, worse=False, suspect_run="night-009")
    keep_findings(store, finding("a"), _later(back))
    text = _text(_page(store, tmp_path / "site"))
    assert "Closed (1)" in text
    assert "Slower or worse" not in text
    assert "5 d, until 2025-12-09" in text


def test_new_failures_are_grouped_and_repeatable(store, tmp_path):
    """One model broke; its group has the reason and the command."""
    page = _page(store, tmp_path / "site")
    assert "cpu: models (1)" in page
    assert "it broke" in page
    assert "torchgauge run toy --case" in page
    assert page.count("<article") == 1


@pytest.mark.parametrize("name", ["findings.json", "outcomes.jsonl"])
def test_damaged_files_are_said(store, tmp_path, name):
    """The page says which file cannot be read; the rest of the site is built."""
    keep_findings(store, finding("a"))
    (store / "trend" / name).write_text('{"schema": 1, "looks": 3}\n')
    text = _text(_page(store, tmp_path / "site"))
    assert "cannot be read" in text
    assert name in text
    assert "Not computed" not in text


def test_ab_runs_have_verdicts_rates_and_commands(tmp_path, comparison_store):
    """A real A/B run: worst verdicts first, the A/A beside it, the false-alarm rate with its interval."""
    page = _page(comparison_store, tmp_path / "site")
    text = _text(page)
    assert "main → pull request 7" in text
    assert "1 regression, 1 unchanged" in text
    assert "0.926x" in text
    assert "1 more verdict, none worse" in text
    assert "torchgauge ab toy --base" in text
    assert "A/A in the same run: 0 false alarms in 1" in text
    assert "in doubt" not in text
    assert "0 of 1" in text
    assert "[0.0%, 97.5%]" in text


def test_commits_branches_and_pull_requests_are_links_to_their_host(store, tmp_path):
    """Only an https address of well-formed parts becomes a link; a script in its place stays text."""
    from comparison_builder import comparison, pair

    good = CodeSource("a" * 40, "pull/7/merge", "https://github.example/one/two")
    base = SideSpec("main", "python", source=replace(good, branch="release/2.13"))
    comparison(store, [pair("linear")], [], base=base, head=SideSpec("pr", "python", source=good))
    page = _page(store, tmp_path / "site")
    for path in (f"commit/{'a' * 40}", "tree/release/2.13", "pull/7"):
        assert f'<a href="https://github.example/one/two/{path}">' in page
    evil = CodeSource("<b>" + "a" * 40, '"onclick=1', "javascript:alert(1)//x/y")
    comparison(
        store, [pair("mlp")], [], "20260529T200000Z-00000000", head=SideSpec("evil", "python", source=evil)
    )
    again = _page(store, tmp_path / "again")
    assert "javascript" not in again
    assert '"onclick' not in again
    assert "<b>a" not in again
    assert "&lt;b&gt;aaaa" in again


def test_a_run_whose_control_changed_is_in_doubt(store, tmp_path):
    """Head against head that is called better says that the run errs."""
    from comparison_builder import comparison, pair, verdict

    slow, same = pair("linear"), pair("linear", control=True)
    alarm = verdict(same, Verdict.IMPROVEMENT, metric="peak_memory", unit="B")
    comparison(store, [slow, same], [verdict(slow), alarm])
    text = _text(_page(store, tmp_path / "site"))
    assert "A/A in the same run: 1 false alarm in 1: the results of this run are in doubt" in text


def test_a_damaged_comparison_is_said(tmp_path, comparison_store):
    """A table that cannot be read takes neither the page nor the site with it."""
    (path,) = comparison_store.glob("tables/verdicts/*.parquet")
    path.write_bytes(b"PAR1 nothing")
    text = _text(_page(comparison_store, tmp_path / "site"))
    assert re.search(r"tables/verdicts\S* cannot be read", text)
    assert "the noise ledger cannot be read" in text


@pytest.fixture
def comparison_store(store: Path) -> Path:
    """The store with one A/B run of a pair that regressed, one that did not, and one A/A."""
    from comparison_builder import comparison, pair, verdict

    slow, fast, same = pair("linear"), pair("mlp"), pair("linear", control=True)
    verdicts = [verdict(fast), verdict(slow, Verdict.REGRESSION, confirmed=True), verdict(same)]
    comparison(store, [slow, fast, same], verdicts)
    return store


def _later(found: Finding) -> Finding:
    return replace(found, suspect_at=found.suspect_at + 5 * 86_400)

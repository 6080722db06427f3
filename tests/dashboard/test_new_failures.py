"""New failures: one model behind the overview, the marks of the matrix, the feed and the badges."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from page_text import words
from store_builder import CPU, DAY, EAGER, INDUCTOR, NOW, NPU, RunBuilder, environment, result
from subject_store import night

from torchgauge.dashboard import build_site
from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.new_failures import recent_failures
from torchgauge.dashboard.site_data import SiteData, read_site_data
from torchgauge.records import Case, Configuration, Modifier, Status, Workload
from torchgauge.results.store import Store

PASS, ERROR, INFRA, OOM = Status.PASS, Status.ERROR, Status.INFRA, Status.OOM


def _read(path: Path) -> SiteData:
    return read_site_data(Store.open(path), NOW)


def _entry(data: SiteData, model: str) -> Entry:
    return next(each for (workload, _), each in data.latest.entries.items() if workload.model == model)


def test_the_mark_is_on_exactly_the_cases_that_are_listed(tmp_path: Path) -> None:
    """A failure of yesterday that nobody measured since, one of tonight; none that is old or was mended."""
    store = tmp_path / "store"
    night(store, 27, {"old": PASS, "mended": PASS, "fresh": PASS, "yesterday": PASS, "fine": PASS})
    night(store, 28, {"old": ERROR, "mended": ERROR, "fresh": PASS, "yesterday": PASS, "fine": PASS})
    night(store, 29, {"old": ERROR, "mended": PASS, "fresh": PASS, "yesterday": OOM, "fine": PASS})
    night(store, 30, {"old": ERROR, "mended": PASS, "fresh": ERROR, "fine": PASS})
    data = _read(store)
    assert [each.case.workload.model for each in data.new_failures] == ["fresh", "yesterday"]
    marked = {each.workload.model for each in data.latest.entries.values() if "new" in each.marks}
    assert marked == {"fresh", "yesterday"}
    build_site(store, tmp_path / "site", now=NOW)
    text = words(tmp_path / "site" / "index.html")
    listed = text.partition("New failures")[2].partition("Regressions")[0]
    tonight, _, earlier = listed.partition("From earlier nights, not measured since: 1")
    assert ("toy/fresh" in tonight, "toy/yesterday" in earlier) == (True, True)
    assert not re.search(r"toy/(old|mended|fine)", listed)
    assert (
        len(re.findall(r"<small>[^<]*\bnew\b", (tmp_path / "site" / "compatibility.html").read_text())) == 2
    )


def test_a_line_is_of_one_row_also_where_a_later_night_lost_the_case(tmp_path: Path) -> None:
    """The failure's status, reason and date, and not the reason of the machine that went away."""
    store = tmp_path / "store"
    night(store, 28, {"a": PASS, "b": PASS})
    night(store, 29, {"a": ERROR, "b": PASS}, reason="the kernel is wrong")
    night(store, 30, {"a": INFRA, "b": INFRA}, reason="the machine went away")
    (found,) = _read(store).new_failures
    assert (found.status, found.snapshot.date, found.before.date) == (ERROR, "2025-12-31", "2025-12-30")
    build_site(store, tmp_path / "site", now=NOW)
    for name in ("index.html", "regressions.html"):
        listed = words(tmp_path / "site" / name).partition("New failures")[2]
        assert "the kernel is wrong" in listed
        assert "the machine went away" not in re.split("Regressions|A/B comparisons", listed)[0]


def test_two_builds_of_a_day_are_told_in_order_of_time(tmp_path: Path) -> None:
    """The snapshot that began first holds the newest row: what stands is what was said last."""
    store = tmp_path / "store"
    for hour, torch, status in ((1, "2.12.0", PASS), (3, "2.13.0", PASS), (5, "2.12.0", ERROR)):
        run = RunBuilder(f"run-{hour}", NOW - DAY + hour * 3_600)
        usual = environment("cpu")
        identity = (*(fact for fact in usual.identity if not fact[0].startswith("torch")), ("torch", torch))
        run.environments.append(replace(usual, identity=identity))
        case = Case(Workload("toy", "a"), EAGER, CPU)
        result(run, case, status, environment_id=run.environments[0].id)
        run.write(store)
    data = _read(store)
    assert len(data.snapshots) == 2
    assert [each.status for each in data.new_failures] == [_entry(data, "a").status] == [ERROR]


def test_a_pass_by_another_path_is_new_and_says_by_which(tmp_path: Path) -> None:
    """Degraded is worse than a pass; the line has the reason of the same row."""
    store = tmp_path / "store"
    night(store, 29, {"a": PASS, "b": PASS})
    why = (("degraded", "3 operators on the host"),)
    night(store, 30, {"a": PASS}, modifiers=(Modifier.DEGRADED,), facts=why)
    (found,) = _read(store).new_failures
    assert (found.ended, found.against) == ("degraded", "passed 2025-12-31, degraded 2026-01-01")
    build_site(store, tmp_path / "site", now=NOW)
    assert "3 operators on the host" in words(tmp_path / "site" / "index.html")


def test_a_case_that_was_defined_anew_is_no_new_failure(tmp_path: Path) -> None:
    """Its old definition failed last and nobody runs it: the matrix does not have it, nor does the list."""
    store = tmp_path / "store"
    anew = Configuration("inductor", "inductor", (("mode", "max-autotune"),))
    for number, (configuration, status) in enumerate(((INDUCTOR, PASS), (INDUCTOR, ERROR), (anew, PASS))):
        run = RunBuilder(f"run-{number}", NOW - (3 - number) * DAY)
        result(run, Case(Workload("toy", "a"), configuration, CPU), status)
        run.write(store)
    assert _read(store).new_failures == ()


def test_the_feed_tells_also_of_what_was_mended(tmp_path: Path) -> None:
    """Every change for the worse of the newest snapshots, newest first; the standing ones are among them."""
    store = tmp_path / "store"
    for number, (a, b) in enumerate(((PASS, PASS), (ERROR, PASS), (PASS, INFRA), (ERROR, ERROR)), start=27):
        night(store, number, {"a": a, "b": b})
    data = _read(store)
    told = [(each.case.workload.model, each.snapshot.date) for each in recent_failures(data.recent, 10)]
    assert told == [("a", "2026-01-01"), ("b", "2026-01-01"), ("a", "2025-12-30")]
    assert {(each.case.workload.model, each.snapshot.date) for each in data.new_failures} == set(told[:2])
    assert len(recent_failures(data.recent, 1)) == 2


@pytest.mark.parametrize("nights", [0, 1])
def test_where_nothing_came_before_nothing_is_new(tmp_path: Path, nights: int) -> None:
    """An empty store, and one night of failures."""
    store = tmp_path / "store"
    Store.open(store, create=True)
    for _ in range(nights):
        night(store, 30, {"a": ERROR}, NPU)
    assert _read(store).new_failures == ()

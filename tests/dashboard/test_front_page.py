"""The front page: a night at one glance, small and large, whole and lost, wide and on a phone."""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from page_text import words
from store_builder import CPU, DAY, EAGER, NOW, NPU, RunBuilder, environment, result, timings
from subject_store import finding, keep_findings, night, store_of_every_page

from torchgauge.dashboard import build_site
from torchgauge.dashboard.pages.night import newest_night
from torchgauge.dashboard.site_data import read_site_data
from torchgauge.records import Case, Modifier, Status, Workload
from torchgauge.results.store import Store

PASS, ERROR, INFRA, OOM, SKIPPED = Status.PASS, Status.ERROR, Status.INFRA, Status.OOM, Status.SKIPPED


def _front(store: Path) -> str:
    build_site(store, store.parent / "site", now=NOW)
    return words(store.parent / "site" / "index.html")


def _part(text: str, begin: str, end: str = "Not there") -> str:
    return text.partition(begin)[2].partition(end)[0]


def test_a_night_that_was_lost_is_one_line_and_no_headline(tmp_path: Path) -> None:
    """The machine went away under one of two devices: nothing broke, and what was known of it stands."""
    store = tmp_path / "store"
    names = [f"m{number}" for number in range(20)]
    for number in (29, 30):
        night(store, number, dict.fromkeys(names, PASS))
    run = RunBuilder("npu-29", NOW - DAY)
    for status, at in ((PASS, NOW - DAY), (INFRA, NOW - 60)):
        run = RunBuilder(f"npu-{status.value}", at)
        for name in names:
            result(run, Case(Workload("toy", name), EAGER, NPU), status, reason="the machine went away")
        run.write(store)
    text = _front(store)
    assert "1 of 2 devices, torch not recorded, 20 models measured, 2026-01-01" in text
    assert "Works 40/40 pass ±0 since 2025-12-31." in text
    assert "0 broke, 0 fixed" in text
    assert "npusim lost the nightly run of 2026-01-01: none of 20 cases has a result" in text
    assert re.search(r"npusim 20/20 .*2025-12-31 12:01 UTC", text)
    assert "Not measured Cases for which the last known result still counts" in text
    assert "20 infra the machine went away npusim" in text
    assert _part(text, "New failures", "Regressions").strip() == "None on 2026-01-01."


def test_where_everything_was_lost_the_page_says_that_first(tmp_path: Path) -> None:
    """Nothing is shown as failed, and nothing as fine."""
    store = tmp_path / "store"
    night(store, 29, {"a": PASS, "b": ERROR})
    night(store, 30, {"a": INFRA, "b": INFRA}, reason="the machine went away")
    text = _front(store)
    assert "Nothing was measured, 2026-01-01" in text
    assert "Works 1/2 pass ±0 since 2025-12-31." in text
    assert "Changed on 2026-01-01 not measured Against 2025-12-31." in text
    assert "2 infra the machine went away cpu" in text


def test_a_first_night_has_its_results_and_no_difference(tmp_path: Path) -> None:
    """One device, one model, one night: the matrix itself, and that there is nothing to compare with."""
    store = tmp_path / "store"
    night(store, 30, {"a": PASS})
    text = _front(store)
    assert "1 device, torch not recorded, 1 model measured, 2026-01-01" in text
    assert text.count("One night so far") == 1
    assert re.search(r"Every case .* workload cpu eager toy/a inference .*pass", text)
    assert not re.search(r"\d since 2026", text)


def test_a_store_of_checks_alone_counts_them_apart(tmp_path: Path) -> None:
    """No model was planned: neither nought of nought nor a matrix."""
    run = RunBuilder("r", NOW - 60)
    result(run, Case(Workload("conformance", "copies", "check"), EAGER, CPU))
    run.write(tmp_path / "store")
    text = _front(tmp_path / "store")
    assert "1 device, torch not recorded, no model measured, 2026-01-01" in text
    assert "cpu checks 1/1 no model was planned" in text


def test_an_open_regression_has_its_verdict_its_date_and_its_line(tmp_path: Path) -> None:
    """With the drawing of its recent past, and a way to the model."""
    store = tmp_path / "store"
    for number in range(1, 7):
        run = RunBuilder(f"night-{number:03d}", NOW - (30 - number) * DAY)
        case = Case(Workload("toy", "mlp"), EAGER, CPU)
        slow = 1.25e-3 if number > 3 else 1e-3
        result(run, case, measurements=timings(random.Random(number), slow, None, "cpu"))
        run.write(store)
    keep_findings(store, finding("mlp"), finding("other", key="f" * 16, worse=False, size=-0.2))
    text = _front(store)
    line = _part(text, "Regressions", "Not measured")
    assert re.search(
        r"\+25\.0% time suspected latency \[\+20\.0%, \+30\.0%\] since .* cpu · eager toy/mlp", line
    )
    assert "other" not in line
    assert "1 open regression" in text
    drawn = _part((tmp_path / "site" / "index.html").read_text(), 'id="regressions"', 'id="lost"')
    assert re.search(r'<svg class="spark"[^>]*aria-label="6 numbers between', drawn)


def test_what_is_expected_otherwise_and_not_new_is_kept(tmp_path: Path) -> None:
    """A failure of many nights, and a pass where a failure was promised."""
    store = tmp_path / "store"
    for number in (29, 30):
        run = RunBuilder(f"night-{number}", NOW - (30 - number) * DAY - 60)
        for name, status, expected in (("a", ERROR, None), ("b", PASS, ERROR), ("c", ERROR, ERROR)):
            case = Case(Workload("toy", name), EAGER, CPU)
            marks = (Modifier.EXPECTED,) if status is expected else ()
            result(run, case, status, expected=expected, modifiers=marks, reason="by hand")
        run.write(store)
    text = _front(store)
    assert "Unexpected results that are not new: 1 failure, 1 pass" in text
    assert _part(text, "New failures", "Regressions").strip() == "None on 2026-01-01."


def test_a_night_counts_against_what_was_known_before_it(tmp_path: Path) -> None:
    """A case that was not measured the night before is compared with the last night that has it."""
    store = tmp_path / "store"
    night(store, 27, {"back": ERROR, "gone": PASS, "refused": PASS, "lost": PASS, "same": PASS})
    night(store, 28, {"same": PASS, "lost": INFRA})
    night(
        store, 29, {"back": PASS, "gone": OOM, "refused": SKIPPED, "lost": INFRA, "same": PASS, "young": PASS}
    )
    data = read_site_data(Store.open(store), NOW)
    last = newest_night(data.recent, NOW)
    assert last is not None
    assert last.before is not None
    assert (last.date, last.before.date) == ("2025-12-31", "2025-12-30")
    assert {case.workload.model for case in last.cases} == {"back", "gone", "refused", "same", "young"}


def test_the_difference_is_of_the_number_beside_it(tmp_path: Path) -> None:
    """What half a night lost counts as no pass in both; a device that lost all of it keeps what was known."""
    store = tmp_path / "store"
    night(store, 28, {"a": PASS, "b": PASS, "c": PASS, "d": ERROR})
    night(store, 28.1, {"a": PASS, "b": PASS}, NPU)
    assert "Works 5/6 pass 5/6 of those attempted" in _front(store)
    night(store, 29, {"a": PASS, "b": INFRA, "c": ERROR, "d": INFRA})
    night(store, 29.1, {"a": INFRA, "b": INFRA}, NPU)
    assert "Works 3/6 pass \N{MINUS SIGN}2 since 2025-12-30." in _front(store)


def test_a_machine_whose_clock_is_ahead_makes_no_night(tmp_path: Path) -> None:
    """What broke tonight elsewhere stays tonight's."""
    store = tmp_path / "store"
    night(store, 28, {"a": PASS, "b": PASS})
    night(store, 29, {"a": PASS, "b": ERROR})
    night(store, 34, {"a": PASS}, NPU)
    text = _front(store)
    assert "2025-12-31 Works 2/3 pass" in text
    assert "Changed on 2025-12-31 1 broke 0 fixed" in re.sub(",", "", text)


def test_two_builds_of_torch_on_one_day_are_one_night(tmp_path: Path) -> None:
    """Each has its snapshot; what either of them says is of the night."""
    store = tmp_path / "store"
    for hour, torch, model in ((1, "2.12.0", "a"), (3, "2.13.0", "b")):
        run = RunBuilder(f"run-{hour}", NOW - DAY + hour * 3_600)
        usual = environment("cpu")
        identity = (*(fact for fact in usual.identity if not fact[0].startswith("torch")), ("torch", torch))
        run.environments.append(replace(usual, identity=identity))
        case = Case(Workload("toy", model), EAGER, CPU)
        result(run, case, environment_id=run.environments[0].id)
        run.write(store)
    assert "1 device, torch 2.12.0 and 2.13.0, 2 models measured, 2025-12-31" in _front(store)


@pytest.fixture(scope="module")
def whole_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with every kind of page."""
    folder = tmp_path_factory.mktemp("front")
    store_of_every_page(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


@contextmanager
def _screen(browser: Any, width: int, height: int) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": width, "height": height})
    context.clock.install(time=datetime.fromtimestamp(NOW, timezone.utc))  # or the page is out of date
    try:
        yield context.new_page()
    finally:
        context.close()


def test_the_menu_folds_on_a_phone_and_opens_by_the_keyboard(site: Path, address: str, browser: Any) -> None:
    """Wide, its links stand there; narrow, they are behind one word."""
    with _screen(browser, 1280, 900) as page:
        page.goto(address + "index.html")
        assert page.get_by_role("link", name="Compatibility", exact=True).is_visible()
        assert not page.locator(".menu > summary").is_visible()
    with _screen(browser, 390, 844) as page:
        page.goto(address + "index.html")
        link = page.get_by_role("link", name="Compatibility", exact=True)
        assert not link.is_visible()
        page.locator(".menu > summary").focus()
        page.keyboard.press("Enter")
        link.wait_for(state="visible")
        link.click()
        page.wait_for_url("**/compatibility.html")


def test_ten_questions_take_two_clicks_at_most(
    whole_site: Path, browser: Any, serve: Callable[[Path], str]
) -> None:
    """The tasks of the benchmark, on a site with every kind of page."""
    benchmarks = str(Path(__file__).parents[2] / "benchmarks")
    sys.path.insert(0, benchmarks)
    try:
        import dashboard_tasks as tasks
    finally:
        sys.path.remove(benchmarks)
    asked, base = tasks.Asked("npusim", "cpu"), serve(whole_site)
    figures = [tasks.perform(browser, base, text, answer, asked) for text, answer in tasks.TASKS]
    assert len(figures) == 10
    assert [each for each in figures if not each.met] == []

"""What stopped a reader who had never seen these pages: dead links, absurd intervals, foreign words."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from page_text import words
from store_builder import CPU, EAGER, INDUCTOR, NOW, RunBuilder, result, timings, workloads

from torchgauge.dashboard import build_site
from torchgauge.dashboard.pages import number_text
from torchgauge.records import Case, Modifier, Status, Workload


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of one night of toys on one device, eager and compiled."""
    folder = tmp_path_factory.mktemp("first")
    run, rng = RunBuilder("only", NOW - 60), random.Random(1)
    for workload in workloads()[:4]:
        for configuration in (EAGER, INDUCTOR):
            median = 1e-3 if configuration == EAGER else 4e-4
            result(run, Case(workload, configuration, CPU), measurements=timings(rng, median, None, "cpu"))
    run.write(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


def test_each_link_within_a_page_has_its_place(first: Path) -> None:
    """A section that a first night does not have is not offered."""
    for page in first.glob("*.html"):
        html = page.read_text()
        places = set(re.findall(r'\bid="([^"]+)"', html))
        assert set(re.findall(r'href="#([^"]+)"', html)) <= places, page.name


def test_a_first_night_says_what_can_be_compared(first: Path) -> None:
    """Two configurations are two sides; a speed-up that no mean counts is not one that is missing."""
    assert "only its configurations can be compared" in words(first / "compare.html")
    front = words(first / "index.html")
    assert "no speed-up" not in front
    pictures = words(first / "pictures" / "index.html")
    assert "Models have results in 1 snapshot; a trend requires 2." in pictures


@pytest.mark.parametrize(
    ("page", "unit", "none"),
    [
        ("performance.html", "percent of the number", "1"),
        ("performance-previous.html", "percentage points", "0 %"),
    ],
)
def test_a_view_explains_its_own_numbers(first: Path, page: str, unit: str, none: str) -> None:
    """A change is not significant where its interval includes 0 %, a ratio where it includes 1."""
    text = words(first / page)
    assert f"95 % interval, in {unit}; n<6 means too few samples" in text
    assert f"not significant (interval includes {none})" in text


def test_the_interval_of_two_cases_is_no_number_of_seven_digits() -> None:
    """Two ratios far apart have an interval that says nothing."""
    assert number_text.spread(1_646_365.0) == "±>999%"
    assert number_text.spread(999.0) == "±999%"


@pytest.mark.parametrize("view", ["compatibility.html", "performance.html"])
def test_the_examples_of_queries_leave_room_for_their_meaning(address: str, browser: Any, view: str) -> None:
    """On a phone the meaning stands beside its example, not one letter below the other."""
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto(address + view)
    page.get_by_text("Query syntax").click()
    narrowest = page.evaluate(
        "() => Math.min(...[...document.querySelectorAll('.query-help dd')].map((each) => each.clientWidth))"
    )
    page.close()
    assert narrowest > 100


def test_a_phone_shows_what_the_codes_mean(address: str, browser: Any) -> None:
    """Nothing hovers there."""
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto(address + "compatibility.html")
    shown = page.locator(".statuses").inner_text()
    page.close()
    assert "ran, and the numbers are right" in shown


@pytest.mark.parametrize("view", ["compatibility.html", "performance.html"])
def test_every_square_of_the_compact_view_is_under_its_head(address: str, browser: Any, view: str) -> None:
    """A hatched one, whose machine failed, is no wider than the others."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address + view)
    page.get_by_role("button", name="Compact view").click()
    page.wait_for_selector(".matrix.compact tbody td.i")
    widths = page.evaluate(
        "() => [...document.querySelectorAll('.matrix.compact tbody td')].map((each) => each.offsetWidth)"
    )
    page.close()
    assert len(set(widths)) == 1


def test_a_phone_shows_whole_names_and_marks(tmp_path: Path, serve: Any, browser: Any) -> None:
    """Nothing hovers there; where a row is one line, the name is a title and the marks are in the tip."""
    name, run = "vit_base_patch16_siglip_gap_512_in21k", RunBuilder("only", NOW - 60)
    for configuration in (EAGER, INDUCTOR):
        case = Case(Workload("huggingface", name), configuration, CPU)
        result(run, case, Status.ERROR, modifiers=(Modifier.FLAKY, Modifier.DEGRADED), reason="by hand")
    run.write(tmp_path / "store")
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    page = browser.new_page(viewport={"width": 390, "height": 900})
    for view in ("compatibility.html", "performance.html"):
        page.goto(serve(tmp_path / "site") + view)
        cut = page.evaluate(
            "() => [...document.querySelectorAll('.matrix tbody :is(th, td, td a, td small)')].filter("
            "(each) => each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight + 1)"
            ".map((each) => each.outerHTML)"
        )
        assert not [each for each in cut if not each.startswith("<small")], view
        assert page.locator("tbody th a").get_attribute("title") == f"huggingface/{name}"
    page.close()


def test_the_signs_of_the_compact_view_are_explained(first: Path) -> None:
    """Where the letters are, too."""
    assert "Compact view: + better, \N{MINUS SIGN} worse, \N{MIDDLE DOT} a pass without" in words(
        first / "performance.html"
    )

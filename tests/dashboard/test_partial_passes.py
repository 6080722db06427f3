"""A pass that counts as none has one place in bars, chips, cells, counts and queries: apart from passes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from page_text import words
from store_builder import CPU, EAGER, NOW, RunBuilder, result

from torchgauge.dashboard import build_site
from torchgauge.dashboard.names import device_id
from torchgauge.records import Case, Modifier, Status, Workload

ENDS = {"fine": (), "fallen": (Modifier.DEGRADED,), "poser": (Modifier.OTHER_MODEL,),
        "blind": (Modifier.UNCHECKED,), "loud": (Modifier.UNSTEADY,)}  # fmt: skip
"""Models that all ended in the status pass, with their modifiers: two of them count."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of one run of them, and of one that failed."""
    folder = tmp_path_factory.mktemp("partial")
    run = RunBuilder("night", NOW - 600)
    for name, modifiers in ENDS.items():
        result(run, Case(Workload("toy", name), EAGER, CPU), modifiers=modifiers)
    result(run, Case(Workload("toy", "broken"), EAGER, CPU), Status.ERROR)
    run.write(folder / "store")
    report = build_site(folder / "store", folder / "site", now=NOW)
    assert (report.passed, report.planned) == (2, 6)
    return folder / "site"


@pytest.mark.parametrize("page", ["index.html", "compatibility.html", "device", "runs.html"])
def test_bar_chips_and_headline_say_the_same(made: Path, page: str) -> None:
    """Two of six pass, three are partial, on every page that counts."""
    path = made / (f"devices/{device_id('cpu')}.html" if page == "device" else page)
    html, text = path.read_text(), words(path)
    assert "2 pass, 3 partial, 1 err" in (text if page == "runs.html" else html)
    assert "5 pass" not in text + html
    if page != "runs.html":
        assert "2/6" in text
        bars = re.findall(r'<svg class="bar".*?</svg>', html, re.DOTALL)
        assert {each.count("<rect class") for each in bars} == {3}
    if page == "device":
        assert "pass 2 partial 3 err 1" in text


def test_cells_show_it_with_its_reason(made: Path) -> None:
    """Each with the mark that keeps it out; one whose times are in doubt is a pass."""
    page = (made / "compatibility.html").read_text()
    cells = re.findall(r"<td class=([a-z])><a [^>]*>(\w+)(?:<small>([^<]*)</small>)?", page)
    assert sorted(cells) == [
        ("e", "err", "unexpected"),
        ("p", "pass", ""),
        ("p", "pass", "unsteady"),
        ("q", "partial", "degraded"),
        ("q", "partial", "other_model"),
        ("q", "partial", "unchecked"),
    ]


def test_what_leaves_the_site_says_the_same(made: Path) -> None:
    """The badge, and the histories that queries load."""
    badge = json.loads((made / "badge" / f"{device_id('cpu')}.json").read_bytes())
    assert badge["message"].startswith("pass 2/6")
    history = json.loads((made / "latest" / f"history-{device_id('cpu')}.json").read_bytes())
    assert sorted(history["status"]) == ["e", "p", "p", "q", "q", "q"]


@pytest.mark.parametrize(
    ("query", "rows"),
    [("pass", 2), ("partial", 3), ("degraded", 1), ("fail", 1), ("seq(partial)", 3), ("not(pass)", 4)],
)
def test_a_query_finds_what_the_headline_counts(
    made: Path, serve: Callable[[Path], str], browser: Any, query: str, rows: int
) -> None:
    """The words of the legend."""
    page = browser.new_page()
    page.goto(f"{serve(made)}compatibility.html?q={query}")
    page.locator(f"output:text-matches('^{rows} of 6')").wait_for(state="attached")
    page.close()

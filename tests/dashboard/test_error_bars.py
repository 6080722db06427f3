"""No drawing of measured numbers without their intervals: what has none is not drawn, and that is said."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import doubt_store
import pytest
from page_text import words
from store_builder import CPU, DAY, EAGER, INDUCTOR, NOW, RunBuilder, result, timings

from torchgauge.dashboard import build_site
from torchgauge.records import Case, Measurement, Workload

READY = ".plot[data-ready]"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nights of a model that was timed once a night, and of one with samples enough but for a night."""
    folder, rng = tmp_path_factory.mktemp("bars"), random.Random(2)
    for night in range(3):
        run = RunBuilder(f"2025122{night}T020000Z-aaaaaaaa", NOW - (3 - night) * DAY)
        for model in ("once", "often"):
            for configuration in (EAGER, INDUCTOR):
                speedup = None if configuration is EAGER else 1.3
                found = timings(rng, 0.01, speedup, "cpu")
                if model == "once" or (night == 1 and configuration is EAGER):
                    found[0] = Measurement("latency", "s", (0.01 + 0.001 * night,))
                case = Case(Workload("timm", model, "inference", batch=8), configuration, CPU)
                result(run, case, measurements=found)
        run.write(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


def _model(site: Path, name: str) -> Path:
    (path,) = site.glob(f"models/timm-{name}-*.html")
    return path


def test_a_series_of_single_samples_has_no_drawing_and_says_why(site: Path) -> None:
    page = _model(site, "once").read_text()
    assert '<svg class="spark"' not in page
    assert words(page).count("not drawn: 3 numbers, none with an interval") == 2


def test_a_number_without_an_interval_breaks_its_line(site: Path) -> None:
    """The two others stand apart, each with its interval, and the label says what is missing."""
    page = _model(site, "often").read_text()
    labels = re.findall(r'<svg class="spark".*?aria-label="([^"]*)".*?</svg>', page)
    assert len(labels) == 2
    assert "2 numbers between" in labels[0]
    assert labels[0].endswith("1 without an interval not drawn")
    assert "3 numbers between" in labels[1]
    drawings = re.findall(r'<svg class="spark".*?</svg>', page)
    assert re.search(r'<path d="M\d+ \d+ \d+ \d+ M\d+ \d+ \d+ \d+ "/>', drawings[0])
    assert 'class="band"' in drawings[1]


def test_a_chart_of_single_samples_is_a_table_with_the_reason(
    site: Path, serve: Callable[[Path], str], browser: Any
) -> None:
    page = browser.new_page()
    page.goto(serve(site) + _model(site, "often").relative_to(site).as_posix())
    page.locator("[data-chart]").scroll_into_view_if_needed()
    page.wait_for_selector(READY)
    assert "1 numbers without an interval are not drawn" in page.locator("[data-chart]").inner_text()
    page.locator("select[name=metric]").select_option("compile_cold")
    page.get_by_text("Not drawn: these numbers have no interval").wait_for()
    page.locator(".chart-figure table").wait_for()
    assert page.locator(".plot").count() == 0
    page.close()


def test_a_number_in_doubt_has_an_error_bar_in_the_chart(
    tmp_path: Path, serve: Callable[[Path], str], browser: Any
) -> None:
    """A hollow mark apart from the line, with its interval."""
    site = tmp_path / "site"
    store = doubt_store.doubtful_store(tmp_path / "store", 1.2)
    build_site(store, site, now=NOW)
    page = browser.new_page()
    page.goto(serve(site) + _model(site, "loud").relative_to(site).as_posix())
    page.locator("[data-chart]").scroll_into_view_if_needed()
    page.wait_for_selector(READY)
    bars = page.evaluate(
        "document.querySelector('.plot').data.filter((one) => one.error_y && one.marker.symbol)"
        ".map((one) => [one.marker.symbol, one.error_y.array, one.error_y.arrayminus])"
    )
    assert len(bars) == 2
    for (symbol,), (above,), (below,) in bars:
        assert symbol in ("circle-open", "arrow-up-open")
        assert (above > 0 and below > 0) == (symbol == "circle-open")
    assert any(symbol == "circle-open" for (symbol,), _, _ in bars)
    page.close()

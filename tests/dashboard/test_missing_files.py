"""A site that lacks a file says so: each script, style and file of data of a page is taken away in turn."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

QUERY = "suite:timm seq(pass fail) latency>1us"


def _ask(page: Any) -> None:
    """Whatever a reader can do with a matrix, so that all that it may load is asked for."""
    page.locator("tbody td").first.hover()
    field = page.get_by_label("Query")
    if field.count():
        field.fill(QUERY)
    bases = page.get_by_label("Baseline")
    if bases.count():
        bases.select_option(index=1)


def _nothing(page: Any) -> None:
    """What the page does by itself is all."""


def _draw(page: Any) -> None:
    """A chart of the first device."""
    chosen = page.locator("#explore select").first
    if chosen.count():
        chosen.select_option(index=1)


def _compare(page: Any) -> None:
    """Two sides, as the first button has them."""
    button = page.get_by_role("button", name="configuration vs configuration")
    if button.count():
        button.click()


PAGES: dict[str, tuple[str, Callable[[Any], None]]] = {
    "compatibility.html": ("[data-controls] input", _ask),
    "performance.html": ("[data-controls] input", _ask),
    "compare.html": ("#chooser button", _compare),
    "trends.html": ("#explore select", _draw),
    "about.html": ("button.copy", _nothing),
    "index.html": ("h1", _nothing),
}
"""Each page with what it has when its scripts run, and what is done with it then."""


def _loaded(browser: Any, address: str, name: str) -> list[str]:
    """The files of the site that a page loads, beside itself."""
    context = browser.new_context()
    page = context.new_page()
    found: list[str] = []
    page.on("request", lambda request: found.append(urlsplit(request.url).path.removeprefix("/")))
    page.goto(address + name)
    ready, ask = PAGES[name]
    page.locator(ready).first.wait_for(state="attached")
    ask(page)
    page.wait_for_load_state("networkidle")
    context.close()
    return sorted({path for path in found if path != name and path.endswith((".js", ".css", ".json"))})


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_which_of_its_files_is_missing(
    serve: Callable[..., str], site: Path, browser: Any, name: str
) -> None:
    """By its name, and what was written before stays readable.

    The server has the file no more: an answer of the browser's own, on whose way a page is closed, can hold
    that up for ever.
    """
    absent: set[str] = set()
    address = serve(site, absent)
    files = _loaded(browser, address, name)
    ready, ask = PAGES[name]
    assert {"static/style.css", "static/start.js"} < set(files)
    if ask is _ask:
        assert {"static/query.js", "static/holds.js", "static/tip.js", "static/numbers.js"} < set(files)
        assert len([path for path in files if path.startswith("latest/")]) >= 3
    for missing in files:
        absent.clear()
        absent.add(missing)
        context = browser.new_context()  # none remembers the file
        page = context.new_page()
        page.goto(address + name)
        written = page.locator("tbody tr").count()
        if missing != "static/start.js":
            page.locator(f"{ready}, [role=alert]").first.wait_for(state="attached")
            ask(page)
        page.get_by_text(re.compile(re.escape(missing))).first.wait_for()
        if ask is _ask:
            assert written == 24
            assert page.locator("tbody tr").count() >= 3
            assert page.locator("tbody td").first.inner_text().strip()
        context.close()

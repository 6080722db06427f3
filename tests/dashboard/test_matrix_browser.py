"""The matrices in a browser: the compact view, the choice of columns, facts of a cell, few elements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from patience import held, let_through, until
from site_files import generator, small_shape

from torchgauge.dashboard import build_site

MATRICES = ("compatibility.html", "performance.html")

_IN_VIEW = """
() => [...document.querySelectorAll("[data-matrix] tbody td")].filter((cell) => {
  const { left, top, right, bottom } = cell.getBoundingClientRect();
  if (left < 0 || top < 0 || right > innerWidth || bottom > innerHeight) return false;
  const found = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  return found !== null && cell.contains(found);
}).length
"""

_SQUARES = """
() => [...document.querySelectorAll("[data-matrix] tbody td")].map((cell) => {
  const { width, height } = cell.getBoundingClientRect();
  const sign = getComputedStyle(cell.querySelector("a") ?? cell, "::before").content;
  return [cell.className, sign, width, height];
})
"""

_NAMES = """
() => Object.fromEntries([...document.querySelectorAll("[data-matrix] tbody td")].map((cell) =>
  [cell.className[0], getComputedStyle(cell.querySelector("a") ?? cell, "::before").content.split('"')[1]]))
"""


@contextmanager
def _page(browser: Any, **options: Any) -> Iterator[Any]:
    """A page at 1440 x 900 that fails its test for a complaint of the console or a script."""
    complaints: list[str] = []
    context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        yield page
        assert complaints == []
    finally:
        context.close()


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory, serve: Callable[[Path], str]) -> str:
    """Where a site with 24 columns and 90 rows is served, the size of which makes a matrix scroll."""
    folder = tmp_path_factory.mktemp("wide")
    generator().generate(folder, small_shape(nights=3, devices=4, models=90, configurations=6))
    build_site(folder / "store", folder / "site")
    return serve(folder / "site")


def _ready(page: Any, address: str) -> None:
    page.goto(address)
    page.locator("table[role=grid]").wait_for()
    page.get_by_text(re.compile(r"^\d+ (of \d+ )?rows")).wait_for()


_LAYERS = """
[...document.querySelectorAll("[data-matrix] tbody td, [data-matrix] tbody td *")].filter((each) => {
  const { position, overflow } = getComputedStyle(each);
  return position !== "static" || overflow !== "visible";
}).map((each) => each.outerHTML)
"""
"""What would be painted as a layer or a clip of its own: in every cell that takes longer than all else."""


@pytest.mark.parametrize("name", MATRICES)
def test_the_compact_view_shows_a_thousand_cells_at_once(wide: str, browser: Any, name: str) -> None:
    """At 1440 x 900: squares of 14 px, each inside the screen and covered by nothing."""
    with _page(browser) as page:
        _ready(page, wide + name)
        before = page.evaluate(_IN_VIEW)
        page.get_by_role("button", name="Compact view").click()
        page.locator("table.compact").wait_for()
        assert "view=compact" in page.url
        assert page.evaluate(_IN_VIEW) >= 1_000 > before
        assert page.evaluate("document.querySelectorAll('*').length") <= 5_000
        assert page.evaluate(_LAYERS) == []
        squares = page.evaluate(_SQUARES)
        assert {(width, height) for _, _, width, height in squares} == {(14, 14)}
        page.go_back()
        until(page, "!document.querySelector('table.compact')")


def test_a_square_says_its_status_without_colour(address: str, browser: Any) -> None:
    """Each status has a letter of its own, and the name of a cell is its status in words."""
    with _page(browser, forced_colors="active") as page:
        _ready(page, address + "compatibility.html?view=compact")
        letters = page.evaluate(_NAMES)
        assert set(letters) == set("pqaecotusin")
        assert len(set(letters.values())) == 11
        tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
        names = {node["name"]["value"] for node in tree if node["role"]["value"] == "gridcell"}
        assert {"pass", "partial degraded", "crash new unexpected", "skip expected"} <= names


def test_heat_has_a_sign_where_the_interval_excludes_one(address: str, browser: Any) -> None:
    """Plus is better and minus worse; what has no colour has no sign."""
    with _page(browser) as page:
        _ready(page, address + "performance.html?view=compact")
        seen = set()
        for look, content, _, _ in page.evaluate(_SQUARES):
            heat = re.search(r" ([bw])\d", look)
            sign = content.split('"')[1]
            seen.add(sign)
            assert (sign in "+\u2212") == bool(heat), look
            assert not heat or sign == {"b": "+", "w": "\u2212"}[heat[1]]
        assert {"+", "\u2212", "\u00b7"} <= seen


def test_configurations_are_chosen_like_devices(address: str, browser: Any) -> None:
    """A box for each; the address keeps it; hidden devices and the order hold beside it."""
    with _page(browser) as page:
        _ready(page, address + "compatibility.html?sort=worst&hide=cpu")
        shown = page.locator("tbody tr:first-child td:visible")
        assert shown.count() == 2
        page.get_by_label("inductor", exact=True).uncheck()
        until(page, "location.search.includes('without=inductor')")
        assert shown.count() == 1
        heads = page.locator("thead th[data-anchor]:visible")
        assert [heads.count(), heads.first.get_attribute("data-device")] == [1, "npusim"]
        assert page.get_by_role("button", name="Worst rows first").get_attribute("aria-pressed") == "true"
        _ready(page, page.url)
        assert page.locator("tbody tr:first-child td:visible").count() == 1
        assert not page.get_by_label("inductor", exact=True).is_checked()
        assert page.get_by_label("eager", exact=True).is_checked()
        assert not page.get_by_label("cpu", exact=True).is_checked()
        page.get_by_label("cpu", exact=True).check()
        until(page, "!location.search.includes('hide=')")
        assert page.locator("tbody tr:first-child td:visible").count() == 2
        page.go_back()
        page.go_back()
        until(page, "!location.search.includes('without=')")
        until(page, "document.querySelectorAll('tbody tr:first-child td:not([hidden])').length === 2")


@pytest.mark.parametrize("view", ["", "?view=compact"])
def test_the_keyboard_alone_reaches_and_reads_a_cell(address: str, browser: Any, view: str) -> None:
    """Tab, then arrows; the focus shows what is known; Escape closes it, Enter follows the link."""
    with _page(browser) as page:
        _ready(page, address + "compatibility.html" + view)
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("Boolean(document.activeElement.closest('tbody'))"):
                break
        row = "document.activeElement.closest('tr')?.textContent ?? ''"
        for _ in range(24):
            page.keyboard.press("ArrowDown")
            if "vit_tiny" in page.evaluate(row):
                break
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        tip = page.get_by_role("tooltip")
        tip.get_by_text("aten::_fused_sdp is not implemented").wait_for()
        text = tip.inner_text()
        assert "timm/vit_tiny_patch16_224 inference" in text
        assert "npusim \u00b7 eager" in text
        assert "err new unexpected" in text
        assert "Measured 2026-01-01 10:01 UTC" in text
        assert "torch 2.13.0+cpu" in text
        focus = page.evaluate(
            "[document.activeElement.getAttribute('aria-describedby'), document.activeElement.localName]"
        )
        assert focus == ["cell-tip", "a"]
        tree = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
        focused = [
            node
            for node in tree
            if any(p["name"] == "focused" and p["value"]["value"] for p in node.get("properties", ()))
        ]
        (cell,) = [node for node in focused if node["role"]["value"] == "link"]
        assert cell["name"]["value"] == "err new unexpected"
        assert "aten::_fused_sdp is not implemented" in cell["description"]["value"]
        page.keyboard.press("Escape")
        tip.wait_for(state="hidden")
        page.keyboard.press("Enter")
        page.wait_for_url("**/models/*#*")
        anchor = page.evaluate("location.hash.slice(1)")
        assert page.locator(f"#{anchor}").count() == 1


def test_pointing_at_a_number_shows_its_interval_and_its_doubt(address: str, browser: Any) -> None:
    """Status, age, build and interval; nothing is only in a title."""
    with _page(browser) as page:
        _ready(page, address + "performance-latency.html")
        cell = page.locator("tbody td.p").first
        cell.hover()
        tip = page.get_by_role("tooltip")
        tip.get_by_text("half of the 95 % interval").wait_for()
        told = tip.inner_text()
        assert re.search(r"latency [\d.]+ ms \u00b1[\d.]+%", told)
        assert re.search(r"Measured 2026-01-01 10:01 UTC, \d+ \w+ ago", told)
        assert "torch 2.13.0+cpu" in told
        page.locator("h1").hover()
        tip.wait_for(state="hidden")


def test_a_cell_pointed_at_while_the_tips_are_on_their_way_has_its_own(address: str, browser: Any) -> None:
    """The heading asks for their file; what the pointer rests on when it comes is told of."""
    with _page(browser) as page:
        _ready(page, address + "compatibility.html")
        late = held(page, "**/tip.js", 1, page.locator("thead th").first.hover)
        page.locator("tbody tr").first.locator("td").first.hover()
        let_through(page, late)
        page.get_by_role("tooltip").get_by_text("Measured").wait_for()


def test_a_row_far_away_is_reached_by_keyboard(wide: str, browser: Any) -> None:
    """Control and End goes to the last row, which was not in the page before; a query starts over."""
    with _page(browser) as page:
        _ready(page, wide + "compatibility.html")
        rows = int(re.match(r"\d+", page.inner_text("output"))[0])
        page.locator("tbody th a").first.focus()
        page.keyboard.press("Control+End")
        until(page, f"document.activeElement.closest('tr')?.ariaRowIndex === '{rows + 1}'")
        page.keyboard.press("ArrowUp")
        until(page, f"document.activeElement.closest('tr')?.ariaRowIndex === '{rows}'")
        page.get_by_label("Query").fill("net001")
        page.get_by_text(re.compile(r"^1 of \d+ rows")).wait_for()
        assert page.locator("tbody tr:visible").count() == 1
        page.get_by_role("button", name="Show all").click()
        page.get_by_text(f"{rows} rows", exact=True).wait_for()
        until(page, "document.querySelectorAll('tbody tr').length > 30")
        assert page.locator("table [tabindex='0']").count() == 1


def test_paper_gets_all_rows_though_the_screen_has_few(wide: str, browser: Any) -> None:
    """Printing puts every row into the page, and they leave it again."""
    with _page(browser) as page:
        _ready(page, wide + "compatibility.html")
        rows = int(re.match(r"\d+", page.inner_text("output"))[0])
        assert page.locator("tbody tr").count() < rows
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("tbody tr").count() == rows
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.locator("tbody tr").count() < rows


def test_the_link_to_new_failures_finds_exactly_those_of_the_overview(
    wide: str, address: str, browser: Any
) -> None:
    """What the overview counts as new is what ``new`` finds, cell by cell."""
    with _page(browser) as page:
        for site in (wide, address):
            page.goto(site + "index.html")
            told = page.locator("main").inner_text()
            new = sum(
                int(found) for found in re.findall(r"(?:by cause|not measured since): (\d+) in all", told)
            )
            assert new > 0
            page.goto(site + "compatibility.html?q=new")
            page.locator("output", has_text=re.compile(rf"^\d+ of \d+ rows, {new} cells?$")).wait_for()


def test_the_configurations_of_a_device_fold_into_one_column(address: str, browser: Any) -> None:
    """It counts those that pass, is as bad as the worst, leads there, and names each where one looks."""
    with _page(browser) as page:
        _ready(page, address + "compatibility.html?q=vit_tiny")
        page.get_by_role("button", name="Fold configurations").click()
        until(page, "document.querySelectorAll('thead th[data-anchor]:not([hidden])').length === 2")
        cells = page.locator("tbody tr td:visible")
        assert cells.all_text_contents() == ["2/2", "0/2err", "2/2", "2/2"]
        page.get_by_role("button", name="npusim").click()
        until(page, "document.querySelector('tbody td:not([hidden])').textContent === '2/2'")
        assert "e" in page.locator("tbody tr:first-child td:visible").nth(1).get_attribute("class").split()
        page.locator("tbody tr:first-child td:visible").nth(1).hover()
        tip = page.get_by_role("tooltip")
        tip.get_by_text("inductor: err new unexpected").wait_for()
        assert "eager: err new unexpected" in tip.inner_text()
        _ready(page, page.url)
        assert page.locator("tbody tr td:visible").all_text_contents()[1] == "0/2err"
        page.get_by_role("button", name="Fold configurations").click()
        until(page, "document.querySelectorAll('thead th[data-anchor]:not([hidden])').length === 4")
        assert page.locator("tbody tr:first-child td:visible").all_text_contents()[2] == "errnew unexpected"


def test_few_elements_stand_in_the_page_until_one_scrolls(wide: str, browser: Any) -> None:
    """5,000 at most, however many rows there are; scrolling brings every row, and the count stays."""
    with _page(browser) as page:
        _ready(page, wide + "compatibility.html")
        rows = int(re.match(r"\d+", page.inner_text("output"))[0])
        counts = [page.evaluate("document.querySelectorAll('*').length")]
        seen: set[str] = set()
        reached = -1
        while True:
            seen |= set(page.locator("tbody th a").evaluate_all("(links) => links.map((link) => link.hash)"))
            at = page.evaluate("document.querySelector('.scroll:has([data-matrix])').scrollTop")
            if at == reached:
                break
            reached = at
            last = "document.querySelector('tbody tr:last-child').ariaRowIndex"
            before = page.evaluate(last)
            page.evaluate("document.querySelector('.scroll:has([data-matrix])').scrollBy(0, 400)")
            until(page, f"{last} !== '{before}' || {last} === '{rows + 1}'")
            counts.append(page.evaluate("document.querySelectorAll('*').length"))
        assert len(seen) == rows >= 90
        assert max(counts) <= 5_000, counts

"""Pages from disk, without scripts, on paper, on a phone and by keyboard: nothing is lost on the way."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import subject_store
from patience import held, let_through, until
from store_builder import NOW

from torchgauge.dashboard import build_site

_TOO_WIDE = """
() => [...document.querySelectorAll("body *")].filter((node) =>
  node.getBoundingClientRect().right > 391 && !node.closest(".scroll, .views, pre, svg, .unseen, .skip")
).map((node) => `${node.localName}.${node.className}`).slice(0, 5)
"""

_TEXT = """
() => { const copy = document.querySelector("main").cloneNode(true);
        for (const node of copy.querySelectorAll("noscript")) node.remove();
        return copy.textContent; }
"""

_FOCUS = """
() => { const node = document.activeElement;
        if (node === window.before) window.stuck = (window.stuck ?? 0) + 1;
        window.before = node;
        return node === document.body ? null : `${node.localName}#${node.id} ${node.textContent.trim()}`; }
"""

_OUTLINE = """
() => { const style = getComputedStyle(document.activeElement);
        return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2; }
"""


@pytest.fixture(scope="module")
def whole_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with every kind of page, without charts."""
    folder = tmp_path_factory.mktemp("offline")
    subject_store.store_of_every_page(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


def _kinds(site: Path) -> list[str]:
    found = [path.name for path in sorted(site.glob("*.html"))]
    for folder in sorted(path for path in site.iterdir() if path.is_dir()):
        found += [path.relative_to(site).as_posix() for path in sorted(folder.rglob("*.html"))[:2]]
    return found


@contextmanager
def _page(browser: Any, **options: Any) -> Iterator[Any]:
    """A page that fails its test for a complaint of the console, save those about files read from disk."""
    complaints: list[str] = []
    context = browser.new_context(**options)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        yield page
        assert [text for text in complaints if "file://" not in text and "ERR_FAILED" not in text] == []
    finally:
        context.close()


def test_every_page_from_disk_has_its_tables_with_and_without_scripts(whole_site: Path, browser: Any) -> None:
    """Browsers load no modules from disk: the page says the same, and offers nothing that would not work."""
    texts: dict[tuple[str, bool], str] = {}
    for scripts in (True, False):
        with _page(browser, java_script_enabled=scripts) as page:
            for name in _kinds(whole_site):
                page.goto((whole_site / name).as_uri())
                texts[name, scripts] = re.sub(r"\s+", " ", page.evaluate(_TEXT))
                shown = page.locator("main button:visible, main input:visible, main select:visible")
                assert shown.count() == 0, (name, scripts)
    for name in _kinds(whole_site):
        assert texts[name, True] == texts[name, False], name
        assert len(texts[name, True]) > 100, name


def test_links_from_disk_lead_to_files(whole_site: Path, browser: Any) -> None:
    """Every link of the navigation, then a cell of the matrix, as somebody without a server follows them."""
    with _page(browser, java_script_enabled=False) as page:
        page.goto((whole_site / "index.html").as_uri())
        for place in range(page.locator("header nav a").count()):
            link = page.locator("header nav a").nth(place)
            leads = link.evaluate("each => each.href")
            assert leads.startswith(whole_site.as_uri())
            with page.expect_navigation(url=leads):  # the page before has such a link and heading too
                link.click()
            assert page.locator("header nav a[aria-current]").count() == 1, page.url
            assert page.locator("h1").count() == 1, page.url
        page.goto((whole_site / "compatibility.html").as_uri())
        page.locator("td.e a").first.click()
        page.wait_for_url(re.compile("#"))
        anchor = page.url.partition("#")[2]
        assert page.locator(f"#{anchor}").is_visible()


def test_every_page_fits_a_phone(whole_site: Path, browser: Any, serve: Callable[[Path], str]) -> None:
    """At 390 px nothing reaches over the edge but what scrolls in a region of its own."""
    base = serve(whole_site)
    with _page(browser, viewport={"width": 390, "height": 800}, has_touch=True) as page:
        for name in _kinds(whole_site):
            page.goto(base + name)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
            assert page.evaluate(_TOO_WIDE) == [], name


def test_forced_colours_leave_every_status_its_text(
    whole_site: Path, browser: Any, serve: Callable[[Path], str]
) -> None:
    """Where the system chooses the colours, codes stand in every cell and charts keep their lines."""
    base = serve(whole_site)
    with _page(browser, forced_colors="active", color_scheme="dark") as page:
        for name in ("compatibility.html", "operators.html", "checks.html"):
            page.goto(base + name)
            cells = page.locator("main tbody td:not(.z):visible").all_text_contents()
            assert cells, name
            assert [text for text in cells if not text.strip()] == [], name
        page.goto(base + "index.html")
        strokes = page.evaluate(
            "[...document.querySelectorAll('svg path')].map((each) => getComputedStyle(each).stroke)"
        )
        grounds = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert grounds not in strokes


def test_every_control_is_reached_by_tab_and_its_focus_is_seen(
    whole_site: Path, browser: Any, serve: Callable[[Path], str]
) -> None:
    """Tab walks on and never sticks; the first stop skips to the content; each stop has an outline."""
    base = serve(whole_site)
    with _page(browser) as page:
        for name, made in (
            ("compatibility.html", "table[role=grid]"),
            ("compare.html", "#chooser button"),
            ("regressions.html", "h1"),
            ("devices/index.html", "h1"),
        ):
            page.goto(base + name)
            page.locator(made).first.wait_for()  # what is made anew loses the focus
            seen = []
            for _ in range(24):
                page.keyboard.press("Tab")
                where = page.evaluate(_FOCUS)
                if where is None:
                    break
                seen.append(where)
                assert page.evaluate(_OUTLINE), (name, where)
            assert seen[0].startswith("a# Skip"), name
            assert len(seen) > 12, name
            assert page.evaluate("window.stuck ?? 0") == 0, (name, seen)


def test_back_and_forward_restore_a_comparison(
    whole_site: Path, browser: Any, serve: Callable[[Path], str]
) -> None:
    """Each choice is a step; the address alone brings it back."""
    base = serve(whole_site)
    with _page(browser) as page:
        page.goto(base + "compare.html")
        page.get_by_role("button", name="configuration vs configuration").click()
        page.locator("#result h2, #result table, #result .notice").first.wait_for()
        first, text = page.evaluate("location.href"), page.locator("#result").inner_text()
        page.get_by_role("button", name="device vs device").click()
        page.wait_for_url(lambda url: url != first)
        page.go_back()
        page.wait_for_url(first)
        until(page, f"document.querySelector('#result').innerText === {json.dumps(text)}")
        page.goto("about:blank")
        page.goto(first)
        page.locator("#result h2, #result table, #result .notice").first.wait_for()
        assert page.locator("#result").inner_text() == text


def test_a_comparison_has_one_order_whatever_arrives_first(
    whole_site: Path, browser: Any, serve: Callable[[Path], str]
) -> None:
    """Rows that differ alike stand in the order of the devices, also where one's files come late."""
    newest = json.loads((whole_site / "manifest.json").read_bytes())["snapshots"][-1]["id"]
    devices = json.loads((whole_site / f"snapshots/{newest}/environments.json").read_bytes())["devices"]
    assert len(devices) > 1
    address = f"{serve(whole_site)}compare.html?a={newest}&b={newest}&ac=eager&bc=inductor"
    found = set()
    for last_first in (False, True):
        with _page(browser) as page:
            cases = held(page, "**/cases/*.json", len(devices), lambda: page.goto(address))
            let_through(page, sorted(cases, key=lambda route: route.request.url, reverse=last_first))
            page.locator("#result h2").wait_for()
            found.add(page.locator("#result").inner_text())
    assert len(found) == 1


def test_paper_has_the_whole_matrix(whole_site: Path, browser: Any, tmp_path: Path) -> None:
    """Printed, nothing is cut by a region that scrolls, and controls are left out."""
    with _page(browser, java_script_enabled=False) as page:
        page.goto((whole_site / "compatibility.html").as_uri())
        page.emulate_media(media="print")
        cut = page.evaluate(
            "[...document.querySelectorAll('.scroll')].filter((each) => getComputedStyle(each).overflowY"
            " !== 'visible' && each.scrollHeight > each.clientHeight + 1).length"
        )
        assert cut == 0
        assert page.locator("header nav").is_hidden()
        page.pdf(path=tmp_path / "matrix.pdf")
        assert (tmp_path / "matrix.pdf").stat().st_size > 20_000

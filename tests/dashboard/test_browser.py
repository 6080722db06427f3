"""The site in a real browser: readable without scripts, safe with hostile text, usable on a phone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from store_builder import (
    CPU,
    EAGER,
    INDUCTOR,
    NOW,
    RunBuilder,
    environment,
    failure,
    result,
    workloads,
)

from torchgauge.dashboard import build_site
from torchgauge.records import Accuracy, Calibration, Case, DeviceTarget, Status, Workload
from torchgauge.results.hostile_text import visible

HOSTILE = (
    "<script>window.pwned=1</script>",
    '"><img src=x onerror=window.pwned=1>',
    "' onmouseover='window.pwned=1",
    "{{ 7*7 }}{% raw %}",
    "</code></pre></details><h1>owned</h1>",
    "<a href=javascript:alert(1)>click</a>",
    "../../../etc/passwd",
    "\u202egnp.exe\u202c",
    "\x1b[31mred\x1b[0m\x00",
    "=cmd|'/c calc'!A1",
    "&lt;b&gt; &amp; 日本語 🦜",
)

_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (e) => window.violations.push(e.violatedDirective));
"""

_CONTRAST = """
() => {
  const channel = (c) => { c /= 255; return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const bad = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !node.getClientRects().length || node.matches(".skip")) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(ground(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push([node.className, node.textContent.trim().slice(0, 30), ratio.toFixed(2)]);
  }
  return bad;
}
"""

PAGES = ("index.html", "compatibility.html", "performance.html", "runs.html", "about.html")


@contextmanager
def _page(browser: Any, **options: Any) -> Iterator[Any]:
    """A fresh page that fails its test for a complaint of the console, the policy or a script."""
    complaints: list[str] = []
    context = browser.new_context(**options)
    context.add_init_script(_WATCH)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(request.url))
    try:
        yield page
        assert complaints == []
    finally:
        context.close()


def _pages(site: Path) -> list[str]:
    return [*PAGES, *sorted(f"models/{path.name}" for path in (site / "models").iterdir())]


@pytest.fixture(scope="module")
def hostile_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which every piece of text is an attack."""
    folder = tmp_path_factory.mktemp("hostile")
    run = RunBuilder("run", NOW - 600)
    for text in HOSTILE:
        device = DeviceTarget(text)
        run.environments.append(replace(environment(text), identity=((text, text),), notes=(text,)))
        run.calibrations.append(Calibration(text, text, None, None, None, absent=text))
        case = Case(Workload(text, text, text, text, shape=((text, 1),)), replace(EAGER, name=text), device)
        result(
            run, case, Status.ERROR, reason=text, exit=text, teardown=text, log=text, log_excerpt=text,
            reproduce=text, failure=replace(failure(text), type=text, frame=text, missing_op=text,
                                            fingerprint=text, traceback=text),
            accuracy=Accuracy(text, detail=text), facts=((text, text),), environment_id=text,
        )  # fmt: skip
    run.write(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


def test_hostile_text_is_shown_literally_and_does_nothing(
    hostile_site: Path, browser: Any, serve: Callable[[Path], str]
) -> None:
    """No script runs, no policy is violated, no element appears, and every character can be read."""
    base, titles = serve(hostile_site), []
    with _page(browser) as page:
        for name in _pages(hostile_site):
            page.goto(base + name)
            assert page.evaluate("[window.pwned, window.violations]") == [None, []], name
            assert page.evaluate("document.querySelectorAll('img, h1 ~ h1, a[href^=javascript]').length") == 0
            if name.startswith("models/"):
                titles.append(page.text_content("h1"))
    assert sorted(titles) == sorted(f"{visible(text)}/{visible(text)}" for text in HOSTILE)
    assert "\u202e" not in "".join(path.read_text() for path in hostile_site.rglob("*.html"))
    assert not [path for path in hostile_site.rglob("*") if not path.name.isascii() or "<" in path.name]


def test_hostile_text_in_a_spreadsheet_is_text(hostile_site: Path) -> None:
    """No cell of a CSV file begins like a formula."""
    import csv

    for name in ("results.csv", "summaries.csv"):
        with (hostile_site / name).open(newline="") as file:
            cells = [cell for row in csv.reader(file) for cell in row]
        assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "-"))]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_has_contrast_and_breaks_no_policy(
    site: Path, address: str, browser: Any, scheme: str
) -> None:
    """Text has a contrast of 4.5 at least, and the console stays silent."""
    with _page(browser, color_scheme=scheme) as page:
        for name in _pages(site)[:6]:
            page.goto(address + name)
            assert page.evaluate("window.violations") == []
            assert page.evaluate(_CONTRAST) == [], name


def test_a_phone_needs_no_sideways_scrolling(
    site: Path, hostile_site: Path, address: str, browser: Any, serve: Callable[[Path], str]
) -> None:
    """At 390 px the page is as wide as the screen; matrices scroll in regions that the keyboard reaches."""
    hostile = serve(hostile_site)
    with _page(browser, viewport={"width": 390, "height": 800}) as page:
        for name in [
            *(address + n for n in _pages(site)[:6]),
            *(hostile + n for n in _pages(hostile_site)[:9]),
        ]:
            page.goto(name)
            assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
            assert (
                page.evaluate("document.querySelectorAll('.scroll:not([tabindex=\"0\"][aria-label])').length")
                == 0
            )


def test_the_site_can_be_read_without_scripts_and_from_disk(site: Path, browser: Any) -> None:
    """The matrix is complete in the page itself; nothing that needs a script is offered."""
    with _page(browser, java_script_enabled=False) as page:
        page.goto((site / "compatibility.html").as_uri())
        assert page.locator("tbody tr").count() == 24
        assert page.locator("td.s .code").count() == 96
        assert page.locator("input, button").count() == 0
        page.locator("td.s-err a").first.click()
        assert "/models/" in page.url
        assert page.locator("pre.command").count() == 8
        assert "torchgauge run" in page.locator("pre.command").first.inner_text()


def test_the_filter_keeps_matching_rows_and_can_be_linked(address: str, browser: Any) -> None:
    """All words must occur; the query stands in the address; an empty result offers the way back."""
    with _page(browser) as page:
        page.goto(address + "compatibility.html")
        field = page.get_by_label("Filter rows")
        field.fill("resnet18 Training")
        assert page.locator("tbody tr:visible").count() == 1
        assert "1 of 24 rows" in page.inner_text(".controls")
        page.goto(page.url)
        assert page.locator("tbody tr:visible").count() == 1
        page.get_by_label("Filter rows").fill("nothing like this")
        assert "No row matches." in page.inner_text(".controls")
        page.get_by_role("button", name="Show all").click()
        assert page.locator("tbody tr:visible").count() == 24
        assert "?" not in page.url


def test_a_column_sorts_the_worst_first(address: str, browser: Any) -> None:
    """By keyboard too; a row without a number stays at the end either way."""
    with _page(browser) as page:
        page.goto(address + "compatibility.html")
        page.locator("button.sort", has_text="inductor").first.focus()
        page.keyboard.press("Enter")
        assert page.locator("tbody tr").first.locator("td").nth(1).inner_text().startswith("crash")
        page.goto(address + "performance.html")
        table = page.locator("table[data-matrix]").nth(1)
        for _ in range(2):
            table.locator("button.sort").nth(1).click()
            assert "no number" in table.locator("tbody tr").last.locator("td").first.inner_text()


def test_a_command_has_a_copy_button(site: Path, address: str, browser: Any) -> None:
    """The button copies exactly the command."""
    name = _pages(site)[-1]
    with _page(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(address + name)
        page.locator("button.copy").first.click()
        page.get_by_text("Copied").wait_for()
        command = page.locator("pre.command").first.inner_text().strip()
        assert page.evaluate("navigator.clipboard.readText()") == command


def test_forced_colours_keep_the_text_of_every_status(address: str, browser: Any) -> None:
    """Where the system takes the colours away, codes and borders remain."""
    with _page(browser, forced_colors="active") as page:
        page.goto(address + "compatibility.html")
        widths = page.evaluate(
            "[...document.querySelectorAll('td.s')].map(c => getComputedStyle(c).borderTopWidth)"
        )
        assert len(widths) == 96
        assert set(widths) == {"1px"}


def test_a_case_of_one_configuration_links_to_its_section(address: str, browser: Any) -> None:
    """A cell leads to the case that it stands for."""
    case = Case(workloads()[0], INDUCTOR, CPU)
    with _page(browser) as page:
        page.goto(address + "compatibility.html")
        row = page.locator("tbody tr", has_text="resnet18").first
        row.locator("td").nth(1).locator("a").click()
        anchor = page.evaluate("decodeURIComponent(window.location.hash.slice(1))")
        article = page.locator(f"article:has(#{anchor})")
        assert case.id in article.inner_text()

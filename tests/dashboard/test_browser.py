"""The site in a real browser: readable without scripts, safe with hostile text, usable on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from patience import held, let_through, until
from store_builder import (
    EAGER,
    NOW,
    RunBuilder,
    environment,
    failure,
    result,
)

from torchgauge.dashboard import build_site
from torchgauge.records import Accuracy, Calibration, Case, DeviceTarget, Status, Workload

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
    page.on(
        "requestfailed",
        lambda request: None if "ERR_ABORTED" in str(request.failure) else complaints.append(request.url),
    )  # what a page was still loading when it was left is no failure
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


def test_a_command_has_a_copy_button(site: Path, address: str, browser: Any) -> None:
    """The button copies exactly the command."""
    name = _pages(site)[-1]
    with _page(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(address + name)
        page.locator("button.copy").first.click()
        page.get_by_text("Copied").wait_for()
        command = page.locator("pre.command").first.inner_text().strip()
        assert page.evaluate("navigator.clipboard.readText()") == command


def _shown(page: Any) -> int:
    return int(page.locator("tbody tr:visible").count())


def test_a_query_keeps_matching_rows_and_can_be_linked(address: str, browser: Any) -> None:
    """Terms must all hold; the query stands in the address; an empty result offers the way back."""
    with _page(browser) as page:
        page.goto(address + "compatibility.html")
        field = page.get_by_label("Query")
        field.fill("resnet18 mode:training")
        page.get_by_text("1 of 24 rows").wait_for()
        assert _shown(page) == 1
        page.goto(page.evaluate("location.href"))
        page.get_by_text("1 of 24 rows").wait_for()
        assert _shown(page) == 1
        page.get_by_label("Query").fill("npusim:fail cpu:pass -cpu:fail")
        page.get_by_text("3 of 24 rows").wait_for()
        page.get_by_label("Query").fill("nothing-like-this")
        page.get_by_text("No row matches.").wait_for()
        page.get_by_role("button", name="Show all").click()
        page.get_by_text("24 rows", exact=True).wait_for()
        assert _shown(page) == 24
        assert "?" not in page.evaluate("location.href")


def test_a_mistake_in_a_query_is_told_and_hides_nothing(address: str, browser: Any) -> None:
    """The message has a place; the rows stay as they were; a mistake in a link does no harm either."""
    with _page(browser) as page:
        page.goto(address + "compatibility.html?q=resnet18")
        page.get_by_text("2 of 24 rows").wait_for()
        page.get_by_label("Query").fill("resnet18 gpu:error")
        page.get_by_text("At character 10:").wait_for()
        assert "cpu, npusim" in page.inner_text("output")
        assert page.get_by_label("Query").get_attribute("aria-invalid") == "true"
        assert _shown(page) == 2
        page.goto(address + "compatibility.html?q=or(%22%3Cscript%3E&sort=nothing&hide=%25,x&base=none")
        page.get_by_text("closing quotation mark").wait_for()
        assert _shown(page) == 24


def test_back_and_forward_walk_the_states(address: str, browser: Any) -> None:
    """What is typed in one go is one step; sorting and hiding are steps too."""
    with _page(browser) as page:
        page.goto(address + "compatibility.html")
        field = page.get_by_label("Query")
        field.press_sequentially("resnet18")
        page.get_by_text("2 of 24 rows").wait_for()
        field.press("Enter")
        page.get_by_role("button", name="Worst rows first").click()
        page.locator("button[aria-pressed=true]", has_text="Worst rows first").wait_for()
        page.get_by_label("npusim", exact=True).uncheck()
        until(page, "document.querySelector('thead th[data-anchor][data-device=npusim]').hidden")
        assert page.locator("tbody tr:visible").first.locator("td:visible").count() == 2
        assert "sort=worst" in page.evaluate("location.search")
        assert "hide=npusim" in page.evaluate("location.search")
        page.go_back()  # the address changes before the page does
        until(page, "!document.querySelector('thead th[data-anchor][data-device=npusim]').hidden")
        assert "hide" not in page.evaluate("location.search")
        assert page.locator("tbody tr:visible").first.locator("td:visible").count() == 4
        assert page.get_by_label("npusim", exact=True).is_checked()
        page.go_back()
        page.locator("button[aria-pressed=false]", has_text="Worst rows first").wait_for()
        assert "sort" not in page.evaluate("location.search")
        page.go_back()
        page.get_by_text("24 rows", exact=True).wait_for()
        assert field.input_value() == ""
        page.go_forward()
        page.get_by_text("2 of 24 rows").wait_for()
        assert field.input_value() == "resnet18"


def test_queries_load_numbers_and_histories_when_they_need_them(address: str, browser: Any) -> None:
    """Nothing is loaded before; afterwards sequences and comparisons answer, with units."""
    with _page(browser) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url.removeprefix(address)))
        page.goto(address + "compatibility.html")
        field = page.get_by_label("Query")

        def ask(query: str, answer: str) -> None:
            """With nothing asked in between, so that no answer is that to the query before."""
            field.fill("")
            page.get_by_text("24 rows", exact=True).wait_for()
            field.fill(query)
            page.locator("output").filter(has_text=re.compile(f"^{answer} of 24 rows")).wait_for()

        ask("npusim/eager:error", "1")
        assert not [name for name in asked if name.startswith("latest/")]
        ask("npusim/eager:seq(pass error)", "1")
        assert len([name for name in asked if name.startswith("latest/history-")]) == 2
        ask("cpu/eager:latency>40ms", r"[1-9]\d*")
        ask("cpu/eager:latency<=40ms", str(24 - _shown(page)))


def test_sorting_puts_the_worst_of_a_column_first(address: str, browser: Any) -> None:
    """By keyboard too; a row without a number stays at the end either way."""
    with _page(browser) as page:
        page.goto(address + "compatibility.html")
        head = page.locator("thead th", has_text="inductor").first
        head.locator("button").focus()
        page.keyboard.press("Enter")
        page.locator("thead th[aria-sort]").wait_for()
        assert head.get_attribute("aria-sort") == "descending"
        assert page.locator("tbody tr").first.locator("td").nth(1).inner_text().startswith("crash")
        page.goto(address + "performance-speedup.html")
        for direction in ("descending", "ascending"):
            page.locator("thead th button").nth(1).click()
            page.locator(f"thead th[aria-sort={direction}]").wait_for()
            assert page.locator("thead th").nth(1).get_attribute("aria-sort") == direction
            shown = page.locator("tbody tr td:nth-child(2)").all_inner_texts()
            numbers = [float(re.split(r"[x±\s]", found)[0]) for found in shown if found[:1].isdigit()]
            assert numbers == sorted(numbers, reverse=direction == "descending")
            assert len(numbers) >= 17
            assert not shown[-1][:1].isdigit()


def test_the_keyboard_walks_the_whole_matrix(address: str, browser: Any) -> None:
    """One tab stop; arrows, Home and End move; Enter opens the case, on pages of numbers as well."""
    with _page(browser) as page:
        for name in ("compatibility.html", "performance.html"):
            page.goto(address + name)
            page.wait_for_selector("table[role=grid]")
            assert page.locator("table [tabindex='0']").count() == 1
            page.locator("tbody th a").first.focus()
            for key in ("ArrowRight", "ArrowDown", "ArrowRight"):
                page.keyboard.press(key)
            place = "(() => { const c = document.activeElement.closest('td, th');"
            place += " return `${c?.cellIndex} ${c?.parentElement.rowIndex}`; })()"
            until(page, f"{place} === '2 2'")
            for key, reached in (("End", "4 2"), ("Control+End", "4 24"), ("Control+Home", "0 1")):
                page.keyboard.press(key)
                until(page, f"{place} === '{reached}'")
            page.keyboard.press("ArrowUp")
            until(page, "document.activeElement.tagName === 'BUTTON'")
            for key in ("ArrowDown", "ArrowRight"):
                page.keyboard.press(key)
            until(page, f"{place} === '1 1'")
            assert page.locator("table [tabindex='0']").count() == 1
            page.keyboard.press("Enter")
            page.wait_for_url("**/models/*")
            anchor = page.evaluate("location.hash.slice(1)")
            assert page.locator(f"#{anchor}").count() == 1, name


def test_a_baseline_is_any_column(address: str, browser: Any) -> None:
    """Ratios are to the chosen column of the same row, and back shows the page as it was built."""
    with _page(browser) as page:
        page.goto(address + "performance-latency.html")
        before = page.locator("tbody tr").first.locator("td").all_text_contents()
        page.get_by_label("Baseline").select_option(label="npusim · eager")
        until(page, r"/\dx/.test(document.querySelector('tbody td').textContent)")
        after = page.locator("tbody tr").first.locator("td").all_text_contents()
        numbers = [float(text.split("\u00b1")[0]) for text in before]
        for text, number in zip(after, numbers, strict=True):
            assert float(text.split("x")[0]) == pytest.approx(numbers[2] / number, rel=0.01)
        assert "baseline" in after[2]
        page.go_back()
        until(page, r"!/\dx/.test(document.querySelector('tbody td').textContent)")
        assert page.locator("tbody tr").first.locator("td").all_text_contents() == before


def test_what_is_chosen_while_numbers_are_on_their_way_holds(address: str, browser: Any) -> None:
    """On a slow line too: late numbers undo neither a query, an order nor a device that was hidden."""
    with _page(browser) as page:
        page.goto(address + "performance-latency.html")
        bases = page.get_by_label("Baseline")
        late = held(page, "**/latest/*.json", 1, lambda: bases.select_option(label="npusim \u00b7 eager"))
        page.locator("thead th button").nth(1).click()
        page.get_by_label("Query").fill("resnet18")
        page.get_by_label("npusim", exact=True).uncheck()
        until(page, "location.search.includes('hide=')")
        let_through(page, late)
        until(page, r"/\dx/.test(document.querySelector('tbody td').textContent)")
        page.locator("thead th[aria-sort=descending]").wait_for()
        page.get_by_text("2 of 24 rows").wait_for()
        assert _shown(page) == 2
        assert page.locator("tbody tr:visible").first.locator("td:visible").count() == 2
        assert page.get_by_label("Query").input_value() == "resnet18"
        chosen = page.evaluate("[...new URLSearchParams(location.search).keys()].sort()")
        assert chosen == ["base", "hide", "q", "sort"]


def test_a_baseline_that_cannot_be_loaded_is_said(address: str, browser: Any) -> None:
    """And stays said: the rows are counted before, and the page as it was built stays."""
    with _page(browser) as page:
        page.goto(address + "performance-latency.html")
        page.route("**/latest/*.json", lambda route: route.fulfill(body="{"))  # cut short
        page.get_by_label("Baseline").select_option(label="npusim \u00b7 eager")
        page.get_by_text("The baseline cannot be loaded").wait_for()
        page.evaluate("fetch('manifest.json').then((answer) => answer.json())")  # what was to follow has
        assert page.get_by_text("The baseline cannot be loaded").is_visible()
        assert page.get_by_label("Query").get_attribute("aria-invalid") != "true"
        assert not re.search(r"\dx", page.locator("tbody td").first.text_content())


def test_a_baseline_that_was_taken_back_does_not_come_late(address: str, browser: Any) -> None:
    """The numbers arrive when the page as it was built is wanted again: it stays."""
    with _page(browser) as page:
        page.goto(address + "performance-latency.html")
        before = page.locator("tbody tr").first.locator("td").all_text_contents()
        bases = page.get_by_label("Baseline")
        late = held(page, "**/latest/*.json", 1, lambda: bases.select_option(label="npusim \u00b7 eager"))
        bases.select_option(label="default")
        until(page, "!location.search.includes('base=')")
        let_through(page, late)
        assert page.locator("tbody tr").first.locator("td").all_text_contents() == before

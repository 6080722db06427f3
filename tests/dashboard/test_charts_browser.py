"""Charts, trends and comparisons in a real browser: drawn on demand, safe with hostile names, and right."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from patience import until
from site_files import generator, small_shape
from store_builder import NOW

from torchgauge.dashboard import build_site

_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (e) => window.violations.push(e.violatedDirective));
"""
READY = ".plot[data-ready]"


@contextmanager
def _page(browser: Any, **options: Any) -> Iterator[Any]:
    """A page that fails its test for any complaint, a breach of the policy or a foreign request."""
    complaints: list[str] = []
    context = browser.new_context(**options)
    context.add_init_script(_WATCH)
    page = context.new_page()
    page.asked = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "requestfailed",
        lambda request: None if "ERR_ABORTED" in str(request.failure) else complaints.append(request.url),
    )  # what a page was still loading when it was left is no failure
    page.on("request", lambda request: page.asked.append(request.url))
    try:
        yield page
        assert complaints == []
        if options.get("java_script_enabled", True):
            assert page.evaluate("[window.violations, window.pwned]") == [[], None]
        assert [
            url for url in page.asked if not url.startswith(("http://127.0.0.1:", "data:", "blob:"))
        ] == []
    finally:
        context.close()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve nights of two devices, of which the second is silent at the end."""
    folder = tmp_path_factory.mktemp("charts")
    generator().generate(folder, small_shape(nights=12, models=6, steps=3, silent=2))
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


@pytest.fixture(scope="module")
def base(made: Path, serve: Callable[[Path], str]) -> str:
    return serve(made)


def _manifest(site: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((site / "manifest.json").read_text())
    return found


def test_a_trend_is_drawn_when_it_is_chosen_and_never_before(made: Path, base: str, browser: Any) -> None:
    """plotly.js is asked for once, the address holds the choice, and back and forward follow it."""
    first, second = _manifest(made)["devices"]
    with _page(browser) as page:
        page.goto(f"{base}trends.html")
        page.wait_for_selector("#explore select")
        assert not [url for url in page.asked if "/assets/" in url or "/trends/" in url]
        page.select_option("#explore select[name=device]", first["id"])
        page.wait_for_selector(READY)
        assert len([url for url in page.asked if "/assets/plotly-" in url]) == 1
        assert f"device={first['id']}" in page.evaluate("location.search")
        page.select_option("#explore select[name=device]", second["id"])
        until(page, f"document.querySelector('figcaption')?.textContent.startsWith({second['name']!r})")
        page.go_back()
        until(page, f"document.querySelector('figcaption')?.textContent.startsWith({first['name']!r})")
        page.wait_for_selector(READY)
        assert page.evaluate("Object.keys(window.Plotly ?? {}).length") > 5
        assert page.locator(".modebar-btn, a[href*='plotly']").count() == 0


def test_the_table_behind_a_chart_has_the_numbers_of_the_files(made: Path, base: str, browser: Any) -> None:
    device = _manifest(made)["devices"][0]["id"]
    trend = json.loads((made / f"trends/{device}/0.core.json").read_text())
    line = next(one for one in trend["lines"] if one["configuration"] == "inductor" and not one["suite"])
    with _page(browser) as page:
        page.goto(f"{base}trends.html?device={device}&configuration=inductor")
        page.wait_for_selector(READY)
        page.click(".chart-figure summary >> nth=0")
        page.wait_for_selector(".chart-figure >> nth=0 >> tbody tr td")  # all at once, later than the click
        cells = page.locator(".chart-figure >> nth=0").locator("tbody tr td").all_text_contents()
    mean = line["metrics"]["latency"]
    assert len(cells) == len(trend["snapshots"])
    for text, median, n in zip(reversed(cells), mean["median"], mean["n"], strict=True):
        if median is None:
            assert not re.match(r"\d", text)
        else:
            assert float(text.split("x")[0]) == pytest.approx(1 / median, abs=6e-3)
            assert f"n {n} of" in text


def test_gaps_break_the_line_and_are_shaded(made: Path, base: str, browser: Any) -> None:
    """The second device says nothing in the last two nights; nothing is joined across a missing point."""
    device = _manifest(made)["devices"][1]["id"]
    with _page(browser) as page:
        page.goto(f"{base}trends.html?device={device}&configuration=eager")
        page.wait_for_selector(READY)
        found = page.evaluate(
            "(() => { const p = document.querySelector('.plot'); return {"
            "shapes: p.layout.shapes, upload: p._context.showSendToCloud, server: p._context.plotlyServerURL,"
            "traces: p.data.map((t) => ({fill: t.fill ?? '', x: t.x, gaps: t.connectgaps})),"
            "logo: p._context.displaylogo}; })()"
        )
    shaded = [shape for shape in found["shapes"] if shape["type"] == "rect"]
    assert any(shape["x1"] == 11.5 for shape in shaded)
    assert all(10 not in trace["x"] and 11 not in trace["x"] for trace in found["traces"])
    assert [trace["fill"] for trace in found["traces"]] == ["toself", ""]
    assert found["traces"][1]["gaps"] is False
    assert (found["upload"], found["server"], found["logo"]) == (False, "", False)


def test_every_kind_of_comparison_has_an_address(made: Path, base: str, browser: Any) -> None:
    """Configuration with configuration by a button, swapped, and back; a wrong address says what is wrong."""
    with _page(browser) as page:
        page.goto(f"{base}compare.html")
        page.click("text=configuration vs configuration")
        page.wait_for_selector("#result .verdicts")
        assert "ac=" in page.evaluate("location.search")
        assert "bc=" in page.evaluate("location.search")
        mean = page.text_content("#result .mean")
        page.click("text=Swap A and B")
        until(page, f"![{mean!r}].includes(document.querySelector('#result .mean')?.textContent ?? {mean!r})")
        page.go_back()
        until(page, f"document.querySelector('#result .mean')?.textContent === {mean!r}")
        page.goto(f"{base}compare.html?a=1999-01-01-nothing")
        assert "This site has no snapshot 1999-01-01-nothing" in page.text_content("#result .notice")
        page.goto(f"{base}compare.html?ad=%3Cb%3E")
        assert "This site has no device <b>" in page.text_content("#result .notice")


def test_a_silent_device_is_compared_at_its_newest_or_not_planned(
    made: Path, base: str, browser: Any
) -> None:
    """No file is asked for that is not there."""
    first, second = _manifest(made)["devices"]
    with _page(browser) as page:
        page.goto(f"{base}compare.html?ad={first['id']}&bd={second['id']}&a=newest&b=newest")
        page.wait_for_selector("#result .verdicts")
        assert _manifest(made)["snapshots"][9]["id"] in page.text_content("#result .sides")
        newest = _manifest(made)["snapshots"][-1]["id"]
        page.goto(f"{base}compare.html?ad={first['id']}&bd={second['id']}&a={newest}&b={newest}")
        page.wait_for_selector("#result .verdicts")
        assert "not planned on B" in page.text_content("#result")
        assert "No case enters a mean: " in page.text_content("#result .mean")


def test_a_point_of_a_model_leads_to_the_comparison_with_the_one_before(
    made: Path, base: str, browser: Any
) -> None:
    snapshots = [snapshot["id"] for snapshot in _manifest(made)["snapshots"]]
    model = min((made / "models").iterdir()).name
    with _page(browser, viewport={"width": 1280, "height": 900}) as page:
        page.goto(f"{base}models/{model}")
        page.locator("[data-chart]").scroll_into_view_if_needed()
        page.wait_for_selector(READY)
        page.locator("[data-chart] summary").click()
        link = page.locator("[data-chart] tbody a").first
        href = link.get_attribute("href")
        point = page.locator("[data-chart] .scatterlayer .trace path.point").nth(1)
        point.scroll_into_view_if_needed()
        box = point.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
        page.wait_for_selector(".hoverlayer .hovertext")
        page.mouse.down()
        page.mouse.up()
        page.wait_for_url("**/compare.html?*")
        asked = dict(re.findall(r"[?&](\w+)=([^&]*)", page.url))
        assert snapshots.index(asked["a"]) < snapshots.index(asked["b"])
        assert asked["ad"] == asked["bd"]
        page.wait_for_selector("#result .verdicts")
        page.goto(href)
        page.wait_for_selector("#result .verdicts")


@pytest.mark.parametrize(
    "scheme",
    ["light", pytest.param("dark", marks=pytest.mark.full), pytest.param("forced", marks=pytest.mark.full)],
)
def test_the_chart_has_the_colours_of_the_page(made: Path, base: str, browser: Any, scheme: str) -> None:
    """The text of the chart has the colour of the text of the page, also after it changes."""
    device = _manifest(made)["devices"][0]["id"]
    options = {"forced_colors": "active"} if scheme == "forced" else {"color_scheme": scheme}
    with _page(browser, **options) as page:
        page.goto(f"{base}trends.html?device={device}")
        page.wait_for_selector(READY)
        of_page = "getComputedStyle(document.body).color"
        same = (
            "[...document.querySelectorAll('.plot .xtick text')].slice(0, 1)"
            f".some((text) => getComputedStyle(text).fill === {of_page})"
        )  # false, not an error, while the chart is drawn anew
        until(page, same)
        if scheme == "light":
            page.emulate_media(color_scheme="dark")
            until(page, f"{of_page} !== 'rgb(27, 32, 39)'")
            until(page, same)


@pytest.mark.parametrize("name", ["trends.html", "compare.html"])
def test_the_pages_fit_a_phone(made: Path, base: str, browser: Any, name: str) -> None:
    device = _manifest(made)["devices"][0]["id"]
    with _page(browser, viewport={"width": 390, "height": 844}) as page:
        page.goto(f"{base}{name}?device={device}&ad={device}&bd={device}")
        page.wait_for_selector(READY if name.startswith("trends") else "#result .verdicts")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_bundle_that_was_changed_is_refused(
    made: Path, tmp_path: Path, serve: Callable[[Path], str], browser: Any
) -> None:
    """The digest in the manifest stops a file that is not the one that was built; the page says so."""
    build_site(made.parent / "store", tmp_path / "site", now=NOW)
    bundle = next((tmp_path / "site" / "assets").iterdir())
    bundle.write_bytes(b"window.pwned = 1;")
    context = browser.new_context()
    page = context.new_page()
    device = _manifest(made)["devices"][0]["id"]
    page.goto(f"{serve(tmp_path / 'site')}trends.html?device={device}")
    page.wait_for_selector(".plot .notice")
    assert "cannot be loaded, or differs from the built file" in page.text_content(".plot .notice")
    assert page.evaluate("window.pwned") is None
    context.close()

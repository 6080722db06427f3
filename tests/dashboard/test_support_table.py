"""The support table in a real browser: one file, no script, readable on a phone and by everyone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))
sys.path.insert(0, str(Path(__file__).parent))

import compat_store as made
from test_browser import _CONTRAST, _WATCH, HOSTILE

from torchgauge.dashboard import support_table
from torchgauge.records import Status
from torchgauge.results.compat.gathering import compare_devices
from torchgauge.results.compat.table import Table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Two devices and one that was never measured, with all ten statuses in a group of their own."""
    folder = tmp_path_factory.mktemp("support")
    stores = made.two_stores(folder)
    rows = [made.check(f"all.{status.value}", "other", status, reason="because") for status in Status]
    stores.append(str(made.publish(folder / "all", "run-all", rows, days=3)))
    return compare_devices(stores, ["host", "other", "never"])


@pytest.fixture(scope="module")
def page_file(table: Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of the table."""
    return _written(support_table.render(table), tmp_path_factory)


def _written(html: str, factory: pytest.TempPathFactory) -> Path:
    file = factory.mktemp("page") / "support.html"
    file.write_text(html, encoding="utf-8")
    return file


@contextmanager
def _open(browser: Any, file: Path, **options: Any) -> Iterator[Any]:
    """The file in a fresh page that fails its test for a complaint of the console or a further request."""
    complaints: list[str] = []
    context = browser.new_context(**options)
    context.add_init_script(_WATCH)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request", lambda request: complaints.append(request.url) if request.url != file.as_uri() else None
    )
    try:
        page.goto(file.as_uri())
        yield page
        if options.get("java_script_enabled", True):
            assert page.evaluate("window.violations") == []
        assert [each for each in complaints if not each.startswith(("data:,", file.as_uri()))] == []
    finally:
        context.close()


def test_it_is_one_file_without_scripts(page_file: Path) -> None:
    """Nothing is loaded from anywhere, and the policy allows the page's own styles alone."""
    html = page_file.read_text(encoding="utf-8")
    assert "<script" not in html
    assert " style=" not in html
    assert "default-src &#39;none&#39;; style-src &#39;sha256-" in html


def test_every_cell_says_something(page_file: Path, browser: Any) -> None:
    """Each feature and part has a cell with text for each device; what was not measured says so."""
    with _open(browser, page_file) as page:
        rows = page.evaluate(
            "[...document.querySelectorAll('.support tbody tr')].map(r => [...r.cells].map(c => c.textContent"
            ".trim()))"
        )
    assert len(rows) == (4 + 14) + (2 + 3) + (1 + 1)  # `add` has two rows: its dtypes end differently
    assert {len(row) for row in rows} == {4}
    assert all(cell for row in rows for cell in row)
    assert {row[3] for row in rows} == {"? not measured"}


def test_the_ten_statuses_are_told_apart_in_text(page_file: Path, browser: Any) -> None:
    """Every status is written out in its cell, and explained in the legend."""
    with _open(browser, page_file) as page:
        page.locator("summary", has_text="all").click()
        texts = page.locator("#capabilities ~ .scroll tr.part:visible td:nth-child(3) .text")
        texts.first.wait_for()
        cells = texts.all_inner_texts()
        legend = page.locator(".legend").inner_text()
    assert sorted(cells) == sorted(status.value for status in Status)
    assert all(status.value in legend for status in Status)


def test_a_row_opens_without_scripts(page_file: Path, browser: Any) -> None:
    """The parts of a group are folded until a person opens them, by keyboard too."""
    with _open(browser, page_file, java_script_enabled=False) as page:
        part = page.locator("tr.part", has_text="tensor.views")
        assert not part.is_visible()
        page.locator("summary", has_text="tensor").focus()
        page.keyboard.press("Enter")
        part.wait_for()
        assert "a view is a copy" in page.locator(".notes").inner_text()
        assert not page.locator("tr.part", has_text="stream.make").is_visible()


def test_a_note_number_leads_to_its_reason(page_file: Path, browser: Any) -> None:
    """The number in a cell is a link to the footnote with the reason."""
    with _open(browser, page_file) as page:
        page.locator("tr", has_text="conv").locator("sup a").first.click()
        assert "no kernel for aten::conv" in page.locator(".notes li:target").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(page_file: Path, browser: Any, scheme: str) -> None:
    """At least 4.5 everywhere, with all rows open."""
    with _open(browser, page_file, color_scheme=scheme) as page:
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.locator("tr.part:visible").count() == 18
        assert page.evaluate(_CONTRAST) == []


def test_a_phone_needs_no_sideways_scrolling(page_file: Path, browser: Any) -> None:
    """At 390 px tables scroll in regions that the keyboard reaches, and the first column stays."""
    with _open(browser, page_file, viewport={"width": 390, "height": 800}) as page:
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.locator('.scroll:not([tabindex="0"][aria-label])').count() == 0
        region = page.locator(".scroll").first
        before = region.locator("tbody th").first.bounding_box()
        region.evaluate("node => node.scrollLeft = 400")
        assert region.evaluate("node => node.scrollLeft") > 50
        after = region.locator("tbody th").first.bounding_box()
        assert abs(before["x"] - after["x"]) < 2


def test_forced_colours_keep_cells_apart(page_file: Path, browser: Any) -> None:
    """Where the system takes the colours away, texts and borders remain."""
    with _open(browser, page_file, forced_colors="active") as page:
        widths = page.evaluate(
            "[...document.querySelectorAll('.support tbody td')].map(c => getComputedStyle(c).borderTopWidth)"
        )
        assert set(widths) == {"1px"}


def test_hostile_text_is_shown_literally(
    tmp_path: Path, browser: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No script runs, no element appears, no link leads anywhere else."""
    rows = []
    for text in HOSTILE:
        rows.append(made.check(f"{text}.x", text, Status.ERROR, reason=text))
        rows.append(made.op(text, text, Status.ERROR, text, text, reason=text))
        rows.append(made.model(text, text, Status.ERROR, reason=text, facts=(("fallback_ops", 1),
                    ("fallback_names", text), ("fallback_unknown", text))))  # fmt: skip
    path = made.publish(tmp_path / "s", "r", rows, extension__x="</style><script>window.pwned=1</script>")
    html = support_table.render(compare_devices([str(path)]))
    with _open(browser, _written(html, tmp_path_factory)) as page:
        page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert page.evaluate("window.pwned") is None
        assert page.locator("img, script, h1 ~ h1, a[href^=javascript]").count() == 0
        assert "<script>window.pwned=1</script>" in page.locator("main").inner_text()
    assert "\u202e" not in html

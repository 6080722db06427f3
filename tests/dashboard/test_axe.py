"""axe-core finds nothing on any kind of page: in both schemes, on a phone, and without scripts of ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import axe_core
import pytest
import subject_store
from store_builder import NOW

from torchgauge.dashboard import build_site

_RUN = """
async ([type, values]) => {
  const found = await axe.run(document, { runOnly: { type, values }, resultTypes: ["violations"] });
  return found.violations.flatMap(({ id, help, nodes }) =>
    nodes.slice(0, 3).map((node) => `${id}: ${help}: ${node.html.slice(0, 200)}: ${node.failureSummary}`));
}
"""
KINDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
COLOURS = ["color-contrast", "link-in-text-block"]
"""What depends on the scheme."""

_UNFOLD = 'for (const each of document.querySelectorAll("details")) each.open = true;'


@pytest.fixture(scope="module")
def axe() -> str:
    """The checker's text."""
    text, why = axe_core.source()
    if not text:
        (pytest.fail if axe_core.required() else pytest.skip)(why)
    return text


@pytest.fixture(scope="module")
def whole_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with every kind of page: models, checks, operators, changes, comparisons and charts."""
    folder = tmp_path_factory.mktemp("axe")
    subject_store.store_of_every_page(folder / "store")
    subject_store.features(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


def _kinds_of_pages(site: Path) -> list[str]:
    """Every page at the top and one or two of each folder."""
    found = [path.name for path in sorted(site.glob("*.html"))]
    for folder in sorted(path for path in site.iterdir() if path.is_dir()):
        pages = sorted(folder.rglob("*.html"))
        found += [
            path.relative_to(site).as_posix()
            for path in (pages if len(pages) < 3 else pages[1 :: len(pages) // 2])
        ]
    return found


@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_on_any_kind_of_page(
    whole_site: Path, browser: Any, serve: Callable[[Path], str], axe: str, width: int
) -> None:
    """In light and then in dark, with everything unfolded."""
    base, found = serve(whole_site), []
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    for name in _kinds_of_pages(whole_site):
        page.goto(base + name)
        page.evaluate(_UNFOLD)
        page.evaluate(axe)
        for scheme, kind, values in (("light", "tag", KINDS), ("dark", "rule", COLOURS)):
            page.emulate_media(color_scheme=scheme)
            found += [f"{scheme} {name}: {each}" for each in page.evaluate(_RUN, [kind, values])]
    context.close()
    assert not found, "\n".join(found)


def test_axe_finds_nothing_where_scripts_do_not_run(
    whole_site: Path, browser: Any, serve: Callable[[Path], str], axe: str
) -> None:
    """The pages that scripts change, without those of the site; the checker itself is one."""
    base, found = serve(whole_site), []
    context = browser.new_context(color_scheme="dark")
    context.route("**/*.js", lambda route: route.abort())
    page = context.new_page()
    for name in ("compatibility.html", "performance.html", "trends.html", "compare.html", "operators.html"):
        page.goto(base + name)
        page.evaluate(axe)
        found += [f"{name}: {each}" for each in page.evaluate(_RUN, ["tag", KINDS])]
    context.close()
    assert not found, "\n".join(found)


def test_axe_finds_nothing_in_what_scripts_draw(
    whole_site: Path, browser: Any, serve: Callable[[Path], str], axe: str
) -> None:
    """A chart with its table, a comparison, a filtered matrix, one without rows, squares, a cell's facts."""
    base = serve(whole_site)
    device = next(path.stem for path in sorted((whole_site / "devices").glob("[!i]*.html")))
    found = []
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme, viewport={"width": 1280, "height": 900})
        page = context.new_page()
        for address, ready in (
            (f"trends.html?device={device}", "figure .plot"),
            ("compare.html?a=newest&b=newest&ac=eager&bc=inductor", "#result table, #result .notice"),
            ("compatibility.html?q=resnet18&sort=worst", "output:text-matches('^[1-9][0-9]* of ')"),
            ("performance.html?q=nothing-like-this", "output:text('No row matches.')"),
            ("compatibility.html?view=compact&without=eager", "table.compact"),
            ("performance.html?view=compact", "table.compact"),
        ):
            page.goto(base + address)
            page.locator(ready).first.wait_for(state="attached")
            if "trends" in address and page.locator("figure").count():
                page.locator(".plot[data-ready=true] .main-svg, .plot .notice").first.wait_for()
                page.locator("figure details summary").first.click()
                page.locator("figure details table").first.wait_for(state="attached")
            if "compact" in address:
                page.locator("tbody td:visible:not(.z)").first.hover()
                page.get_by_role("tooltip").get_by_text("torch").wait_for()
            page.evaluate(axe)
            found += [f"{scheme} {address}: {each}" for each in page.evaluate(_RUN, ["tag", KINDS])]
        context.close()
    assert not found, "\n".join(found)

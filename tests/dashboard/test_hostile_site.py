"""A corpus of hostile text through every sink of a site: pages, charts, feed, badges and data files."""

from __future__ import annotations

import csv
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import hostile_store
import pyarrow.parquet as pq
import pytest
from hostile_store import CORPUS, LONG, SURROGATE
from patience import until
from store_builder import NOW

from torchgauge.dashboard import build_site
from torchgauge.dashboard.pictures.ink import style
from torchgauge.dashboard.pictures.svg import CARD, NARROW, WIDE
from torchgauge.results.hostile_text import brief, visible

TAGS = frozenset((
    "html", "head", "meta", "title", "link", "script", "noscript", "body", "header", "nav", "main",
    "section", "article", "footer", "div", "span", "a", "p", "h1", "h2", "h3", "h4", "h5", "ul", "ol", "li",
    "dl", "dt", "dd", "table", "caption", "colgroup", "col", "thead", "tbody", "tfoot", "tr", "th", "td",
    "details", "summary", "pre", "code", "b", "i", "em", "strong", "small", "abbr", "time", "figure",
    "figcaption", "label", "fieldset", "legend", "input", "select", "option", "optgroup", "button",
    "output", "form", "br", "hr", "wbr", "img", "sub", "sup", "kbd", "var", "svg", "defs", "pattern",
    "path", "g", "line", "rect", "polyline", "polygon", "circle", "text", "desc", "picture", "source",
))  # fmt: skip
"""The elements that pages are made of: no frame, object, style, base or embedded thing."""

ATTRIBUTES = re.compile(
    r"(?:class|id|href|rel|lang|charset|content|name|property|http-equiv|src|type|media|title|role"
    r"|tabindex|scope"
    r"|alt|loading|srcset|colspan|rowspan|headers|datetime|hidden|open|for|value|label|selected|checked"
    r"|disabled|placeholder|autocomplete"
    r"|spellcheck|autocapitalize|autocorrect|enterkeyhint|inputmode|list|integrity|crossorigin|aria-[a-z]+"
    r"|data-[a-z-]+|download|size|min|max|step|maxlength|dir|translate"
    r"|viewBox|preserveAspectRatio|width|height|d|points|x|y|x1|x2|y1|y2|r|cx|cy|xmlns|fill|stroke|focusable"
    r"|transform|vector-effect|patternUnits|patternTransform)"
)

_SCRIPT = re.compile(r"(?:\.\./)*static/[a-z_]+\.js")
_IMAGE = re.compile(r"(?:\.\./)*(?:badge|pictures)/[A-Za-z0-9_.-]+\.svg")
_LINK = re.compile(r"(?:(?:\.\./)*[A-Za-z0-9_.-][A-Za-z0-9_./-]*)?")

STYLES = frozenset(style(frame.size) for frame in (WIDE, NARROW, CARD))
"""What stands in the styles of pictures: nothing of a store."""

_SURVEY = r"""
() => {
  const found = { tags: [], attributes: [], links: [], scripts: [], images: [], ids: [], longest: 0 };
  for (const node of document.querySelectorAll("*")) {
    found.tags.push(node.localName);
    for (const name of node.getAttributeNames()) {
      const room = name === "style" && node.matches("[data-matrix] > tbody"); // of rows not in the page
      const heads = name === "style" && node.matches("[data-matrix]"); // how high upright names are
      if (room && /^padding: \d+px 0px( \d+px)?;$/.test(node.getAttribute(name))) continue;
      if (heads && /^--heads: \d+px;$/.test(node.getAttribute(name))) continue;
      found.attributes.push(name);
      found.longest = Math.max(found.longest, node.getAttribute(name).length);
    }
    const own = [...node.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data.length);
    if (!node.closest("pre")) found.longest = Math.max(found.longest, ...own, 0);
    if (node.matches("a")) found.links.push(node.getAttribute("href"));
    if (node.matches("img")) found.images.push(node.getAttribute("src"));
    if (node.id) found.ids.push(node.id);
    if (node.matches("script")) found.scripts.push(node.getAttribute("src") ?? "inline");
  }
  for (const name of ["tags", "attributes"]) found[name] = [...new Set(found[name])];
  return { ...found, pwned: window.pwned ?? null, violations: window.violations,
           width: document.documentElement.scrollWidth, text: document.body.textContent };
}
"""

_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (e) =>
  window.violations.push(`${e.violatedDirective} ${e.blockedURI} ${e.sourceFile}:${e.lineNumber}`));
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The hostile store."""
    path = tmp_path_factory.mktemp("hostile") / "store"
    hostile_store.write_store(path)
    return path


@pytest.fixture(scope="module")
def site(store: Path) -> Path:
    """Its site."""
    build_site(store, store.parent / "site", now=NOW, base_url="https://example.invalid/site/")
    return store.parent / "site"


@contextmanager
def _page(browser: Any, base: str, **options: Any) -> Iterator[Any]:
    """A page whose test fails for a dialog, a request elsewhere, or a complaint of console or policy."""
    complaints: list[str] = []
    context = browser.new_context(**options)
    context.add_init_script(_WATCH)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on(
        "requestfailed",
        lambda request: None if "ERR_ABORTED" in str(request.failure) else complaints.append(request.url),
    )  # what a page was still loading when it was left is no failure
    page.on("popup", lambda popup: complaints.append(f"popup: {popup.url}"))
    page.on(
        "request",
        lambda request: None if request.url.startswith((base, "data:")) else complaints.append(request.url),
    )
    try:
        yield page
        assert page.evaluate("[window.pwned ?? null, window.violations]") == [None, []]
        assert complaints == []
    finally:
        context.close()


def _html(site: Path) -> list[str]:
    """Every page at the top, and some of each folder: enough to meet every sink, few enough to be quick."""
    found = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    found.remove("404.html")  # its links begin at the host that the site is built for
    kept: dict[str, int] = {}
    return [name for name in found if "/" not in name or _count(kept, name.partition("/")[0]) <= 8]


def _count(kept: dict[str, int], folder: str) -> int:
    kept[folder] = kept.get(folder, 0) + 1
    return kept[folder]


def _faults(name: str, found: dict[str, Any], site: Path, base: str) -> Iterator[str]:
    if found["pwned"] is not None or found["violations"]:
        yield f"{name}: {found['pwned']} {found['violations']}"
    yield from (f"{name}: element {each}" for each in found["tags"] if each not in TAGS)
    yield from (f"{name}: attribute {each}" for each in found["attributes"] if not ATTRIBUTES.fullmatch(each))
    yield from (f"{name}: script {each}" for each in found["scripts"] if not _SCRIPT.fullmatch(each))
    yield from (f"{name}: image {each}" for each in found["images"] if not _IMAGE.fullmatch(each))
    if found["longest"] > 5_000 or found["width"] > 390:
        yield f"{name}: {found['longest']} characters in one place, {found['width']} px wide"
    for link in found["links"]:
        path, _, anchor = link.removeprefix(base).partition("#")
        path = path.partition("?")[0]
        if not _LINK.fullmatch(path) or not re.fullmatch("[a-z0-9-]*", anchor):
            yield f"{name}: link {link}"
        elif path and not (site / name).parent.joinpath(path).is_file():
            yield f"{name}: dead link {link}"
        elif not path and anchor and anchor not in found["ids"]:
            yield f"{name}: dead anchor {link}"


def test_every_page_shows_the_corpus_as_text_and_obeys_the_policy(
    site: Path, browser: Any, serve: Callable[[Path], str]
) -> None:
    """No element, attribute, link, request or message is there that a harmless store would not have."""
    base, seen, faults = serve(site), "", []
    with _page(browser, base, viewport={"width": 390, "height": 800}) as page:
        for name in _html(site):
            page.goto(base + name)
            found = page.evaluate(_SURVEY)
            faults += _faults(name, found, site, base)
            seen += found["text"]
    assert faults == []
    for text in (*CORPUS, SURROGATE.encode(errors="backslashreplace").decode()):
        assert " ".join(brief(text).split()) in " ".join(seen.split()), text
    assert f"[{len(LONG) - 4096:,} more characters]" in seen


def test_pages_stay_small_whatever_a_store_holds(site: Path) -> None:
    """Megabytes of one error are cut visibly; nothing that turns or hides text is left as it was."""
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert len(text) < 1_500_000, path
        assert not re.search("[\x00\x1b\u202e\u2066\u200b\ufeff]", text), path


@pytest.mark.parametrize("name", ["compatibility.html", "performance.html"])
def test_a_matrix_of_hostile_names_still_works(
    name: str, site: Path, browser: Any, serve: Callable[[Path], str]
) -> None:
    """Queries, sorting and hiding, also from a hostile address."""
    base = serve(site)
    with _page(browser, base) as page:
        page.goto(base + name)
        page.get_by_label("Query").fill('"=cmd"')
        page.locator("output").filter(has_text=re.compile(r"^1 of ")).wait_for()
        assert page.locator("tbody tr:visible").count() == 1
        page.get_by_label("Query").fill("")  # else the answer before would be taken for the next
        page.locator("output").filter(has_text=re.compile(r"^\d+ rows$")).wait_for()
        page.get_by_label("Query").fill('"<script>"')
        page.locator("output").filter(has_text=re.compile(r"^[12] of ")).wait_for()
        for box in page.locator("fieldset input").all()[:2]:
            box.uncheck()
        for button in page.locator("thead th button").all()[:3]:
            if button.is_visible():
                button.click()
        for text in (*CORPUS[:8], "__proto__"):
            page.goto(f"{base}{name}?{_encoded(q=text, sort=text, hide=text, base=text)}#{_quoted(text)}")
            page.wait_for_selector("table[role=grid]")
            page.locator("output").filter(has_text=re.compile("row|At character")).wait_for()


def test_charts_show_hostile_names_as_text(site: Path, browser: Any, serve: Callable[[Path], str]) -> None:
    """Plotly reads a little HTML in titles, names and ticks: none of it is made here."""
    base = serve(site)
    devices = json.loads((site / "manifest.json").read_bytes())["devices"]
    model = next(path.name for path in (site / "models").iterdir() if path.name.startswith("a-href"))
    with _page(browser, base) as page:
        for address in (
            *(f"trends.html?{_encoded(device=device['id'])}" for device in devices[:3]),
            f"models/{model}",
        ):
            page.goto(base + address)
            page.locator(".chart, .explore").first.scroll_into_view_if_needed()
            page.locator(".plot").first.scroll_into_view_if_needed()  # a mean of one case is not drawn
            page.wait_for_selector(".plot[data-ready=true] .main-svg")
            assert page.locator(".plot a, .plot image, .plot script, .plot foreignObject").count() == 0
            point = page.locator(".plot .scatterlayer .points path").first
            if point.count():
                point.hover(force=True)
                page.locator(".hoverlayer text").first.wait_for(state="attached")
            for table in page.locator("figure details summary").all()[:2]:
                table.click()
            until(
                page,
                "[...document.querySelectorAll('figure details')].slice(0, 2)"
                ".every((each) => each.querySelector('tbody td'))",
            )
            assert page.locator("figure table a:not([href^='http://127.0.0.1'])").count() == 0


def test_comparisons_of_hostile_sides_are_text(
    site: Path, browser: Any, serve: Callable[[Path], str]
) -> None:
    """Every chooser and every table that a script makes."""
    base = serve(site)
    with _page(browser, base) as page:
        page.goto(base + "compare.html")
        page.locator("#chooser button").first.wait_for()  # else there is nothing to press yet
        for button in page.locator("#chooser button").all():
            page.get_by_role("button", name=button.inner_text(), exact=True).click()
            page.locator("#result h2, #result .notice, #result table").first.wait_for()
            assert page.locator("#result img, #result script, #result svg").count() == 0
        for text in CORPUS[:8]:
            page.goto(
                f"{base}compare.html?{_encoded(a=text, b=text, ad=text, bd=text, ac=text, metric=text)}"
            )
            page.locator("#result h2, #result .notice, #result table").first.wait_for()


def _encoded(**values: str) -> str:
    from urllib.parse import urlencode

    return urlencode(values)


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text)


def test_every_file_is_well_formed(site: Path) -> None:
    """JSON is strict, XML parses and holds no markup of ours, and names of files are plain."""
    kinds: dict[str, int] = {}
    for path in sorted(path for path in site.rglob("*") if path.is_file()):
        name = path.relative_to(site).as_posix()
        assert re.fullmatch(r"[A-Za-z0-9_./-]{1,200}", name), name
        kinds[path.suffix] = kinds.get(path.suffix, 0) + 1
        if path.suffix == ".json":
            json.loads(path.read_bytes(), parse_constant=lambda text, at=name: pytest.fail(f"{at}: {text}"))
        elif path.suffix in {".xml", ".svg"}:
            tree = ET.fromstring(path.read_bytes())
            tags = {element.tag.partition("}")[2] for element in tree.iter()}
            assert tags <= {
                "feed", "id", "title", "updated", "published", "link", "author", "name", "generator", "entry",
                "category", "content", "svg", "rect", "path", "text", "g", "clipPath", "desc",
                "circle", "defs", "pattern", "style", "urlset", "url", "loc", "lastmod",
            }, name  # fmt: skip
            assert {each.text for each in tree.iter("{http://www.w3.org/2000/svg}style")} <= STYLES, name
            for element in tree.iter():
                assert not [key for key in element.attrib if key.startswith("on")], name
                href = element.get("href")
                assert href is None or href.startswith("https://example.invalid/site/"), name
        elif path.suffix == ".parquet":
            assert pq.read_table(path).num_rows > 0, name
    assert min(kinds[each] for each in (".html", ".json", ".xml", ".svg", ".parquet", ".csv")) >= 1


def test_the_feed_and_the_badges_name_hostile_things_literally(site: Path) -> None:
    """Titles are text of one line, without what turns or hides text."""
    tree = ET.fromstring((site / "feed.xml").read_bytes())
    titles = [element.text or "" for element in tree.iter("{http://www.w3.org/2005/Atom}title")]
    assert len(titles) > len(CORPUS)
    assert any("<script>window.pwned=1</script>" in title for title in titles)
    assert any('<a href="javascript:alert(1)">' in title for title in titles)
    assert not [title for title in titles if re.search("[\n\x1b\u202e]", title) or len(title) > 500]


def test_no_cell_of_a_spreadsheet_is_a_formula(site: Path) -> None:
    """Guarded with an apostrophe; what a program reads in Parquet is as it was measured."""
    for path in (site / "data").glob("*.csv"):
        csv.field_size_limit(1 << 24)
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        assert len({len(row) for row in rows}) == 1
        cells = [cell for row in rows for cell in row]
        numbers = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
        assert not [
            cell[:40]
            for cell in cells
            if cell.lstrip().startswith(("=", "+", "-", "@", "\t")) and not numbers.fullmatch(cell)
        ]
        assert any(cell.startswith("'=cmd|'") for cell in cells)
    assert "=cmd|'/c calc'!A1" in pq.read_table(site / "data" / "latest.parquet").column("model").to_pylist()


def test_what_is_too_long_is_cut_where_a_person_reads_it() -> None:
    """The cut says how much is missing, and takes no time of note over a megabyte."""
    assert brief("x" * 5_000) == "x" * 4_096 + "… [904 more characters]"
    assert brief("\x1b[31mred\u202e") == "red[U+202E]"
    assert visible(SURROGATE) == "lone [U+D800] surrogate"

"""Reading built pages as a person would: their words, their links, and what stands under an anchor."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path


def words(page: Path | str) -> str:
    """The text of a page, or of HTML, with runs of white space as one space."""
    html = page.read_text() if isinstance(page, Path) else page
    html = re.sub(r"</(dt|dd|th|td|h\d|p|li|summary|code)>", " ", html)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", "", html)))


class _Elements(HTMLParser):
    """Which elements and attributes a browser would see."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.acting: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.acting += [f"{tag} {name}" for name in found if name.startswith("on") or name == "style"]
        if tag in ("style", "img", "iframe") or (tag == "script" and not found.get("src")):
            self.acting.append(tag)
        if (found.get("href") or "").lower().startswith(("javascript:", "http:", "https:", "//")):
            self.acting.append(f"{tag} {found['href']}")


def acting(page: Path) -> list[str]:
    """What a page must not have: inline scripts and styles, handlers, images, links to elsewhere."""
    return _Elements(page.read_text()).acting


def ids(page: Path) -> list[str]:
    """All anchors of a page."""
    return re.findall(r'\bid="([^"]*)"', page.read_text())


def hrefs(page: Path) -> list[str]:
    """All links of a page."""
    return [unescape(href) for href in re.findall(r'\bhref="([^"]*)"', page.read_text())]


def broken_links(site: Path, *names: str) -> list[tuple[str, str]]:
    """Pages, those that fit ``names``, and their links that lead to no file or to no anchor."""
    found = []
    anchors = {page.resolve(): set(ids(page)) for page in site.rglob("*.html")}
    for page in [page for name in names or ("**/*.html",) for page in site.glob(name)]:
        for href in hrefs(page):
            name, _, anchor = href.partition("#")
            if href == "data:," or href.startswith("https://github.com/pytorch/pytorch/commit/"):
                continue
            target = (page.parent / name.partition("?")[0]).resolve() if name else page.resolve()
            if not target.is_file() or (anchor and anchor not in anchors.get(target, set())):
                found.append((str(page.relative_to(site)), href))
    return found

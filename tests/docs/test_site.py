"""The documentation's site: strict, whole, and it asks nobody else for anything."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from doc_pages import PAGES, ROOT

SETTINGS = ROOT / "docs" / "sphinx"
FETCHING = {"script", "img", "iframe", "source", "audio", "video", "embed", "object", "track", "use", "image"}
FETCHED_LINKS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect", "dns-prefetch"}
FOREIGN_CSS = re.compile(r"""(?:url\(|@import)\s*['"]?((?:https?:)?//[^'")\s]+)""")
FOREIGN_JS = re.compile(r"""(?:fetch|import|open|importScripts)\(\s*['"`]((?:https?:)?//[^'"`]+)""")


class Elements(HTMLParser):
    """What an HTML page has: what it fetches, what it links to, its anchors, and what it lacks."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.language = ""
        self.without_alternative: list[str] = []
        self.headings: list[int] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one element."""
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.anchors.add(given["id"])
        if tag in FETCHING or (tag == "link" and FETCHED_LINKS & set(given.get("rel", "").split())):
            self.fetched += [given[each] for each in ("src", "href", "data", "srcset") if given.get(each)]
        self.fetched += FOREIGN_CSS.findall(given.get("style", ""))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "html":
            self.language = given.get("lang", "")
        if tag == "img" and "alt" not in given:
            self.without_alternative.append(given.get("src", ""))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))


def foreign(address: str) -> bool:
    """Whether a browser would ask another host for ``address``."""
    return bool(urlsplit(address).netloc)


def build(out: Path, root: Path) -> subprocess.CompletedProcess[str]:
    """Run the generator as ``make docs`` does."""
    if not os.environ.get("TORCHGAUGE_REQUIRE_SPHINX"):
        pytest.importorskip("sphinx")
    return subprocess.run(
        [sys.executable, str(SETTINGS / "build.py"), str(out), str(root)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of this repository."""
    out = tmp_path_factory.mktemp("docs") / "site"
    done = build(out, ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def elements(site: Path) -> dict[Path, Elements]:
    """Every HTML page of the site."""
    return {page: Elements(page) for page in sorted(site.rglob("*.html"))}


def test_every_page_of_the_repository_is_on_the_site(site: Path) -> None:
    """Nothing that can be read on a Git host is missing, and a search finds it without a server."""
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    found = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))["titles"]
    titles = {re.sub(r"\W", "", title) for title in found}
    for page in PAGES:
        heading = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert heading is not None, page
        assert re.sub(r"\W", "", heading[1]) in titles, heading[1]


def test_the_site_asks_no_other_host(site: Path, elements: dict[Path, Elements]) -> None:
    """No page, style or script fetches anything from elsewhere: it can be read without a network."""
    found = {str(page): [each for each in page_.fetched if foreign(each)] for page, page_ in elements.items()}
    assert not {page: each for page, each in found.items() if each}
    for style in site.rglob("*.css"):
        assert not FOREIGN_CSS.findall(style.read_text(encoding="utf-8")), style
    for script in site.rglob("*.js"):
        assert not FOREIGN_JS.findall(script.read_text(encoding="utf-8")), script


def test_every_link_of_the_site_leads_somewhere(site: Path, elements: dict[Path, Elements]) -> None:
    """Files and anchors of all pages resolve, also those that the generator wrote."""
    for page, page_ in elements.items():
        for link in page_.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.is_file(), f"{page.relative_to(site)}: {link}"
            if parts.fragment and target in elements:
                assert unquote(parts.fragment) in elements[target].anchors, (
                    f"{page.relative_to(site)}: {link}"
                )


def test_pages_can_be_read_by_everybody(elements: dict[Path, Elements]) -> None:
    """Language, alternatives of images, and headings that do not leave a level out."""
    for page, page_ in ((page, page_) for page, page_ in elements.items() if page.name != "search.html"):
        assert page_.language == "en", page
        assert not page_.without_alternative, page
        assert page_.headings.count(1) == 1, page
        steps = zip(page_.headings, page_.headings[1:], strict=False)
        assert all(after <= before + 1 for before, after in steps), (page, page_.headings)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A repository with a start page, an index of guides and one guide."""
    root = tmp_path / "repository"
    for name, text in {
        "src/torchgauge/__init__.py": '__version__ = "1.2.3"\n',
        "docs/README.md": "# Start\n\n## Do\n\n- [Guides](how-to/README.md)\n",
        "docs/how-to/README.md": "# Guides\n\n## Devices\n\n- [One](one.md)\n",
        "docs/how-to/one.md": "# One\n\n## A part\n\nSee [data](../../data.yaml) and [it](#a-part).\n",
        "data.yaml": "a: 1\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def test_a_lost_page_and_a_broken_anchor_end_the_build(small: Path, tmp_path: Path) -> None:
    """Both are named, and there is no half site."""
    (small / "docs/how-to/two.md").write_text("# Two\n\nSee [it](one.md#an-other-part).\n", encoding="utf-8")
    done = build(tmp_path / "site", small)
    assert done.returncode == 1
    assert "how-to/two.md" in done.stderr
    assert "toc.not_included" in done.stderr
    assert "an-other-part" in done.stderr
    assert not (tmp_path / "site").exists()

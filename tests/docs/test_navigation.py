"""Every page can be found: from the README, from the start of the docs, and guides in their index."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from doc_pages import PAGES, ROOT, linked

DOCS = ROOT / "docs"
GUIDES = sorted(path for path in (DOCS / "how-to").glob("*.md") if path.name != "README.md")
INDEX = DOCS / "how-to" / "README.md"


def reached(start: Path, links: Callable[[Path], set[Path]] = linked) -> set[Path]:
    """The pages that a reader who begins at ``start`` gets to by links alone."""
    found, left = {start}, [start]
    while left:
        for path in links(left.pop()):
            page = path / "README.md" if path.is_dir() else path
            if page.suffix == ".md" and page not in found and page.is_file():
                found.add(page)
                left.append(page)
    return found


@pytest.mark.parametrize("start", [ROOT / "README.md", DOCS / "README.md"], ids=["README", "docs"])
def test_every_page_is_reached_by_links(start: Path) -> None:
    """No page of the docs is an island."""
    pages = {page for page in PAGES if page.is_relative_to(DOCS)}
    lost = sorted(str(page.relative_to(ROOT)) for page in pages - reached(start))
    assert not lost, f"no link leads from {start.relative_to(ROOT)} to these"


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_a_guide_is_in_its_index(guide: Path) -> None:
    """The site's sidebar is made of this index, so a guide that is missing there is missing on the site."""
    assert guide in linked(INDEX), f"name {guide.name} in a section of {INDEX.relative_to(ROOT)}"

"""Every page can be found: from the README, from the start of the docs, and guides in their index."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torchgauge import registry

sys.path.insert(0, str(Path(__file__).parent))

from doc_pages import PAGES, ROOT, linked, prose

DOCS = ROOT / "docs"
GUIDES = sorted(path for path in (DOCS / "how-to").glob("*.md") if path.name != "README.md")
INDEX = DOCS / "how-to" / "README.md"
TERM = re.compile(r"^\| ([^|]+?) \|", re.MULTILINE)
HEADS = re.compile(r"^\| (\w+)(?: \| [^\n]*)? \|\n\|[-|: ]+\|$", re.MULTILINE)
NOT_TERMS = {"column", "group", "key", "method", "path"}
"""First columns of reference tables that are no words of ours."""


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


def test_a_lost_page_would_be_seen(tmp_path: Path) -> None:
    """The search above follows links and nothing else."""
    pages = [tmp_path / name for name in ("a.md", "b.md", "c.md")]
    for page in pages:
        page.touch()
    a, b, c = pages
    assert reached(a, lambda page: {b} if page == a else set()) == {a, b}
    assert c not in reached(a, lambda page: {b} if page == a else set())


def glossary() -> list[str]:
    """The terms of the glossary, without their backticks."""
    text = prose(DOCS / "glossary.md")
    return [term.strip("`") for term in TERM.findall(text) if term not in {"term", "---"}]


def test_no_term_is_explained_twice_in_one_section() -> None:
    """A word has one meaning where it is looked for."""
    for section in re.split(r"^## ", prose(DOCS / "glossary.md"), flags=re.MULTILINE)[1:]:
        terms = TERM.findall(section)[1:]
        assert len(terms) == len(set(terms)), section.splitlines()[0]


@pytest.mark.parametrize("page", sorted((DOCS / "reference").glob("*.md")), ids=lambda path: path.name)
def test_what_a_reference_lists_is_a_term_of_the_glossary(page: Path) -> None:
    """A table of statuses or metrics says in its head what it lists: that word is explained."""
    listed = {head.lower() for head in HEADS.findall(prose(page))} - NOT_TERMS
    assert listed <= {term.lower() for term in glossary()}


@pytest.mark.parametrize("group", registry.GROUPS)
def test_a_seam_is_a_term_of_the_glossary(group: str) -> None:
    """What a package can add is explained."""
    assert group.rpartition(".")[2].removesuffix("s") in glossary()

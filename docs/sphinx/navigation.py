"""The sidebar, from the sections of the indexes: what a reader finds in a list is what the site offers.

``docs/README.md`` has a section for each kind of page, and ``docs/how-to/README.md`` one for each kind of
guide. A page that no index lists is an error of the build.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from pages import Pages

START = "docs/README.md"
GUIDES = "docs/how-to/README.md"
SECTION = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
NESTED = re.compile(r"docs/(adr|devices)/README\.md")


def sidebar(pages: Pages) -> str:
    """The table of contents of the site, to be put at the end of its first page."""
    return "\n".join(_toctree(pages, title, files) for title, files in _groups(pages) if files)


def below(pages: Pages, file: str) -> str:
    """The table of contents at the end of the index ``file``; empty where its pages are in the sidebar."""
    if not NESTED.fullmatch(file):
        return ""
    folder = file.removesuffix("README.md")
    linked = pages.linked_pages(file, (pages.root / file).read_text(encoding="utf-8"))
    # Their titles and not the words of the links: an index of decisions links their numbers.
    inside = {name: "" for name in linked if name.startswith(folder) and name != file}
    return _toctree(pages, "", inside, here=Path(pages.places[file]).parent)


def _groups(pages: Pages) -> Iterator[tuple[str, dict[str, str]]]:
    """Title of every group of the sidebar, and its files with their words; a file stands in one group."""
    seen = {START}
    for title, files in _sections(pages, START):
        if GUIDES in files:
            seen.add(GUIDES)
            yield "How to", {GUIDES: "All guides"}
            for group, guides in _sections(pages, GUIDES):
                yield f"How to: {group[:1].lower()}{group[1:]}", _unseen(guides, seen, "docs/how-to/")
        else:
            yield title, _unseen(files, seen)


def _unseen(files: dict[str, str], seen: set[str], folder: str = "") -> dict[str, str]:
    new = {file: words for file, words in files.items() if file not in seen and file.startswith(folder)}
    seen.update(new)
    return new


def _sections(pages: Pages, file: str) -> Iterator[tuple[str, dict[str, str]]]:
    text = (pages.root / file).read_text(encoding="utf-8")
    for section in SECTION.finditer(text):
        yield section[1], pages.linked_pages(file, section[2])


def _toctree(pages: Pages, caption: str, files: dict[str, str], here: Path = Path()) -> str:
    entries = []
    for file, words in files.items():
        place = Path(os.path.relpath(pages.places[file], here)).with_suffix("").as_posix()
        entries.append(f"{words[:1].upper()}{words[1:]} <{place}>" if words else place)
    head = ["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), ""]
    return "\n".join([*head, *entries, "```", ""])

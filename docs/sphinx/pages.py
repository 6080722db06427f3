"""Which Markdown files are pages of the site, and where each one stands in it.

The files of ``docs`` keep their places, a ``README.md`` is the index of its folder, and the pages of the
repository's root and of its packages come under ``project``. Links between files are rewritten to match, so
that the same text can be read on a Git host and on the site. A link to a file that is no page gets a copy of
it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
TARGET = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
PROJECT = {
    "README.md": "project/readme.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "CHANGELOG.md": "project/changelog.md",
}


class BrokenLinkError(Exception):
    """A link leads out of the repository or to nothing."""


@dataclass
class Pages:
    """The pages of the repository ``root``: file to place in the site, both with ``/``.

    ``copies`` collects the files that are linked and are no pages, such as a file of data.
    """

    root: Path
    places: Mapping[str, str]
    copies: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, root: Path) -> Pages:
        """Every page of ``root``."""
        places = {file: place for file, place in PROJECT.items() if (root / file).is_file()}
        for path in sorted(root.glob("packages/*/README.md")):
            places[path.relative_to(root).as_posix()] = f"project/{path.parent.name}.md"
        for path in sorted(root.glob("docs/**/*.md")):
            file = path.relative_to(root).as_posix()
            place = file.removeprefix("docs/")
            places[file] = f"{place.removesuffix('README.md')}index.md" if path.name == "README.md" else place
        return cls(root, places)

    def text(self, file: str) -> str:
        """The text of the page ``file`` with links as in the site; raises :class:`BrokenLinkError`."""
        source = (self.root / file).read_text(encoding="utf-8")
        parts, end = [], 0
        for fence in FENCE.finditer(source):
            parts += [self._linked(file, source[end : fence.start()]), fence[0]]
            end = fence.end()
        return "".join([*parts, self._linked(file, source[end:])])

    def linked_pages(self, file: str, text: str) -> dict[str, str]:
        """File and words of the links to pages in ``text`` of the page ``file``, each page once."""
        pages: dict[str, str] = {}
        for words, target in LINK.findall(FENCE.sub("", text)):
            found = self._file(file, target.partition("#")[0])
            if found in self.places:
                pages.setdefault(found, " ".join(words.replace("`", "").split()))
        return pages

    def _linked(self, file: str, text: str) -> str:
        return TARGET.sub(lambda match: self._place(file, match[1]), text)

    def _place(self, file: str, target: str) -> str:
        name, hash_, anchor = target.partition("#")
        found = self._file(file, name)
        if found is None:
            return target
        if found not in self.places:
            self.copies.add(found)
        here = Path(self.places[file]).parent
        there = self.places.get(found, f"files/{found}")
        return Path(os.path.relpath(there, here)).as_posix() + hash_ + anchor

    def _file(self, file: str, name: str) -> str | None:
        """The file of the repository that the link ``name`` of ``file`` names; None where it is none."""
        if not name or re.match(r"[a-z]+:", name):
            return None
        path = (self.root / file).parent / name
        path = path / "README.md" if path.is_dir() else path
        resolved = path.resolve()
        if not resolved.is_file() or not resolved.is_relative_to(self.root):
            raise BrokenLinkError(f"{file} links to {name}, which is no file of the repository")
        return resolved.relative_to(self.root).as_posix()

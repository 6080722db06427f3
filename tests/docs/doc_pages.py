"""The pages of the documentation as tests read them: files, fenced blocks and links."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("packages/*/README.md"),
    ]
)
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its page, the line on which its text begins, its language and the text."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path, *languages: str) -> list[Block]:
    """The blocks of ``page`` in one of ``languages``, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, match.start(3)) + 1, match[2], match[3])
        for match in FENCE.finditer(text)
        if match[2] in languages
    ]


def all_blocks(*languages: str) -> list[Block]:
    """The blocks of every page."""
    return [block for page in PAGES for block in blocks_of(page, *languages)]


def prose(page: Path) -> str:
    """The page without its blocks; lines keep their numbers."""
    return FENCE.sub(lambda match: "\n" * match[0].count("\n"), page.read_text(encoding="utf-8"))


def linked(page: Path) -> set[Path]:
    """The files of the repository that ``page`` links to."""
    targets = (target.partition("#")[0] for target in LINK.findall(prose(page)))
    return {(page.parent / target).resolve() for target in targets if target and ":" not in target}

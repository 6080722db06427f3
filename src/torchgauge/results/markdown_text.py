"""Text that nobody controls as Markdown that does nothing: no link, no mention, no HTML, no new cell.

GitHub's Markdown acts in many places: bars end cells, ``@name`` notifies a person, ``#1`` links, and HTML is
kept in part. Inside a code span nothing acts but a backtick and, in a table, a bar. A text with one of those
becomes ``<code>`` with every sign written as a number, which no parser takes for a sign.
"""

from __future__ import annotations

import re

from torchgauge.results.hostile_text import visible
from torchgauge.results.units import shortened

_PLAIN = re.compile(r"[^`|\\\n]+")
_FENCED = 4000
_SIGN = re.compile(r"[^A-Za-z0-9 \u00a0-\U0010ffff]")


def code(text: str, limit: int = 160) -> str:
    """``text`` on one line in a code span, cut to ``limit`` characters; nothing in it acts."""
    line = one_line(text, limit)
    if not line:
        return ""
    if _PLAIN.fullmatch(line):
        return f"`{line}`"
    return f"<code>{_SIGN.sub(lambda sign: f'&#{ord(sign.group())};', line)}</code>"


def one_line(text: str, limit: int) -> str:
    """The visible part of ``text`` on one line, cut to ``limit`` characters with three dots."""
    return shortened(" ".join(visible(text[: 8 * limit]).split()), limit)


def fenced(text: str) -> str:
    """``text`` in a code block whose fence is longer than any run of backticks in it."""
    shown = visible(text)
    shown = shown if len(shown) <= _FENCED else shown[: _FENCED - 3] + "..."
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{shown}\n{fence}"


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    """The lines of a table of cells that are Markdown already."""
    return [row_line(cells) for cells in (header, ["---"] * len(header), *rows)]


def row_line(cells: list[str]) -> str:
    """One row of a table."""
    return f"| {' | '.join(cells)} |"

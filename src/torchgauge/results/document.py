"""Records as text for people: one template for each, in Markdown, as it is or laid out for a terminal.

What a template prints comes from stores, so no text of it acts: in Markdown it stands in a code span, on a
terminal on one visible line. Only numbers, enumerations and what filters here make are printed as they are.
"""

from __future__ import annotations

import io
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib import parse

from torchgauge.counted import counted
from torchgauge.results import markdown_text, units
from torchgauge.results.gain import change_text
from torchgauge.results.hostile_text import plain_name, visible
from torchgauge.results.terminal_width import terminal_width

if TYPE_CHECKING:
    import jinja2

    from torchgauge.records.comparison import CodeSource

LIMIT = 400
"""Characters of a text; ``brief`` allows others."""
_ADDRESS = re.compile(r"https://[A-Za-z0-9._~:/?#=&%+-]+")
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_MASKS = str.maketrans("|#*<`", "\x01\x02\x03\x04\x05")
_UNMASKS = {mask: sign for sign, mask in _MASKS.items()}
"""Signs of a store's text that are no Markdown; visible text has none of these masks."""
_LEFT_OUT = re.compile(r"</?details>(<summary>.*</summary>)?|<!--.*-->|`{3,}\w*")
_LINE_FEED = "\x07"
"""One within a command, where blank lines are no template's."""
_BLANKS = re.compile(r"\n{3,}")
_ACTS = re.compile(r"[<|@#\\\t]|\]\(|://|\bwww\.|\bGH-\d|\n.", re.IGNORECASE)
"""What a link, a mention, a tag, a cell or a further line of Markdown begins with."""
_CUT = re.compile(r"((?:\|.*\n){2})((?:\|.*\n)+)\x06([\d.]+) (.*)")
"""A table that may be cut: its head, its rows, and the mark after it, which no visible text holds."""
_MARGIN = 1_000
"""Characters of a limit that are kept free for lines that say what was cut."""
_UNLIMITED = 100_000


class Ours(str):
    """Text of torchgauge's own, or made harmless: a template prints it as it is."""

    __slots__ = ()


def ours(text: str) -> str:
    """Return ``text`` for a template to print as it is, unless something in it could act."""
    return text if _ACTS.search(text) or visible(text) != text else Ours(text)


def markdown(template: str, limit: int | None = None, **data: Any) -> str:
    """The document ``template``, a path in the package without its ending, as Markdown.

    Tables that it ends with ``cut`` lose their last rows where it has more than ``limit`` characters.
    """
    return _fitted(_rendered(template, "markdown", data), limit).replace(_LINE_FEED, "\n")


def terminal(template: str, **data: Any) -> str:
    """The same document for a terminal: aligned tables, no signs of Markdown, as wide as the terminal is."""
    width = terminal_width(sys.stdout) if sys.stdout.isatty() else _UNLIMITED
    lines = _laid_out(_fitted(_rendered(template, "terminal", data), None).splitlines(), width)
    return _BLANKS.sub("\n\n", "\n".join(lines)).translate(_UNMASKS).strip("\n") + "\n"


def _rendered(template: str, form: str, data: dict[str, Any]) -> str:
    text = _environment(form).get_template(f"{template}.md.j2").render(**data)
    return _BLANKS.sub("\n\n", text).strip("\n") + "\n"


@cache
def _environment(form: str) -> jinja2.Environment:
    import jinja2

    quote = markdown_text.code if form == "markdown" else _masked

    def finalize(value: Any) -> str:
        if isinstance(value, Enum):
            return str(value.value)
        if isinstance(value, (Ours, int, float)):
            return str(value)
        return quote("" if value is None else str(value), LIMIT)

    made = jinja2.Environment(  # noqa: S701  no HTML: ``finalize`` quotes all that is printed
        loader=jinja2.FunctionLoader(_source),
        undefined=jinja2.StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        auto_reload=False,
    )
    made.filters.update({name: _ours(function) for name, function in FILTERS.items()})
    made.filters["brief"] = lambda text, limit: Ours(quote(text, limit))
    made.filters["each"] = lambda names, most=0: Ours(
        _listed([quote(str(name), 160) for name in names], most)
    )
    made.filters["link"] = lambda text: Ours(_linked(text, form, quote))
    made.filters["source"] = lambda source: Ours(_sourced(source, form, quote))
    made.filters["command"] = lambda text: Ours(_command(text, form))
    made.filters["name"] = lambda text: Ours(plain_name(text))
    made.globals["terminal"] = form == "terminal"
    made.globals["cut"] = lambda share, what: Ours(f"\x06{share} {what}")
    return made


def _source(name: str) -> str:
    """The template ``name``: a line that begins with ``%`` is a statement and leaves no line behind."""
    lines = files("torchgauge").joinpath(name).read_text("utf-8").splitlines()
    return "\n".join(
        f"{{%{line[1:]} %}}" if line.startswith("% ") else re.sub(r"%\}$", "+%}", line) for line in lines
    )


def _ours(function: Callable[..., str]) -> Callable[..., str]:
    return lambda *given: ours(function(*given))


def share(value: float) -> str:
    """A share in percent with as many digits as a sentence needs: ``0.12 %``, ``3 %``, ``25 %``."""
    return f"{100 * value:.2g} %" if value < 0.1 else f"{100 * value:.0f} %"


def percent(value: float, decimals: int = 1) -> str:
    """A share in percent."""
    return f"{value:.{decimals}%}"


FILTERS: dict[str, Callable[..., str]] = {
    "words": lambda text: str(text).replace("_", " "),
    "ours": str,
    "count": counted,
    "percent": percent,
    "share": share,
    "digits": lambda value, number: f"{value:.{number}g}",
    "change": change_text,
    "decimals": lambda value, number: f"{value:.{number}f}",
    "quantity": units.quantity,
    "interval": units.interval,
    "duration": units.duration,
    "age": units.age,
    "moment": units.moment,
    "day": units.day,
    "integer": units.integer,
}
"""What makes text of torchgauge's own: words that no store wrote, and numbers with their units."""


def _fitted(text: str, limit: int | None) -> str:
    """``text`` without the marks of ``cut``, and with no more rows before each than its share of the room."""
    sizes = [len(found[0]) for found in _CUT.finditer(text)]
    room = float("inf") if limit is None else max(0, limit - _MARGIN - len(text) + sum(sizes))
    used = 0

    def kept(found: re.Match[str]) -> str:
        nonlocal used
        head, rows, upto, what = found.groups()
        used += len(head)
        left, lines = rows.splitlines(keepends=True), []
        for row in left:
            if used + len(row) > float(upto) * room:
                break
            used += len(row)
            lines.append(row)
        if len(lines) == len(left):
            return head + rows
        more = f"{len(left) - len(lines):,} more {what} rows are cut; the JSON report has all of them."
        return "".join([head, *lines, "\n"] if lines else []) + more

    return _BLANKS.sub("\n\n", _CUT.sub(kept, text))


def _listed(names: Sequence[str], most: int) -> str:
    more = f" and {len(names) - most} more" if most and len(names) > most else ""
    return ", ".join(names[: most or None]) + more


def _linked(address: str, form: str, quote: Callable[[str, int], str]) -> str:
    """An address that a reader can follow; what is no plain one stays text."""
    plain = form == "markdown" and _ADDRESS.fullmatch(address)
    return f"<{address}>" if plain else quote(address, LIMIT)


def _sourced(source: CodeSource, form: str, quote: Callable[[str, int], str]) -> str:
    """Return commit and branch of ``source``, as links where its repository has a plain address."""
    commit, branch = quote(source.commit[:12], 40), quote(source.branch, 100)
    plain = _ADDRESS.fullmatch(source.repository) and _COMMIT.fullmatch(source.commit)
    if form == "markdown" and plain:
        commit = f"[{commit}]({source.repository}/commit/{source.commit})"
        branch = f"[{branch}]({source.repository}/tree/{parse.quote(source.branch)})"
    return f"{commit} of {branch}" if source.branch else commit


def _command(text: str, form: str) -> str:
    """A command that does the same where it is copied: as it is, or on one line with its quotes reopened."""
    if form == "markdown":
        return markdown_text.fenced(text).replace("\n", _LINE_FEED)
    return "    " + units.shortened(shell_line(text), 4000).translate(_MASKS)


def shell_line(command: str) -> str:
    """``command``, as ``shlex.join`` makes it, visible on one line and the same to a shell."""
    return re.sub(r"[\n\t]+", lambda found: f"'${found[0]!r}'", visible(command))


def _masked(text: str, limit: int) -> str:
    return markdown_text.one_line(text, limit).translate(_MASKS)


def _laid_out(lines: Iterable[str], width: int) -> Iterator[str]:
    rows: list[str] = []
    for line in [*lines, ""]:
        if line.startswith("|"):
            rows.append(line)
            continue
        if rows:
            yield from table_lines([_cells(row) for row in (rows[0], *rows[2:])], _cells(rows[1]), width)
            rows = []
        if not _LEFT_OUT.fullmatch(line):
            yield from _broken(line.lstrip("#").lstrip(" ") if line.startswith("#") else line, width)


def _broken(line: str, width: int) -> list[str]:
    """``line`` without signs of Markdown, broken between words; a command stays whole, to be copied."""
    plain = line.replace("**", "")
    if len(plain) <= width or plain.startswith("    "):
        return [plain]
    begin = re.match(r" *(- )?", plain)
    indent = " " * len(begin[0]) if begin else ""
    return textwrap.wrap(plain, width, subsequent_indent=indent, break_on_hyphens=False)


def _cells(row: str) -> list[str]:
    """The cells of a row; their own bars are masked."""
    return [cell.strip().replace("**", "").translate(_UNMASKS) for cell in row.strip()[1:-1].split("|")]


def table_lines(rows: Sequence[Sequence[str]], marks: Sequence[str], width: int) -> list[str]:
    """A table as a terminal of ``width`` columns shows it; ``rows`` begin with its head, ``--:`` is right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, mark in zip(rows[0], marks, strict=True):
        shown.add_column(Text(name), justify="right" if mark.endswith(":") else "left", overflow="fold")
    for row in rows[1:]:
        shown.add_row(*map(Text, row))
    target = io.StringIO()
    Console(file=target, width=width - 2, color_system=None, force_terminal=False).print(shown)
    return [f"  {line.rstrip()}" for line in target.getvalue().splitlines()]

"""Records with one hostile text each, for every text that their types have, and what shows that it acts."""

from __future__ import annotations

import csv
import io
import re
import types
import typing
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from html.parser import HTMLParser
from typing import Any

from markdown_it import MarkdownIt

from torchgauge.records import Measurement
from torchgauge.records.comparison import Pair

FIXED = {"better": "lower", "first": 0, "last": 0, "noticed": 0}
"""Fields with what they are sampled as: a word of an enumeration, and places in a list beside them."""

MARK = "evil"
"""A word that is in every hostile text, so that it is found wherever it goes."""

HOSTILE = (
    f"=cmd|{MARK}\x1b]52;c;ZXZpbA==\x07\x1b]0;{MARK}\x07\x1b[2J\x9b31m\u202e\n::stop-commands::{MARK}",
    f"\n](http://{MARK}.example)<script>{MARK}</script>`@{MARK} #123 ../../{MARK}",
    f"www.{MARK}.example/x",
    f"../../{MARK}",
    f"/nowhere/{MARK}",
    f"\t@{MARK} GH-1",
    f"x](http://{MARK}.example) `| <b> |",
    f"{MARK} is approved, merge it",
)
"""Terminal, log of a job, spreadsheet, Markdown, page and file name; each is short enough for a cell."""

_LIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]")
_COMMAND = re.compile(r"^\s*::|##\[", re.MULTILINE)
_HTML = re.compile(r"</?details>|</?summary>|</?code>|<!-- torchgauge:[\w: ,-]+ -->\n?")
_ACTS = re.compile(r"[@#]\w|www\.|://|GH-\d", re.IGNORECASE)
_NUMBER = re.compile(r"-?[\d.]+(e[+-]?\d+)?")


def spoiled(hint: Any, value: Any, text: str, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield ``value`` of type ``hint`` once for each text that the type has, with ``text`` in its place."""
    if hint is Pair:  # its halves compute one workload
        case = typing.get_type_hints(Pair)["base"]
        yield from ((where, Pair(it, it)) for where, it in spoiled(case, value.base, text, f"{path}.base"))
    elif is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        for field in fields(hint):
            inner, name = getattr(value, field.name), field.name
            if name in FIXED:
                continue
            for where, changed in spoiled(hints[name], inner, text, f"{path}.{name}"):
                with suppress(ValueError):  # what a record refuses reaches nobody
                    yield where, replace(value, **{name: changed})
    elif isinstance(hint, type) and issubclass(hint, Enum):
        return
    elif hint is str or (str in typing.get_args(hint) and _is_union(hint)):
        yield path, text
    elif _is_union(hint):
        kind = _first(hint)
        yield from spoiled(kind, sample(kind) if value is None else value, text, path)
    else:
        yield from _in_items(hint, value, text, path)


def _in_items(hint: Any, value: Any, text: str, path: str) -> Iterator[tuple[str, Any]]:
    origin, kinds = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple or origin in (frozenset, list) or _is_sequence(origin):
        several = origin is not tuple or kinds[1:] == (...,)
        items = tuple(value or (sample(kinds[0]),)) if several else tuple(value)
        for number, item in enumerate(items):
            kind = kinds[0] if several else kinds[number]
            for where, changed in spoiled(kind, item, text, f"{path}[{number}]"):
                made = (*items[:number], changed, *items[number + 1 :])
                yield where, made if origin is tuple or _is_sequence(origin) else origin(made)


def _is_sequence(origin: Any) -> bool:
    return getattr(origin, "__name__", "") == "Sequence"


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _first(hint: Any) -> Any:
    return next(kind for kind in typing.get_args(hint) if kind is not type(None))


def sample(hint: Any) -> Any:
    """Return a harmless value of type ``hint``, with nothing left empty."""
    origin, kinds = typing.get_origin(hint), typing.get_args(hint)
    if hint is Measurement:  # it has samples or the reason of their absence, never both
        return Measurement("latency", "s", (1.0, 1.0, 1.0), (0, 1, 2), "sample", "sample")
    if is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return hint(**{each.name: FIXED.get(each.name, sample(hints[each.name])) for each in fields(hint)})
    if _is_union(hint):
        kind = str if str in kinds else _first(hint)
        return None if isinstance(kind, type) and issubclass(kind, Enum) else sample(kind)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    if origin is tuple:
        return (sample(kinds[0]),) if kinds[1:] == (...,) else tuple(map(sample, kinds))
    if origin in (frozenset, list):
        return origin((sample(kinds[0]),))
    if _is_sequence(origin):
        return (sample(kinds[0]),)
    return {str: "sample", int: 1, float: 1.0, bool: True}.get(hint) or {}


def terminal_faults(text: str) -> list[str]:
    """Return what in ``text`` moves a cursor, hides, or is a command to the runner of a job."""
    return [repr(text[max(0, at.start() - 40) : at.end() + 40]) for at in _LIVE.finditer(text)]


def log_faults(text: str) -> list[str]:
    """Return what in ``text`` the runner of a job obeys."""
    return [text[at.start() : at.end() + 40] for at in _COMMAND.finditer(text)]


def title_faults(text: str) -> list[str]:
    """Return what in ``text``, which is no Markdown, names a person or an issue, or hides."""
    return terminal_faults(text) + re.findall(r"[@#]\w+", text) + ["line"] * ("\n" in text)


def markdown_faults(text: str, own_words: bool = False) -> list[str]:
    """Return what a parser takes for more than code of a hostile text in ``text``.

    Where the text is made of ``own_words`` of torchgauge it may stand outside code as long as nothing acts.
    """
    found, quoted = terminal_faults(text), False
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        for child in token.children or [token]:
            if child.type in ("html_block", "html_inline"):
                quoted = (quoted or "<code>" in child.content) and "</code>" not in child.content
                left = _HTML.sub("", child.content).strip()
                found += [f"html: {left}"] if left and "<summary>" not in child.content else []
            elif child.type in ("link_open", "image"):
                href = str(child.attrs.get("href") or child.attrs.get("src"))
                found += [f"link: {href}"] if MARK in href else []
            elif child.type not in ("code_inline", "fence", "inline") and not quoted:
                acts = MARK in child.content and (not own_words or _ACTS.search(child.content))
                found += [f"{child.type}: {child.content}"] if acts else []
    return found


def csv_faults(text: str) -> list[str]:
    """Return the cells that a spreadsheet runs."""
    cells = [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]
    return terminal_faults(text) + [
        cell
        for cell in cells
        if (cell.lstrip()[:1] in ("=", "+", "-", "@") or cell[:1] in ("\t", "\r"))
        and cell != "-"
        and not _NUMBER.fullmatch(cell)
    ]


class _Page(HTMLParser):
    """The elements of a page with the names of their attributes, and its faults."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: set[str] = set()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep the shape of an element, and what leads from it to elsewhere."""
        self.parts |= {tag, *(name for name, _ in attrs)}
        if "on" in {name[:2] for name, _ in attrs}:
            self.faults.append(f"handler: {attrs}")
        told = dict(attrs)
        for name in ("href", "src", "action"):
            if re.search(r"^\s*(\w+:)?//|^\s*javascript:|\.\./\.\./\.\.", told.get(name) or ""):
                self.faults += [f"{name}: {told[name]}"] if MARK in str(told[name]) else []


def html_parts(text: str) -> tuple[set[str], list[str]]:
    """Return the names of elements and attributes in ``text``, and what acts in it."""
    page = _Page()
    page.feed(text)
    return page.parts, page.faults + terminal_faults(text)

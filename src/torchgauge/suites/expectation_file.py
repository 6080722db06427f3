"""A file of expectations as text that can be edited: what a person wrote stays as it was written.

Why not load and dump: that would lose comments, the order of fields and how a reason is folded, and nobody
reads a diff in which every line has changed.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from torchgauge.errors import DataFileError
from torchgauge.records import Status
from torchgauge.suites.document import parse_document, text_of
from torchgauge.suites.expectations import ExpectationTable, expectations_of

MARK = "# torchgauge expect:"
"""How the comments begin that ``torchgauge suites expect`` writes, and replaces."""

_WIDTH = 110
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_PLAIN_LINK = re.compile(r"https?://[A-Za-z0-9/._~?&=%#+@,-]+")
_NOT_PLAIN = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_DASH = re.compile(r"( *)-(?: |$)")
_BREAKS = re.compile("[\x85\u2028\u2029]|\r(?!\n)")
"""Line breaks of YAML that no editor shows as such."""
_EMPTY = re.compile(r"expectations:\s*\[\s*\]\s*(#.*)?$")
_KEY = re.compile(r"expectations:\s*(#.*)?$")


@dataclass(frozen=True)
class NewEntry:
    """An entry to be written; ``selectors`` are field and plain value, ``link`` may be empty for a draft."""

    status: Status
    selectors: tuple[tuple[str, str], ...]
    reason: str
    link: str
    date: str
    cause: str


@dataclass(frozen=True)
class Edits:
    """What becomes of a file: entries by index to remove, to mark with a sentence, and to put before.

    ``causes`` are recorded in entries that have none.
    """

    removed: frozenset[int] = frozenset()
    marks: Mapping[int, str] = field(default_factory=dict)
    causes: Mapping[int, str] = field(default_factory=dict)
    before: Mapping[int, Sequence[NewEntry]] = field(default_factory=dict)
    appended: Sequence[NewEntry] = ()
    looked_at: frozenset[int] = frozenset()
    """Entries that results say something of: a mark of an earlier update goes where there is no new one."""

    @property
    def new(self) -> tuple[NewEntry, ...]:
        """All entries to be written."""
        return (*(entry for _, group in sorted(self.before.items()) for entry in group), *self.appended)


@dataclass(frozen=True)
class ExpectationFile:
    """The text of a file, its entries, and the lines of each: from its dash to before the end, from 0."""

    path: Path
    text: str
    table: ExpectationTable
    spans: tuple[tuple[int, int], ...]

    def edited(self, edits: Edits) -> str:
        """The text after ``edits``; lines of entries that stand are the same to the letter."""
        lines = self.text.splitlines(keepends=True)
        end_of_line = "\r\n" if "\r\n" in self.text else "\n"
        if lines and not lines[-1].endswith(("\n", "\r")):
            lines[-1] += end_of_line
        dash = _indent(lines[self.spans[0][0]]) if self.spans else 2
        out: list[str] = []
        at = 0
        for place, (start, end) in enumerate(self.spans):
            gap = lines[at:start]
            if place in edits.looked_at:
                gap = [line for line in gap if not line.lstrip().startswith(MARK)]
            out += gap
            out += _written(edits.before.get(place, ()), dash)
            if place in edits.marks:
                out += _comment(edits.marks[place], dash)
            if place not in edits.removed:
                out += lines[start:end]
            if place in edits.causes:
                first = lines[start + (lines[start].strip() == "-")]
                indent = first[: len(first) - len(first.lstrip(" -"))].replace("-", " ")
                out += [line + "\n" for line in _folded("cause", edits.causes[place], indent)]
            at = end
        left = len(self.spans) - len(edits.removed)
        if not self.spans:
            at = next(number for number, line in enumerate(lines) if line.startswith("expectations:")) + 1
            out += lines[:at]
        out += _written(edits.appended, dash)
        whole = [*out, *lines[at:]]
        number = next(number for number, line in enumerate(whole) if line.startswith("expectations:"))
        whole[number] = _head(whole[number], empty=not left and not edits.new)
        return "".join(line.rstrip("\r\n") + end_of_line for line in whole)


def parse_file(text: str, path: Path) -> ExpectationFile:
    """``text`` as the file at ``path``; raises :class:`DataFileError` where it is wrong or not in blocks."""
    document = parse_document(text, str(path))
    table = expectations_of(document)
    lines = text.splitlines()
    if _BREAKS.search(text):
        raise _unreadable(path, None)
    heads = [line for line in lines if line.startswith("expectations:")]
    if not heads or not (_EMPTY if not table.entries else _KEY).match(heads[0]):
        raise _unreadable(path, document.lines.get("$.expectations"))
    spans: list[tuple[int, int]] = []
    for place in range(len(table.entries)):
        start = document.lines[f"$.expectations[{place}]"] - 1
        while start >= 0 and not _DASH.match(lines[start]):
            start -= 1  # a dash on a line of its own
        if start < 0 or (spans and start < spans[-1][1]):
            raise _unreadable(path, document.lines[f"$.expectations[{place}]"])
        spans.append((start, _end(lines, start)))
    return ExpectationFile(path, text, table, tuple(spans))


def read_file(path: Path) -> ExpectationFile:
    """The file at ``path``; raises what :func:`parse_file` raises."""
    return parse_file(text_of(path), path)


def new_file(device: str, path: Path) -> ExpectationFile:
    """An empty file about ``device``, which is not on disk yet."""
    text = (
        "# Expected statuses of cases on this device, other than `pass`. The first entry that selects a\n"
        "# case counts.\n"
        "# `case` is a pattern on the case id; the other selectors are patterns on its fields.\n"
        f"device: {_scalar(device)}\nexpectations: []\n"
    )
    return parse_file(text, path)


def _head(line: str, *, empty: bool) -> str:
    """The line of the key, with ``[]`` exactly where nothing follows."""
    comment = line.partition("#")[2].strip()
    return " ".join(filter(None, ("expectations:", "[]" if empty else "", f"# {comment}" if comment else "")))


def _end(lines: Sequence[str], start: int) -> int:
    """The line after the last one of the entry that begins at ``start``."""
    dash = _indent(lines[start])
    last = start
    for number in range(start + 1, len(lines)):
        line = lines[number]
        if line.strip():
            if _indent(line) <= dash:
                break
            last = number
    return last + 1


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _written(entries: Sequence[NewEntry], dash: int) -> list[str]:
    return [line + "\n" for entry in entries for line in _entry_lines(entry, " " * dash)]


def _entry_lines(entry: NewEntry, indent: str) -> list[str]:
    fields = [
        ("status", entry.status.value),
        *((name, _scalar(value)) for name, value in entry.selectors),
        ("cause", entry.cause),
        ("reason", entry.reason),
        ("link", _link(entry.link)),
        ("date", entry.date),
    ]
    lines: list[str] = []
    for name, value in fields:
        lead = f"{indent}- " if not lines else f"{indent}  "
        long = name in ("cause", "reason")
        lines += _folded(name, value, f"{indent}  ") if long else [f"{lead}{name}: {value}"]
    return lines


def _folded(name: str, text: str, indent: str) -> list[str]:
    """Return the field ``name`` on one line where it fits, else folded; both read back as ``text``."""
    line = f"{indent}{name}: {_quoted(text)}"
    if len(line) <= _WIDTH or text != " ".join(text.split()):  # folding keeps no other space
        return [line]
    inside = indent + "  "
    folded = textwrap.wrap(
        text, _WIDTH - len(inside), break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )
    return [f"{indent}{name}: >-", *(inside + part for part in folded)]


def _comment(text: str, dash: int) -> list[str]:
    lead = f"{' ' * dash}{MARK} "
    parts = textwrap.wrap(text, _WIDTH - len(lead), break_long_words=False, break_on_hyphens=False)
    return [f"{lead}{part}\n" for part in parts]


def _scalar(text: str) -> str:
    plain = _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN
    return text if plain else _quoted(text)


def _link(text: str) -> str:
    return (text if _PLAIN_LINK.fullmatch(text) else _quoted(text)) if text else "MISSING"


def _quoted(text: str) -> str:
    """``text`` between double quotes, on one line, whatever is in it."""
    return str(yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10**9)).rstrip("\n")


def _unreadable(path: Path, line: int | None) -> DataFileError:
    return DataFileError(
        str(path),
        "the entries are not in YAML block style, so they cannot be rewritten line by line",
        line=line,
        field="expectations",
        hint="write one `- status: ...` per entry below `expectations:`, or `expectations: []`",
    )

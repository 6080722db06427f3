"""All mistakes of a data file at once: what is wrong is taken out, and the rest is read again.

A loader stops at the first mistake, since what follows may rest on it. Entries (the items of a list, or the
keys of a mapping, at the top of a file) mostly do not rest on each other: the one with the mistake is made
blank, which keeps every other line where it is. So is a section that no such file has.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from torchgauge.errors import DataFileError
from torchgauge.suites.document import Document, parse_document, read_document, text_of

MOST = 50
"""Mistakes of one file after which nobody reads on."""
_ENTRY = re.compile(r"\$\.(?P<section>[^.\[]+)(?:\[\d+\]|\.[^.\[]+)")
_ITEM = re.compile(r"[^.\[]+\[\d+\]")
_SECTION = re.compile(r"\$\.[^.\[]+")


def mistakes_in(path: Path, check: Callable[[Path], None]) -> list[DataFileError]:
    """The mistakes that ``check`` finds in the file ``path``, from the first line to the last."""
    found: list[DataFileError] = []
    with tempfile.TemporaryDirectory(prefix="torchgauge-validate-") as folder:
        looked_at, copy = path, Path(folder) / path.name
        while len(found) < MOST:
            try:
                check(looked_at)
            except DataFileError as error:
                if any(each.line == error.line and each.field == error.field for each in found):
                    return _sorted(found)  # what is left rests on what was taken out
                found.append(error if looked_at == path else _of_file(error, str(looked_at), path))
            else:
                return _sorted(found)
            try:
                rest = _without(looked_at, found[-1])
            except DataFileError:
                return _sorted(found)  # not even YAML
            if rest is None:
                return _sorted(found)
            copy.write_text(rest, encoding="utf-8")
            looked_at = copy
    return _sorted(found)


def _sorted(found: list[DataFileError]) -> list[DataFileError]:
    return sorted(found, key=lambda each: each.line or 0)


def _of_file(error: DataFileError, looked_at: str, path: Path) -> DataFileError:
    """``error`` about the file ``path``, of which ``looked_at`` is a copy that lacks items of its lists."""
    document = read_document(path)
    there = _entries(document)
    start = _start(there, error.line)
    entry = _ITEM.match(error.field)
    field = error.field
    if start is not None and entry is not None:
        field = there[start].removeprefix("$.") + field.removeprefix(entry[0])
    again = DataFileError(str(path), "", line=error.line, field=field, hint=error.hint)
    again.message = error.message.replace(looked_at, str(path)).replace(f"`{error.field}`", f"`{field}`")
    again.args = (again.message,)
    return again


def _without(path: Path, error: DataFileError) -> str | None:
    """The text of ``path`` with the entry that ``error`` is in made blank; None where it is in none alone.

    A section that nobody knows goes whole, unless it is another one misspelt, or all of the file.
    """
    text, line = text_of(path), error.line
    document = parse_document(text, str(path))
    begins = _entries(document)
    heads = {at for name, at in document.lines.items() if _SECTION.fullmatch(name)}
    start = line if _nothing_rests_on(error, document) else None
    if start is None:
        start = _start(begins, line)
        if line is None or start is None or _alone(document, begins[start]):
            return None
        if any(start < at <= line for at in heads):
            return None  # the mistake is a section's own
        heads |= begins.keys()
    lines = text.splitlines(keepends=True)
    end = min((at for at in heads if at > start), default=len(lines) + 1)
    lines[start - 1 : end - 1] = ["\n"] * (end - start)
    return "".join(lines)


def _nothing_rests_on(error: DataFileError, document: Document) -> bool:
    """Whether ``error`` is about a section that no such file has, and that stands on lines of its own."""
    sections = {name: at for name, at in document.lines.items() if _SECTION.fullmatch(name)}
    if f"unknown field {error.field!r}" not in error.message or f"$.{error.field}" not in sections:
        return False
    meant = re.search(r"did you mean (.+)\?", error.message)
    there = meant is None or f"$.{meant[1]}" in sections
    return there and 1 < len(sections) == len(set(sections.values()))


def _entries(document: Document) -> dict[int, str]:
    """The names of entries by the lines that they begin in."""
    return {at: name for name, at in document.lines.items() if _ENTRY.fullmatch(name)}


def _start(entries: Iterable[int], line: int | None) -> int | None:
    """The line in which the entry that ``line`` is in begins; None where it is in none."""
    return max((at for at in entries if line is not None and at <= line), default=None)


def _alone(document: Document, name: str) -> bool:
    """Whether nothing of its section would be left without the entry ``name``."""
    section = _ENTRY.sub(r"$.\g<section>", name)
    return sum(bool(_ENTRY.fullmatch(each)) and each.startswith(section) for each in document.lines) < 2

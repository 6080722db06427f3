"""Read strict YAML: plain values and the line of every field, nothing else.

Why our own constructor over PyYAML's events: the loaders of PyYAML accept duplicate keys, aliases and
tags, read ``no`` as false and ``1e-4`` as a string, and forget where a value stood. Here a scalar is
what YAML 1.2's core schema says it is, and everything that could hide a mistake is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from torchgauge.errors import DataFileError

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NAME_ONE = "pass a YAML file; docs/reference/yaml.md describes each kind of file"
MOST_LEVELS = 64
"""Mappings and lists in one another that a file may have: everything that reads the value recurses."""
MOST_KEY = 1024
"""Characters of a key: as many as YAML takes where a key has no mark of its own."""
MOST_NUMBER = 400
"""Characters of a number: what a float holds has no more before its point. Python reads 4,300 digits."""
_NULL = frozenset({"", "~", "null"})
_BOOLEANS = {"true": True, "false": False}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


@dataclass(frozen=True)
class Document:
    """The plain value of a file and the line of each field path, such as ``$.models[3].batch``.

    A part of a file has its ``root`` there; paths are given as if the part were the whole.
    """

    file: str
    value: object
    lines: dict[str, int]
    root: str = "$"

    def part(self, *names: str) -> Document:
        """What stands below the mapping keys ``names``, for keys that may hold any character."""
        value: object = self.value
        for name in names:
            assert isinstance(value, dict)
            value = value[name]
        return Document(self.file, value, self.lines, ".".join((self.root, *names)))

    def whole_path(self, path: str) -> str:
        """``path`` from the beginning of the file."""
        return self.root + path.removeprefix("$")

    def line_of(self, path: str) -> int | None:
        """The line of ``path``, or of its nearest ancestor that has one."""
        path = self.whole_path(path)
        while path not in self.lines:
            cut = max(path.rfind("."), path.rfind("["))
            if cut <= 0:
                return self.lines.get("$")
            path = path[:cut]
        return self.lines[path]


def read_document(path: Path) -> Document:
    """The strict YAML in the file ``path``; raises :class:`DataFileError`."""
    return parse_document(text_of(path), str(path))


def text_of(path: Path) -> str:
    """Return the text of the file ``path``, with the ends of its lines; raises :class:`DataFileError`."""
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise DataFileError(str(path), "cannot be read: it is not a file", hint=_NAME_ONE)
        return path.read_bytes().decode()
    except OSError as error:
        raise DataFileError(str(path), f"cannot be read: {error.strerror}", hint=_NAME_ONE) from error
    except UnicodeDecodeError as error:
        raise DataFileError(str(path), f"is not UTF-8: {error.reason}", hint=_NAME_ONE) from error


def parse_document(text: str, file: str) -> Document:
    """The strict YAML ``text``, called ``file`` in messages; raises :class:`DataFileError`."""
    reader = _Reader(file, iter(yaml.parse(text, Loader=_LOADER)))
    try:
        value = reader.document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise DataFileError(
            file,
            f"not valid YAML: {error.problem or error.context}",
            line=mark.line + 1 if mark else None,
            hint="indent with spaces, and quote a text that contains ': ' or '#'",
        ) from error
    except yaml.YAMLError as error:
        raise DataFileError(
            file, f"not valid YAML: {' '.join(str(error).split())}", hint=_NAME_ONE
        ) from error
    return Document(file, value, reader.lines)


@dataclass
class _Reader:
    file: str
    events: Iterator[Any]
    lines: dict[str, int] = field(default_factory=dict)

    def document(self) -> object:
        self._expect(yaml.StreamStartEvent)
        event = next(self.events)
        if isinstance(event, yaml.StreamEndEvent):
            raise DataFileError(self.file, "is empty", hint=_NAME_ONE)
        value = self._value(next(self.events), "$")
        self._expect(yaml.DocumentEndEvent)
        event = next(self.events)
        if not isinstance(event, yaml.StreamEndEvent):
            self._refuse(event, "$", "a second document", "keep one document per file")
        return value

    def _value(self, event: Any, path: str, level: int = 0) -> object:
        self.lines.setdefault(path, event.start_mark.line + 1)
        if isinstance(event, yaml.AliasEvent):
            self._refuse(event, path, f"the alias *{event.anchor}", "write the value out where it is needed")
        if event.anchor is not None:
            self._refuse(event, path, f"the anchor &{event.anchor}", "write the value out where it is needed")
        if event.tag is not None:
            self._refuse(event, path, f"the tag {event.tag}", "plain values need no tag")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path)
        if level == MOST_LEVELS:
            self._refuse(event, path, f"more than {MOST_LEVELS} levels", "nest fewer mappings and lists")
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, level + 1)
        return self._mapping(path, level + 1)

    def _sequence(self, path: str, level: int) -> list[object]:
        items: list[object] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self._value(event, f"{path}[{len(items)}]", level))
        return items

    def _mapping(self, path: str, level: int) -> dict[str, object]:
        items: dict[str, object] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                self._refuse(event, path, "a key that is not a name", "use one word as key")
            key = str(event.value)
            below = f"{path}.{key}"
            line = event.start_mark.line + 1
            if len(key) > MOST_KEY or not key.isprintable():
                self._refuse(event, path, f"the key {key!r}", f"write up to {MOST_KEY} printable characters")
            if key == "<<":
                self._refuse(event, path, "the merge key <<", "write the fields out where they are needed")
            if key in items:
                raise DataFileError(
                    self.file,
                    f"duplicate key {key!r}, first on line {self.lines[below]}",
                    line=line,
                    field=shown(below),
                    hint="keep one of the two",
                )
            self.lines[below] = line
            items[key] = self._value(next(self.events), below, level)
        return items

    def _scalar(self, event: Any, path: str) -> object:
        text = str(event.value)
        if event.style:  # quoted or a block: None or "" where it is plain
            return text
        if text in _NULL:
            return None
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        for pattern, number in _NUMBERS:
            if pattern.fullmatch(text):
                if len(text) > MOST_NUMBER or not math.isfinite(float(text)):  # no float holds some integers
                    hint = f"write a finite number of at most {MOST_NUMBER} characters"
                    self._refuse(event, path, f"the number {text}", hint)
                return number(text)
        return text

    def _expect(self, kind: type) -> None:
        event = next(self.events)
        if not isinstance(event, kind):
            self._refuse(event, "$", "this structure", "keep one plain document per file")

    def _refuse(self, event: Any, path: str, what: str, hint: str) -> None:
        line, what = event.start_mark.line + 1, what if len(what) < 120 else f"{what[:100]}..."
        raise DataFileError(self.file, f"{what} is not allowed", line=line, field=shown(path), hint=hint)


_NUMBERS: tuple[tuple[re.Pattern[str], Callable[[str], int | float]], ...] = (
    (_INTEGER, int),
    (_FLOAT, float),
)


def shown(path: str) -> str:
    """A field path as people read it: ``models[3].batch`` for ``$.models[3].batch``."""
    return path.removeprefix("$").removeprefix(".")

"""The support table: devices side by side as one HTML file that needs nothing else, no script either.

Why one file: it is mailed, attached to an issue or served from anywhere. Styles are inside the page and
allowed by their digest, so that nothing else in the page can bring styles or scripts of its own.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from itertools import groupby
from types import ModuleType
from typing import ClassVar, NamedTuple

from torchgauge.dashboard.renderer import Renderer
from torchgauge.dashboard.statuses import LOOKS
from torchgauge.records import Status
from torchgauge.results.compat import words
from torchgauge.results.compat.differences import (
    Coverage,
    Lacking,
    coverage,
    disagree,
    lacking,
    only_differences,
)
from torchgauge.results.compat.gathering import OPERATORS
from torchgauge.results.compat.table import (
    NOT_APPLICABLE,
    NOT_MEASURED,
    OTHER_MODEL,
    UNCHECKED,
    Cell,
    Column,
    Entry,
    Feature,
    Part,
    Section,
    Table,
    marks_of,
)
from torchgauge.results.hostile_text import slug

YES, PARTLY, NO, NOTHING, UNKNOWN = "✓", "◐", "✗", "○", "?"
NOTES_SHOWN = 3
_STYLES = ("static/style.css", "templates/support_table.css")
_ADDRESS = re.compile(r"https://[A-Za-z0-9._~:/?#=&%+-]+")


class Badge(NamedTuple):
    """A word in the colour of its status."""

    text: str
    css: str


class Shown(NamedTuple):
    """One cell: a symbol, a text and a colour, what did not pass, and the numbers of its notes."""

    symbol: str
    text: str
    css: str
    badges: tuple[Badge, ...] = ()
    notes: tuple[int, ...] = ()
    more_notes: int = 0


class ShownPart(NamedTuple):
    """A row that is folded under its feature; ``names`` are those of parts that ended alike."""

    title: str
    names: str
    doc: str
    api: str
    cells: tuple[Shown, ...]


class ShownFeature(NamedTuple):
    """A row with what is folded under it."""

    name: str
    anchor: str
    parts: tuple[ShownPart, ...]
    cells: tuple[Shown, ...]
    differs: bool


class Note(NamedTuple):
    """A footnote: a status, why, and where more is known."""

    number: int
    badge: Badge
    text: str
    link: str


@dataclass(frozen=True)
class View:
    """What templates show: the table as it is, and its sections with their rows and notes."""

    words: ClassVar[ModuleType] = words
    table: Table
    sections: tuple[tuple[Section, tuple[ShownFeature, ...], int], ...]
    notes: tuple[Note, ...]
    legend: tuple[tuple[Shown, str], ...]

    @property
    def heads(self) -> list[tuple[str, int]]:
        """Devices with how many columns each has."""
        spans = groupby(self.table.columns, key=lambda column: column.device)
        return [(device, len(list(members))) for device, members in spans]

    @cached_property
    def coverage(self) -> tuple[Coverage, ...]:
        """How far each column was covered in each section."""
        return coverage(self.table)

    @cached_property
    def lacks(self) -> list[tuple[Lacking, Column]]:
        """What each column lacks that others have."""
        return list(zip(lacking(self.table), self.table.columns, strict=True))

    @property
    def general_notes(self) -> tuple[str, ...]:
        """What has to be known of the whole table."""
        return (*self.table.notes, *words.fallback_sentences(self.table))

    @staticmethod
    def badge(entry: Entry) -> Badge:
        """The status of ``entry`` in its colour."""
        return Badge(entry.word, _word_css(entry.word))

    @staticmethod
    def followed(link: str) -> bool:
        """Whether ``link`` is a plain address that a reader may follow."""
        return _ADDRESS.fullmatch(link) is not None


@dataclass
class Notebook:
    """Numbers footnotes in the order in which they are met; equal ones share a number."""

    notes: list[Note] = field(default_factory=list)
    numbers: dict[tuple[str, ...], int] = field(default_factory=dict)

    def numbers_of(self, entry: Entry | None, key: tuple[str, ...] = ()) -> tuple[int, ...]:
        """The numbers of the notes on ``entry``; entries that share a ``key`` share a note."""
        if entry is None:
            return ()
        found = []
        if not entry.has or entry.instead_of is not None:
            text = "" if entry.has else words.reason_text(entry)
            if not entry.applicable:  # the badge beside it says that
                text = text.partition(": ")[2] or text
            if entry.instead_of is not None:
                older = f"an older result: the newest is {entry.instead_of.value}"
                text = f"{text} ({older})" if text else older
            same = (entry.word, *(key or (text, entry.link)))
            found.append(self._number(same, View.badge(entry), text, entry.link))
        if entry.helped:
            badge, text = (
                Badge("fallback" if entry.fallback else "degraded", "s-acc"),
                words.helped_text(entry),
            )
            found.append(self._number(("helped", text), badge, text, ""))
        return tuple(found)

    def _number(self, key: tuple[str, ...], badge: Badge, text: str, link: str) -> int:
        if key not in self.numbers:
            self.numbers[key] = len(self.notes) + 1
            self.notes.append(Note(self.numbers[key], badge, text, link))
        return self.numbers[key]


def render(table: Table, *, differing: bool = False) -> str:
    """``table`` as one HTML file; ``differing`` leaves out rows on which all columns agree."""
    style = f"{_style()}:root {{ --columns: {len(table.columns)}; }}\n"
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    csp = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    view = view_of(table, differing=differing)
    return Renderer({}).page("support_table", "support_table.html", view=view, style=style, csp=csp)


def view_of(table: Table, *, differing: bool = False) -> View:
    """What the page shows of ``table``."""
    shown = only_differences(table) if differing else table
    notebook, sections = Notebook(), []
    for section, whole in zip(shown.sections, table.sections, strict=True):
        features = tuple(_feature(feature, section, notebook) for feature in section.features)
        sections.append((section, features, len(whole.features) - len(features)))
    return View(table, tuple(sections), tuple(notebook.notes), _legend(shown))


def _feature(feature: Feature, section: Section, notebook: Notebook) -> ShownFeature:
    merged = section.key == OPERATORS
    parts = tuple(_merged(feature, notebook) if merged else (_part(each, notebook) for each in feature.parts))
    cells = []
    for index, cell in enumerate(feature.cells):
        numbers = sorted({number for part in parts for number in part.cells[index].notes})
        kept = tuple(numbers[:NOTES_SHOWN])
        cells.append(_cell(cell, feature.size, kept, len(numbers) - len(kept)))
    anchor = f"{section.key}-{slug(feature.name)}"
    return ShownFeature(feature.name, anchor, parts, tuple(cells), any(map(disagree, feature.parts)))


def _part(part: Part, notebook: Notebook) -> ShownPart:
    cells = tuple(_entry(entry, notebook.numbers_of(entry)) for entry in part.entries)
    return ShownPart(part.name, "", part.doc, part.api, cells)


def _merged(feature: Feature, notebook: Notebook) -> Iterator[ShownPart]:
    """Dtypes of one variant that ended alike in every column share a row: a full run has thousands."""
    rows: dict[tuple[str, tuple[Shown, ...]], list[str]] = {}
    for part in feature.parts:
        variant, _, dtype = part.name.partition(" ")
        cells = tuple(
            _entry(entry, notebook.numbers_of(entry, _why(feature, entry))) for entry in part.entries
        )
        rows.setdefault((variant, cells), []).append(dtype)
    for (variant, cells), dtypes in rows.items():
        yield ShownPart(variant, ", ".join(dtypes), "", "", cells)


def _why(feature: Feature, entry: Entry | None) -> tuple[str, ...]:
    """What failures of operators have in common: the missing operator, the exception, else the operator."""
    if entry is None or not entry.lacks:
        return ()
    return (entry.missing_op,) if entry.missing_op else (feature.name, entry.fingerprint)


def _cell(cell: Cell, parts: int, notes: tuple[int, ...], more: int) -> Shown:
    if not cell.measured:
        return Shown(UNKNOWN, NOT_MEASURED, "s-notrun")
    look = f"s-{LOOKS[cell.worst].css}" if cell.worst is not None else "s-plain"
    badges = [Badge(mark, "s-plain") for mark in cell.marks]
    if cell.missing:
        badges.append(Badge(f"{cell.missing} {NOT_MEASURED}", "s-plain"))
    others = [
        Badge(word if parts == 1 else f"{number} {word}", _word_css(word)) for word, number in cell.others
    ]
    if not cell.said:
        text = others[0].text
        return Shown(NOTHING, text, "s-plain", (*others[1:], *badges), notes, more)
    alone = parts == 1
    text = f"{cell.passed}/{cell.said}" if not alone else "pass" if cell.passed else others[0].text
    symbol = YES if cell.complete else PARTLY if cell.passed else NO
    quiet = cell.degraded if alone else cell.passed and not cell.complete
    return Shown(
        symbol, text, "s-plain" if quiet else look, (*(() if alone else others), *badges), notes, more
    )


def _entry(entry: Entry | None, notes: tuple[int, ...]) -> Shown:
    if entry is None:
        return Shown(UNKNOWN, NOT_MEASURED, "s-notrun")
    marks = [Badge(each, "s-plain") for each in marks_of([entry])]
    if entry.has and entry.helped:
        return Shown(PARTLY, entry.word, "s-plain", tuple(marks), notes)
    symbol = YES if entry.has else NO if entry.lacks else NOTHING
    return Shown(symbol, entry.word, _word_css(entry.word), tuple(marks), notes)


def _word_css(word: str) -> str:
    return "s-plain" if word in (NOT_APPLICABLE, OTHER_MODEL, UNCHECKED) else f"s-{LOOKS[Status(word)].css}"


def _legend(table: Table) -> tuple[tuple[Shown, str], ...]:
    """What the signs on this page mean: the statuses that occur, then what is no status."""
    parts = [part for section in table.sections for feature in section.features for part in feature.parts]
    entries = [entry for part in parts for entry in part.entries if entry is not None]
    plain = [entry for entry in entries if not entry.tells_nothing]
    occurring = {entry.status for entry in plain if entry.applicable}
    missing = any(entry is None for part in parts for entry in part.entries)
    others = (
        (PARTLY, "n/m", True,
         "n of m parts pass; or all pass, but not all by the requested path (for example, on the host)"),
        (NOTHING, NOT_APPLICABLE, not all(entry.applicable for entry in plain),
         "not applicable to the device"),
        (NOTHING, OTHER_MODEL, any(entry.other_model for entry in entries),
         "number of parameters differs from the named model: not a result of that model"),
        (NOTHING, UNCHECKED, any(entry.word == UNCHECKED for entry in entries),
         "ran, but was not compared with a reference: neither present nor missing"),
    )  # fmt: skip
    statuses = [(_entry(Entry(each, "", ""), ()), LOOKS[each].meaning) for each in LOOKS if each in occurring]
    unknown = [(_entry(None, ()), "not measured in these stores")] * missing
    signs = [(Shown(symbol, text, "s-plain"), told) for symbol, text, there, told in others if there]
    return (*statuses, *signs, *unknown)


def _style() -> str:
    folder = resources.files("torchgauge.dashboard")
    return "".join(folder.joinpath(*name.split("/")).read_text(encoding="utf-8") for name in _STYLES)

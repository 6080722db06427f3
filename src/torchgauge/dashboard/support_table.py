"""The support table: devices side by side as one HTML file that needs nothing else, no script either.

Why one file: it is mailed, attached to an issue or served from anywhere. Styles are inside the page and
allowed by their digest, so that nothing else in the page can bring styles or scripts of its own.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import resources
from itertools import groupby

from torchgauge.dashboard.renderer import Renderer
from torchgauge.dashboard.statuses import LOOKS
from torchgauge.records import Status
from torchgauge.results import units
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
from torchgauge.results.compat.words import (
    column_facts,
    coverage_text,
    fallback_sentences,
    helped_text,
    nowhere_text,
    reason_text,
    same_reasons,
    unknown_texts,
)
from torchgauge.results.hostile_text import slug

YES, PARTLY, NO, NOTHING, UNKNOWN = "✓", "◐", "✗", "○", "?"
NOTES_SHOWN = 3
REASONS_SHOWN = 8
_STYLES = ("static/style.css", "templates/support_table.css")
_ADDRESS = re.compile(r"https://[A-Za-z0-9._~:/?#=&%+-]+")


@dataclass(frozen=True)
class Badge:
    """A word in the colour of its status."""

    text: str
    css: str


@dataclass(frozen=True)
class Shown:
    """One cell: a symbol, a text and a colour, what did not pass, and the numbers of its notes."""

    symbol: str
    text: str
    css: str
    badges: tuple[Badge, ...] = ()
    notes: tuple[int, ...] = ()
    more_notes: int = 0


@dataclass(frozen=True)
class ShownPart:
    """A row that is folded under its feature; ``names`` are those of parts that ended alike."""

    title: str
    names: str
    doc: str
    api: str
    cells: tuple[Shown, ...]


@dataclass(frozen=True)
class ShownFeature:
    """A row with what is folded under it."""

    name: str
    anchor: str
    parts: tuple[ShownPart, ...]
    cells: tuple[Shown, ...]
    differs: bool


@dataclass(frozen=True)
class ShownSection:
    """A table; ``counts`` is its last row."""

    section: Section
    features: tuple[ShownFeature, ...]
    left_out: int
    counts: tuple[str, ...]


@dataclass(frozen=True)
class Note:
    """A footnote: a status, why, and where more is known."""

    number: int
    badge: Badge
    text: str
    link: str
    address: str


@dataclass(frozen=True)
class DeviceHead:
    """A heading over the columns of one device."""

    device: str
    span: int


@dataclass(frozen=True)
class LackLine:
    """A reason in the list of what a device lacks."""

    name: str
    more: int
    badge: Badge
    reason: str
    link: str


@dataclass(frozen=True)
class LackBlock:
    """What one device lacks; ``sentence`` stands where there is nothing to list."""

    column: str
    anchor: str
    sentence: str
    groups: tuple[tuple[str, str, int, tuple[LackLine, ...], int], ...]
    tail: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """Everything that the template shows."""

    title: str
    table: Table
    heads: tuple[DeviceHead, ...]
    facts: tuple[tuple[Column, list[tuple[str, str]]], ...]
    sections: tuple[ShownSection, ...]
    lacks: tuple[LackBlock, ...]
    notes: tuple[Note, ...]
    remarks: tuple[str, ...]
    legend: tuple[tuple[Shown, str], ...]
    newest: str


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
            text = _reason(entry) if not entry.has else ""
            if entry.instead_of is not None:
                older = f"an older row: the newest is {entry.instead_of.value}"
                text = f"{text} ({older})" if text else older
            same = (entry.word, *(key or (text, entry.link)))
            found.append(self._number(same, _badge(entry), text, entry.link))
        if entry.helped:
            badge, text = Badge("fallback" if entry.fallback else "degraded", "s-acc"), helped_text(entry)
            found.append(self._number(("helped", text), badge, text, ""))
        return tuple(found)

    def _number(self, key: tuple[str, ...], badge: Badge, text: str, link: str) -> int:
        if key not in self.numbers:
            self.numbers[key] = len(self.notes) + 1
            followed = link if _ADDRESS.fullmatch(link) else ""
            self.notes.append(Note(self.numbers[key], badge, text, followed, "" if followed else link))
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
    notebook = Notebook()
    counts = coverage(table)
    sections = []
    for section, whole in zip(shown.sections, table.sections, strict=True):
        sections.append(
            ShownSection(
                section,
                tuple(_feature(feature, section, notebook) for feature in section.features),
                len(whole.features) - len(section.features),
                tuple(coverage_text(each) for each in counts if each.section == section.key),
            )
        )
    names = [column.name for column in table.columns]
    spans = groupby(table.columns, key=lambda column: column.device)
    return View(
        title=f"Devices compared: {', '.join(names)}",
        table=table,
        heads=tuple(DeviceHead(device, len(list(members))) for device, members in spans),
        facts=tuple((column, _facts(column, table, counts)) for column in table.columns),
        sections=tuple(sections),
        lacks=tuple(_lacks(each, table) for each in lacking(table)),
        notes=tuple(notebook.notes),
        remarks=(*table.notes, *fallback_sentences(table)),
        legend=_legend(shown),
        newest=units.moment(table.newest_at),
    )


def _facts(column: Column, table: Table, counts: Sequence[Coverage]) -> list[tuple[str, str]]:
    """How far the device was covered, then what its rows were measured with."""
    found = [
        (each.section, coverage_text(each))
        for each in counts
        if each.column == column.name and column.newest_at is not None
    ]
    return [*found, *column_facts(column, table)]


def _feature(feature: Feature, section: Section, notebook: Notebook) -> ShownFeature:
    merged = section.key == OPERATORS
    parts = tuple(_merged(feature, notebook) if merged else _single(feature.parts, notebook))
    cells = []
    for index, cell in enumerate(feature.cells):
        numbers = sorted({number for part in parts for number in part.cells[index].notes})
        kept = tuple(numbers[:NOTES_SHOWN])
        cells.append(_cell(cell, feature.size, kept, len(numbers) - len(kept)))
    anchor = f"{section.key}-{slug(feature.name)}"
    return ShownFeature(feature.name, anchor, parts, tuple(cells), any(map(disagree, feature.parts)))


def _single(parts: Iterable[Part], notebook: Notebook) -> Iterator[ShownPart]:
    for part in parts:
        cells = tuple(_entry(entry, notebook.numbers_of(entry)) for entry in part.entries)
        yield ShownPart(part.name, "", part.doc, part.api, cells)


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
    if parts == 1:
        text = "pass" if cell.passed else others[0].text
        symbol = YES if cell.complete else PARTLY if cell.passed else NO
        css = "s-plain" if cell.degraded else look
        return Shown(symbol, text, css, tuple(badges), notes, more)
    symbol = YES if cell.complete else PARTLY if cell.passed else NO
    css = "s-plain" if cell.passed and not cell.complete else look
    return Shown(symbol, f"{cell.passed}/{cell.said}", css, (*others, *badges), notes, more)


def _entry(entry: Entry | None, notes: tuple[int, ...]) -> Shown:
    if entry is None:
        return Shown(UNKNOWN, NOT_MEASURED, "s-notrun")
    marks = [Badge(each, "s-plain") for each in marks_of([entry])]
    if entry.has and entry.helped:
        return Shown(PARTLY, entry.word, "s-plain", tuple(marks), notes)
    symbol = YES if entry.has else NO if entry.lacks else NOTHING
    return Shown(symbol, entry.word, _entry_css(entry), tuple(marks), notes)


def _reason(entry: Entry) -> str:
    """Why; the badge beside it says already that it is not applicable."""
    text = reason_text(entry)
    return text if entry.applicable else text.partition(": ")[2] or text


def _badge(entry: Entry) -> Badge:
    return Badge(entry.word, _entry_css(entry))


def _entry_css(entry: Entry) -> str:
    return _word_css(entry.word)


def _word_css(word: str) -> str:
    return "s-plain" if word in (NOT_APPLICABLE, OTHER_MODEL, UNCHECKED) else f"s-{LOOKS[Status(word)].css}"


def _lacks(found: Lacking, table: Table) -> LackBlock:
    column = next(each for each in table.columns if each.name == found.column)
    sentence = ""
    if column.newest_at is None:
        sentence = "It was not measured."
    elif len(table.columns) == 1:
        sentence = "There is no other column to compare with."
    elif not found.groups:
        sentence = "Nothing that was measured."
    groups = []
    for group in found.groups:
        reasons = same_reasons(group.lacks)
        lines = tuple(
            LackLine(
                lack.part,
                number - 1,
                _badge(lack.entry),
                reason_text(lack.entry),
                lack.entry.link if _ADDRESS.fullmatch(lack.entry.link) else "",
            )
            for lack, number in reasons[:REASONS_SHOWN]
        )
        groups.append((group.name, group.section, len(group.lacks), lines, len(reasons) - len(lines)))
    tail = [nowhere_text(found)] if found.nowhere else []
    tail += unknown_texts(found)
    return LackBlock(found.column, f"lacks-{slug(found.column)}", sentence, tuple(groups), tuple(tail))


def _legend(table: Table) -> tuple[tuple[Shown, str], ...]:
    """What the signs on this page mean: the statuses that occur, then what is no status."""
    parts = [part for section in table.sections for feature in section.features for part in feature.parts]
    entries: Sequence[Entry | None] = [entry for part in parts for entry in part.entries]
    plain = [entry for entry in entries if entry is not None and not entry.tells_nothing]
    occurring = {entry.status for entry in plain if entry.applicable}
    found = []
    for status, look in LOOKS.items():
        if status in occurring:
            entry = Entry(status, "", "")
            found.append((_entry(entry, ()), look.meaning))
    some = Shown(PARTLY, "n/m", "s-plain")
    found.append((some, "n of m parts pass and the others stand beside it, or a pass by another path"))
    if not all(entry.applicable for entry in plain):
        found.append((Shown(NOTHING, NOT_APPLICABLE, "s-plain"), "the question makes no sense on the device"))
    if any(entry is not None and entry.other_model for entry in entries):
        text = "built with another number of parameters than the name stands for: says nothing of that model"
        found.append((Shown(NOTHING, OTHER_MODEL, "s-plain"), text))
    if any(entry is not None and entry.word == UNCHECKED for entry in entries):
        text = "ran, and its result was compared with no reference: neither passed nor lacking"
        found.append((Shown(NOTHING, UNCHECKED, "s-plain"), text))
    if any(entry is None for entry in entries):
        found.append((_entry(None, ()), "no row in the stores: says nothing of the device"))
    return tuple(found)


def _style() -> str:
    folder = resources.files("torchgauge.dashboard")
    return "".join(folder.joinpath(*name.split("/")).read_text(encoding="utf-8") for name in _STYLES)

"""What somebody declares of a device where no row can show it: strict YAML, each with link, date and name."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

import msgspec

from torchgauge.clock import DAY_S
from torchgauge.counted import counted
from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.results.scorecard.scorecard_file import (
    ItemName,
    Level,
    Points,
    Release,
    ScorecardFile,
    Word,
)
from torchgauge.results.store import Store
from torchgauge.suites.document import Document, read_document
from torchgauge.suites.schema import Date, Link, Reason, convert, refuse

FOLDER = "declared"
"""The folder at the top of a store whose ``*.yaml`` are read without being named."""
LASTS_S = 400 * DAY_S
"""Seconds for which a declaration counts: somebody looks at it once a year."""


class DeclaredFields(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One declaration; ``since`` is the first release of torch that it is true of, ``by`` who says it."""

    item: ItemName
    points: Points
    statement: Reason
    link: Link
    date: Date
    since: Release
    by: Word = ""


class DocumentedFields(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The level that PyTorch's documentation gave the device before ``until``, the first release to judge."""

    level: Level
    until: Release
    link: Link


class DeclarationFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The whole file."""

    device: Word
    by: Word
    declarations: Annotated[tuple[DeclaredFields, ...], msgspec.Meta(min_length=1)]
    documented: DocumentedFields | None = None


@dataclass(frozen=True)
class Declaration:
    """One declaration of a device; ``at`` is its day in seconds since the epoch."""

    item: str
    points: int
    statement: str
    link: str
    date: str
    by: str
    since: tuple[int, int]
    at: float

    def holds(self, release: tuple[int, int], now: float) -> bool:
        """Whether it counts for ``release``, whose newest row is of ``now``."""
        return release >= self.since and now - self.at <= LASTS_S


@dataclass(frozen=True)
class Declared:
    """All that is declared of devices: what each item is given, and the level that stood before."""

    of: dict[str, tuple[Declaration, ...]]
    documented: dict[str, DocumentedFields]


NOTHING_DECLARED = Declared({}, {})


def load_declarations(path: Path, card: ScorecardFile) -> DeclarationFile:
    """The file at ``path``, held against ``card``; raises :class:`DataFileError` for the first mistake."""
    document = read_document(path)
    found = convert(document, DeclarationFile)
    seen: set[str] = set()
    for index, each in enumerate(found.declarations):
        _check(document, f"$.declarations[{index}]", each, card)
        if each.item in seen:
            raise refuse(
                document, f"$.declarations[{index}].item", f"{each.item!r} is there twice", "keep one"
            )
        seen.add(each.item)
    return found


def _check(document: Document, at: str, each: DeclaredFields, card: ScorecardFile) -> None:
    item = card.by_name.get(each.item)
    if item is None:
        told = UnknownNameError("item of the scorecard", each.item, list(card.by_name))
        raise refuse(document, f"{at}.item", told.message, told.hint)
    if each.points > item.points:
        raise refuse(
            document,
            f"{at}.points",
            f"the item has {counted(item.points, 'point')}",
            f"declare at most {item.points}",
        )
    try:
        date.fromisoformat(each.date)
    except ValueError as error:
        raise refuse(document, f"{at}.date", str(error), "YYYY-MM-DD") from None


def declarations_of(stores: tuple[str, ...], files: tuple[str, ...], card: ScorecardFile) -> Declared:
    """What ``files`` and the folders ``declared`` of ``stores`` say, by device.

    Raises :class:`DataFileError` for a mistake in one, and :class:`UsageError` where two speak of one item.
    """
    paths = [Path(name) for name in files]
    for store in stores:
        paths += sorted((Store.open(store).path / FOLDER).glob("*.yaml"))
    of: dict[str, dict[str, Declaration]] = {}
    documented: dict[str, DocumentedFields] = {}
    for path in dict.fromkeys(each.resolve() for each in paths):
        found = load_declarations(path, card)
        device = found.device
        for each in found.declarations:
            if each.item in of.setdefault(device, {}):
                raise UsageError(f"{path}: {each.item!r} of {device!r} is declared twice", hint="keep one")
            at = date.fromisoformat(each.date).toordinal() - date(1970, 1, 1).toordinal()
            of[device][each.item] = Declaration(
                each.item,
                each.points,
                each.statement,
                each.link,
                each.date,
                each.by or found.by,
                release_of(each.since),
                at * DAY_S,
            )
        if found.documented is not None:
            documented[device] = found.documented
    return Declared({device: tuple(items.values()) for device, items in of.items()}, documented)


def release_of(text: str) -> tuple[int, int]:
    """``2.13`` as two numbers."""
    major, minor = text.split(".")
    return int(major), int(minor)

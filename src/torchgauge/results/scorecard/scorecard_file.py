"""The scorecard as strict YAML: levels, sections, items, and by which rule rows show an item."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from torchgauge.suites.document import Document, read_document
from torchgauge.suites.schema import Date, Link, Reason, convert, refuse

DATA = Path(__file__).parent / "data" / "scorecard.yaml"
"""The scorecard that ships with the package."""
MUST = "P0"
"""The priority of what the highest level asks without exception."""

Points = Annotated[int, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
Number = Annotated[int, msgspec.Meta(ge=1)]
ItemName = Annotated[str, msgspec.Meta(pattern=r"^[a-z]+\.[a-z0-9_]+$")]
Word = Annotated[str, msgspec.Meta(min_length=1)]
Release = Annotated[str, msgspec.Meta(pattern=r"^[0-9]+\.[0-9]+$")]
Level = Literal["engineering", "unstable", "stable"]

NEEDED: Mapping[str, tuple[str, ...]] = {
    "checks": ("names",),
    "check_share": ("steps",),
    "dtype": ("dtype", "minimum"),
    "operators": ("steps",),
    "benchmarks": ("names", "steps"),
    "models": ("path", "minimum"),
    "speed": ("minimum", "margin"),
    "suite": ("names",),
    "builds": ("days",),
    "flaky": ("share", "days", "minimum"),
    "outages": ("days", "longest_days"),
}
"""Fields that a rule needs, by its name."""
_OPTIONAL = {"speed": ("path", "mode")}


class Step(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Points from a share on."""

    share: Share
    points: Points


class Measured(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """By which rule rows of a store show an item; which fields a rule needs is in :data:`NEEDED`."""

    rule: Literal[
        "checks", "check_share", "dtype", "operators", "benchmarks", "models", "speed", "suite", "builds",
        "flaky", "outages",
    ]  # fmt: skip
    names: tuple[Word, ...] | None = None
    dtype: Word | None = None
    path: Literal["eager", "compiled"] | None = None
    mode: Word | None = None
    minimum: Number | None = None
    margin: Share | None = None
    share: Share | None = None
    steps: tuple[Step, ...] | None = None
    days: Number | None = None
    longest_days: Number | None = None


class Item(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What earns points; without ``measured`` it can be declared only."""

    name: ItemName
    priority: Literal["P0", "P1", "P2"]
    points: Points
    text: Reason
    measured: Measured | None = None
    stands_for: str = ""

    @property
    def must(self) -> bool:
        """Whether the highest level asks it."""
        return self.priority == MUST


class Section(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Items under one title; no more than ``total`` points of them count."""

    name: Word
    title: Word
    total: Points
    items: Annotated[tuple[Item, ...], msgspec.Meta(min_length=1)]


class LevelFields(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A level: from how many points on, and whether it asks every must."""

    name: Level
    points: Points
    musts: bool = False


class Database(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """How many operators PyTorch's database has in one release, and which of them have no float32."""

    release: Release
    operators: Number
    without_float32: tuple[Word, ...]


class ScorecardFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The whole file."""

    source: Link
    proposal: Link
    date: Date
    levels: Annotated[tuple[LevelFields, ...], msgspec.Meta(min_length=2)]
    databases: tuple[Database, ...]
    sections: Annotated[tuple[Section, ...], msgspec.Meta(min_length=1)]

    @property
    def items(self) -> tuple[Item, ...]:
        """All items, in order."""
        return tuple(item for section in self.sections for item in section.items)

    @property
    def total(self) -> int:
        """The points that can be reached."""
        return sum(section.total for section in self.sections)

    @property
    def by_name(self) -> dict[str, Item]:
        """The items by their names."""
        return {item.name: item for item in self.items}


def load_scorecard(path: Path) -> ScorecardFile:
    """The scorecard at ``path``; raises :class:`DataFileError` with file, line and field of a mistake."""
    document = read_document(path)
    found = convert(document, ScorecardFile)
    points = [level.points for level in found.levels]
    if points != sorted(set(points)) or points[0]:
        raise refuse(
            document, "$.levels", "levels must begin at 0 points and have increasing points", "sort them"
        )
    seen: set[str] = set()
    for i, section in enumerate(found.sections):
        for j, item in enumerate(section.items):
            at = f"$.sections[{i}].items[{j}]"
            if item.name in seen or item.name.partition(".")[0] != section.name:
                problem = (
                    f"{item.name!r} is listed twice, or does not begin with its section {section.name!r}"
                )
                raise refuse(document, f"{at}.name", problem, "write each item once, as SECTION.NAME")
            seen.add(item.name)
            _check_rule(document, at, item)
    return found


def _check_rule(document: Document, at: str, item: Item) -> None:
    """Raise for a rule that lacks a field, has one too many, or gives more points than its item has."""
    rule = item.measured
    if rule is None:
        return
    given = {name for name in rule.__struct_fields__ if getattr(rule, name) is not None} - {"rule"}
    needed = set(NEEDED[rule.rule])
    wrong = (needed - given) | (given - needed - set(_OPTIONAL.get(rule.rule, ())))
    if wrong:
        problem = f"the rule {rule.rule!r} needs {', '.join(NEEDED[rule.rule])}: {', '.join(sorted(wrong))}"
        raise refuse(document, f"{at}.measured", problem, "add the missing keys, remove the unknown ones")
    if rule.steps and max(step.points for step in rule.steps) != item.points:
        raise refuse(
            document,
            f"{at}.measured.steps",
            "the highest step must equal the item's points",
            "fix the points",
        )


@cache
def bundled_scorecard() -> ScorecardFile:
    """The scorecard that ships with the package."""
    return load_scorecard(DATA)

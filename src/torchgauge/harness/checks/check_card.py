"""The capability card of a device: its groups with how many of their checks pass, and what does not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.counted import counted
from torchgauge.harness.checks.check_campaign import chosen
from torchgauge.harness.planning.selection import select_models
from torchgauge.records import Result, Status
from torchgauge.results import document
from torchgauge.suites.conformance.catalogue import catalogue
from torchgauge.suites.conformance.suite import NAME, SUITE
from torchgauge.suites.expectations import expectation_for

NAMED = 3
"""Up to how many checks that deviate alike are each named with what they exercise."""


@dataclass(frozen=True)
class GroupLine:
    """One group: of ``planned`` checks ``passed`` passed, and the rest is counted by status."""

    group: str
    planned: int
    passed: int
    others: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Deviation:
    """A check that did not pass: what it exercises, why, and whether data said so before."""

    check: str
    status: str
    reason: str
    api: str
    unexpected: bool
    link: str = ""

    @property
    def group(self) -> str:
        """The check's group."""
        return self.check.partition(".")[0]


@dataclass(frozen=True)
class Card:
    """What one run found of one device."""

    device: str
    groups: tuple[GroupLine, ...]
    deviations: tuple[Deviation, ...]

    @property
    def alike(self) -> list[tuple[str, Deviation]]:
        """What to say of the checks of each status and reason, and one of them; many are counted."""
        found: dict[tuple[object, ...], list[Deviation]] = defaultdict(list)
        for each in self.deviations:
            found[_told(each)].append(each)
        lines = []
        for each in self.deviations:  # those of a group stay together
            those = found[_told(each)]
            if len(those) <= NAMED:
                lines.append((f"{each.check} ({each.api})", each))
            elif each is those[0]:
                names = ", ".join(other.check for other in those[:NAMED])
                more = counted(len(those) - NAMED, "other")
                lines.append((f"{counted(len(those), 'check')}: {names} and {more}", each))
        return lines

    @property
    def passed(self) -> int:
        """Checks that passed."""
        return sum(line.passed for line in self.groups)

    @property
    def planned(self) -> int:
        """Checks that were planned."""
        return sum(line.planned for line in self.groups)


def _told(each: Deviation) -> tuple[object, ...]:
    """What a card says of a deviation beside its check."""
    return each.unexpected, each.status, each.reason, each.link


def card_of(device: str, results: Sequence[Result]) -> Card:
    """The card of ``device`` from its rows, groups in the catalogue's order.

    Deviations of a group stand together whatever their status, as they often have one cause: groups with an
    unexpected one first, and that first within them.
    """
    rows = {result.case.workload.model: result for result in results}
    known = catalogue()
    order = [name for name in known if name in rows] + [name for name in rows if name not in known]
    named: dict[str, list[Result]] = {}
    for name in order:
        named.setdefault(name.partition(".")[0], []).append(rows[name])
    deviations = [_deviation(rows[name]) for name in order if rows[name].status is not Status.PASS]
    alarmed = {each.group for each in deviations if each.unexpected}
    places = {group: number for number, group in enumerate(named)}
    return Card(
        device,
        tuple(_group(group, found) for group, found in named.items()),
        tuple(
            sorted(
                deviations,
                key=lambda each: (each.group not in alarmed, places[each.group], not each.unexpected),
            )
        ),
    )


def card_lines(card: Card) -> list[str]:
    """The card as text."""
    return document.terminal("harness/check_card", card=card).splitlines()


def catalogue_lines(groups: tuple[str, ...], checks: tuple[str, ...]) -> list[str]:
    """One line per check that the filters choose: name, what it exercises, what it asks."""
    names = {entry.name for entry in select_models(NAME, SUITE.models(), chosen(groups, checks), "full")}
    found = [entry for entry in catalogue().values() if entry.name in names]
    width = max((len(entry.name) for entry in found), default=0)
    lines = [f"{entry.name:<{width}}  {entry.doc}  [{entry.api}; {entry.tier}]" for entry in found]
    return [
        *lines,
        f"{counted(len(found), 'check')} in {counted(len({entry.group for entry in found}), 'group')}",
    ]


def _group(group: str, results: Sequence[Result]) -> GroupLine:
    counts = {status: sum(each.status is status for each in results) for status in Status}
    passed = counts.pop(Status.PASS)
    others = tuple((status.value, number) for status, number in counts.items() if number)
    return GroupLine(group, len(results), passed, others)


def _deviation(result: Result) -> Deviation:
    entry = catalogue().get(result.case.workload.model)
    expectation = None if result.other_cause else expectation_for(result.case)
    return Deviation(
        check=result.case.workload.model,
        status=result.status.value,
        reason=result.reason,
        api=entry.api if entry is not None else "",
        unexpected=result.unexpected,
        link=expectation.link if expectation is not None else "",
    )

"""The level of a device over releases of torch: it takes two releases in a row to change it.

What is not decided is carried as the lowest and the highest level that it can be. With ``stood`` before, and
two releases in a row that grade ``a`` and ``b``, the level is the median of the three: up only as far as both
are above, down only as far as both are below. That is the proposal's rule, and since a median only grows with
its values, the two ends can be followed apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torchgauge.results.scorecard.card import Card
from torchgauge.results.scorecard.declarations import DocumentedFields, release_of
from torchgauge.results.scorecard.releases import Release
from torchgauge.results.scorecard.scorecard_file import ScorecardFile

Range = tuple[int, int]


@dataclass(frozen=True)
class ReleaseLevel:
    """What one release grades by itself, and the level that stands after it: lowest and highest each.

    ``card`` is None for a release between others that nobody measured.
    """

    release: Release
    grade: Range
    stands: Range
    card: Card | None


def level_history(
    file: ScorecardFile, cards: Mapping[Release, Card], documented: DocumentedFields | None = None
) -> tuple[ReleaseLevel, ...]:
    """The releases that were measured, and those between, oldest first; previews are no releases.

    Before the first one the level can be any, unless ``documented`` says which one stood until a release.
    """
    final = sorted(release for release in cards if release.final)
    names = [level.name for level in file.levels]
    anything = (0, len(names) - 1)
    stands, begin = anything, None
    if documented is not None:
        place = names.index(documented.level)
        stands, begin = (place, place), release_of(documented.until)
    found: list[ReleaseLevel] = []
    before: Range | None = None
    for release in _between(final):
        if begin is not None and release.pair < begin:
            continue
        card = cards.get(release)
        grade = card.grades if card is not None else anything
        if before is not None:
            stands = median(stands[0], before[0], grade[0]), median(stands[1], before[1], grade[1])
        found.append(ReleaseLevel(release, grade, stands, card))
        before = grade
    return tuple(found)


def _between(releases: list[Release]) -> Iterable[Release]:
    """``releases`` with those of the same major version that lie between."""
    for place, release in enumerate(releases):
        yield release
        after = releases[place + 1] if place + 1 < len(releases) else None
        if after is not None and after.major == release.major:
            yield from (Release(release.major, minor) for minor in range(release.minor + 1, after.minor))


def range_text(file: ScorecardFile, ends: Range) -> str:
    """A level, or between which two it lies."""
    low, high = (file.levels[place].name for place in ends)
    return low if low == high else f"{low} to {high}"


def median(*three: int) -> int:
    """The middle one."""
    return sorted(three)[1]

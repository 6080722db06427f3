"""Which of several rows stands for a model: the newest, of one version of torch and one size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from torchgauge.counted import counted
from torchgauge.records import INCOMPLETE
from torchgauge.results.claims.member import Measured
from torchgauge.results.claims.stored import StoredCase
from torchgauge.suites.pattern import matches

NEWEST, PREVIOUS = "newest", "previous"
"""Words for the version of torch that was measured last, and for the one before it."""


def newest(found: Mapping[str, Measured]) -> Measured | None:
    """The newest of the workloads of one model, which says something if any does."""
    rows = sorted(found.values(), key=lambda each: (each.case.status not in INCOMPLETE, each.case.at))
    return rows[-1] if rows else None


def pair(
    base: Mapping[str, Measured], head: Mapping[str, Measured]
) -> tuple[Measured | None, Measured | None]:
    """The newest workload that both sides have; where there is none, the newest of one side and None."""
    common = {name: head[name] for name in head if name in base}
    if common:
        passed = {name: each for name, each in common.items() if each.case.passed and base[name].case.passed}
        last = newest(passed or common)
        assert last is not None
        return base[last.case.workload], last
    if head:
        return None, newest(head)
    return newest(base), None


def versions_of(rows: Iterable[StoredCase]) -> list[str]:
    """Versions of torch, the one that was measured last first; those of silent rows alone come last."""
    order = sorted(rows, key=lambda case: (case.status not in INCOMPLETE, case.at), reverse=True)
    return list(dict.fromkeys(case.torch for case in order if case.torch))


def one_torch(rows: Sequence[StoredCase], torch: str, stored: Sequence[str]) -> tuple[list[StoredCase], str]:
    """Rows of the version of torch that was measured last, with those of which none is known; and a note.

    ``stored`` are the versions that could be asked for instead.
    """
    fitting = [case for case in rows if fits_torch(torch, case.torch)]
    versions = versions_of(fitting)
    if not versions:
        return fitting, ""
    others = [version for version in stored if version != versions[0]]
    named = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
    note = f"torch {versions[0]} was measured last and is used; also measured: {named}. Try: --torch VERSION"
    return [case for case in fitting if case.torch in ("", versions[0])], note if others else ""


def side_torch(
    rows: Sequence[StoredCase], torch: str, among: Sequence[StoredCase]
) -> tuple[list[StoredCase], list[str]]:
    """The rows of one side that are of its version of torch, and what to say of that."""
    if torch in (NEWEST, PREVIOUS):
        versions = versions_of(among)
        place = 0 if torch == NEWEST else 1
        if len(versions) <= place:
            return [], [f"no {torch} version of torch was measured"]
        return [case for case in rows if case.torch == versions[place]], []
    found = [case for case in rows if fits_torch(torch, case.torch)]
    versions = versions_of(found)
    if len(versions) > 1:
        newest = versions[0]
        return (
            [case for case in found if case.torch == newest],
            [f"torch {newest} was measured last and is used; also measured: {', '.join(versions[1:6])}"],
        )
    return found, []


def common_torch(
    base: Sequence[StoredCase], head: Sequence[StoredCase]
) -> tuple[list[StoredCase], list[StoredCase], list[str]]:
    """The rows of two sides that name no version of torch, in the newest that both have; and what to say.

    Why: two systems measured with two versions would be compared in both at once. Builds of one version,
    which differ after the plus sign, are one. Where nothing is shared, the rows stay as they are.
    """
    theirs = {_public(version) for version in versions_of(base)}
    ours = list(dict.fromkeys(_public(version) for version in versions_of(head)))
    shared = [version for version in ours if version in theirs]
    if not shared:
        lack = ["base and head have no version of torch in common"] if theirs and ours else []
        return list(base), list(head), lack
    others = [version for version in dict.fromkeys((*ours, *sorted(theirs))) if version != shared[0]]
    more = f"; also measured: {', '.join(others[:5])}. Try: --torch VERSION"
    said = [f"torch {shared[0]} is the newest that base and head share{more}"] if others else []
    sides = [[case for case in rows if _public(case.torch) in ("", shared[0])] for rows in (base, head)]
    return sides[0], sides[1], said


def _public(version: str) -> str:
    """A version without its build, which may differ between systems."""
    return version.partition("+")[0]


def size_of(asked: str, rows: Sequence[StoredCase]) -> str:
    """The size that counts: what is asked for, else the one in which most models passed."""
    if asked:
        return asked
    models: dict[str, set[tuple[str, str]]] = {}
    for case in rows:
        models.setdefault(case.size, set())
        if case.passed:
            models[case.size].add(case.key)
    return max(sorted(models), key=lambda size: len(models[size]), default="")


def size_notes(rows: Sequence[StoredCase], size: str) -> Iterable[str]:
    """A sentence for each size that is not the one that counts."""
    others = Counter(name for name, _ in {(case.size, case.key) for case in rows if case.size != size})
    for name, count in sorted(others.items()):
        yield (
            f"{counted(count, 'model has', 'models have')} rows of "
            f"size {name}, which are not counted. Try: --size {name}"
        )


def fits(pattern: str, text: str) -> bool:
    """Whether ``text`` fits the glob ``pattern``; an empty one fits everything."""
    return matches(pattern or None, text)


def fits_torch(pattern: str, version: str) -> bool:
    """Whether a version of torch fits, with its build after the plus sign or without it."""
    return fits(pattern, version) or fits(pattern, version.partition("+")[0])


def fits_any(patterns: Sequence[str], text: str) -> bool:
    """Whether ``text`` fits one of ``patterns``; none at all fit everything."""
    return not patterns or any(fits(pattern, text) for pattern in patterns)

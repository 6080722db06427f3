"""Failures that share a cause, by the rule of ``torchgauge results triage``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.statuses import LOOKS, PARTIAL, Look, look_of
from torchgauge.records import Status
from torchgauge.results.hostile_text import first_line
from torchgauge.results.triage.clusters import ClusterKey, Row, grouped, title_of

MOST_MODELS = 12
"""Models that a group names; the others are counted."""


@dataclass(frozen=True)
class FailedModel:
    """A model of a group, with a link to the first of its cases there."""

    name: str
    href: str
    cases: int


@dataclass(frozen=True)
class FailureGroup:
    """Cases that failed alike.

    ``title`` is the first line of the message or the reason, ``where`` the first frame inside torch or the
    backend; ``looks`` are the statuses that occur.
    """

    title: str
    error_type: str
    missing_op: str
    where: str
    fingerprint: str
    looks: tuple[tuple[Look, int], ...]
    cases: int
    devices: tuple[tuple[str, int], ...]
    configurations: tuple[str, ...]
    models: tuple[FailedModel, ...]
    models_in_all: int
    reproduce: str
    href: str


def failure_groups(
    entries: Iterable[Entry], row_of: Callable[[Entry], Row] = attrgetter("counted")
) -> tuple[FailureGroup, ...]:
    """The groups of ``entries``, largest first, by what ``row_of`` them says, which is no pass."""
    found = [_group(key, members, row_of) for key, members in grouped(entries, row_of).items()]
    return tuple(sorted(found, key=lambda group: (-group.cases, group.title, group.fingerprint)))


def _group(key: ClusterKey, members: Sequence[Entry], row_of: Callable[[Entry], Row]) -> FailureGroup:
    row = row_of(members[0])
    said = row["error_message"] or row["reason"] or row["accuracy_detail"] or row["cause"] or ""
    if key.kind in ("timeout", "oom", "accuracy"):  # what is said of one case is no name of the others
        said = ": ".join(filter(None, (title_of(row, key), said)))
    ended = [look_of(Status(row["status"]), row["modifiers"] or ()) for row in map(row_of, members)]
    looks = {look: ended.count(look) for look in (PARTIAL, *LOOKS.values())}
    models: dict[tuple[str, str], list[Entry]] = {}
    for entry in members:
        models.setdefault(entry.workload.group, []).append(entry)
    named = [
        FailedModel("/".join(group), links.case_link(found[0]), len(found))
        for group, found in sorted(models.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    return FailureGroup(
        title=first_line(said, 300),
        error_type=row["error_type"] or "",
        missing_op=row["missing_op"] or "",
        where=row["error_frame"] or "",
        fingerprint=row["fingerprint"] or "",
        looks=tuple((look, count) for look, count in looks.items() if count),
        cases=len(members),
        devices=tuple(Counter(entry.column.device for entry in members).most_common()),
        configurations=tuple(dict.fromkeys(entry.column.configuration for entry in members)),
        models=tuple(named[:MOST_MODELS]),
        models_in_all=len(named),
        reproduce=row["reproduce"] or "",
        href=links.case_link(members[0]),
    )

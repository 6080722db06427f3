"""Rows of stores arranged as the table of a comparison: the newest row of every part in every column."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from torchgauge.errors import DamagedJournalError, NothingSelectedError
from torchgauge.records import INCOMPLETE, Modifier, Status, Subject, Workload, why_marked
from torchgauge.results.compat.columns import choose_columns
from torchgauge.results.compat.reading import Reading, read_stores
from torchgauge.results.compat.table import Entry, Fallback, Feature, Part, Section, Table
from torchgauge.results.latest import Row
from torchgauge.results.row_case import case_of, workload_of
from torchgauge.suites.conformance.catalogue import catalogue
from torchgauge.suites.conformance.suite import NAME as CONFORMANCE
from torchgauge.suites.expectations import expectation_for
from torchgauge.suites.ops.suite import SUITE as OPS_SUITE

CAPABILITIES, OPERATORS, MODELS = "capabilities", "operators", "models"
OPS = OPS_SUITE.name
SECTIONS = {
    CAPABILITIES: ("Capabilities", "group", "check"),
    OPERATORS: ("Operators", "operator", "variant and dtype"),
    MODELS: ("Models", "model and mode", "configuration"),
}
"""Key of each section to its title and to the words for its features and parts."""


@dataclass(frozen=True)
class _Place:
    """Where a row belongs: section, feature and part."""

    section: str
    feature: str
    part: str


def compare_devices(
    stores: Sequence[str], devices: Sequence[str] = (), what: Sequence[str] = tuple(SECTIONS)
) -> Table:
    """The table of ``devices`` (all: empty) over the rows in ``stores`` for the sections ``what``.

    Raises :class:`UsageError` where there is no store and :class:`NothingSelectedError` where the stores
    hold nothing of the devices or sections that are asked for.
    """
    return gather(read_stores(stores), devices, what)


def gather(reading: Reading, devices: Sequence[str], what: Sequence[str]) -> Table:
    """The table over ``reading``; raises :class:`DamagedJournalError` where that holds only gaps."""
    if reading.gaps and not reading.rows:
        raise DamagedJournalError(
            "no run of the stores can be read: " + "; ".join(reading.gaps), hint="restore them from a copy"
        )
    choice = choose_columns(reading, devices)
    times = [column.newest_at for column in choice.columns if column.newest_at is not None]
    found: dict[_Place, list[Entry | None]] = {}
    width = len(choice.columns)
    for index, rows in enumerate(choice.rows):
        for place, entry in _newest(rows, what, max(times)).items():
            found.setdefault(place, [None] * width)[index] = entry
    sections = tuple(_section(key, found) for key in SECTIONS if key in what)
    if not found:
        raise NothingSelectedError(
            f"the stores hold no rows of {', '.join(what)} for {', '.join(c.name for c in choice.columns)}",
            hint="torchgauge check, ops or run with --device and --store",
        )
    return Table(choice.columns, sections, max(times), (*choice.notes, *reading.notes), reading.gaps)


def _newest(rows: Iterable[Row], what: Sequence[str], now: float) -> dict[_Place, Entry]:
    """The newest entry of every part; an older one stands in for a newer one that says nothing.

    Ages are told at ``now``, in seconds since the epoch.
    """
    found: dict[_Place, Entry] = {}
    for row in rows:
        place = _place(row)
        if place.section not in what:
            continue
        entry, earlier = _entry(row, now), found.get(place)
        if entry.status in INCOMPLETE and earlier is not None and earlier.status not in INCOMPLETE:
            entry = replace(earlier, instead_of=entry.status)
        found[place] = entry
    return found


def _place(row: Row) -> _Place:
    model = row["model"]
    if row["suite"] == CONFORMANCE:
        return _Place(CAPABILITIES, model.partition(".")[0], model)
    if row["suite"] == OPS:
        return _Place(OPERATORS, model, f"{row['mode']} {row['dtype']}")
    workload = workload_of(row)
    extras = [f"{key} {value}" for key, value in workload.shape]
    extras += [workload.size] if workload.size != Workload.size else []
    extras += [f"seed {workload.seed}"] if workload.seed != Workload.seed else []
    extras += [workload.weights] if workload.weights != Workload.weights else []
    if workload.subject is Subject.CHECKS:  # no configuration runs it, in no dtype and no batch
        extras = extras or [workload.mode]
    else:
        extras = [f"{row['configuration']} {row['dtype']}", f"batch {row['batch']}", *extras]
    return _Place(MODELS, f"{row['suite']}/{model} {row['mode']}", ", ".join(extras))


def _entry(row: Row, now: float) -> Entry:
    facts = _object(row["facts"])
    status, modifiers = Status(row["status"]), tuple(row["modifiers"] or ())
    unexplained = status is Status.PASS or Modifier.OTHER_CAUSE.value in modifiers
    expectation = None if unexplained else expectation_for(case_of(row))
    return Entry(
        status=status,
        run_id=row["run_id"],
        case_id=row["case_id"],
        age_s=now - row["at"],
        reason=row["reason"] or "",
        missing_op=row["missing_op"] or "",
        fingerprint=row["fingerprint"] or "",
        expected=Status(row["expected"]) if row["expected"] else None,
        unexpected=row["unexpected"],
        expectation=expectation.reason if expectation else "",
        link=expectation.link if expectation else "",
        modifiers=modifiers,
        degraded=why_marked(Modifier.DEGRADED, modifiers, facts),
        other_model=why_marked(Modifier.OTHER_MODEL, modifiers, facts),
        unchecked=why_marked(Modifier.UNCHECKED, modifiers, facts),
        fallback=_fallback(facts),
        fallback_unknown=str(facts.get("fallback_unknown") or ""),
    )


def _fallback(facts: dict[str, object]) -> Fallback | None:
    number, share = facts.get("fallback_ops"), facts.get("fallback_share")
    if not isinstance(number, int) or number <= 0:
        return None
    known = float(share) if isinstance(share, (int, float)) else None
    return Fallback(number, known, str(facts.get("fallback_names") or ""))


def _section(key: str, found: dict[_Place, list[Entry | None]]) -> Section:
    features: dict[str, list[Part]] = {}
    places = [place for place in found if place.section == key]
    checks = catalogue() if key == CAPABILITIES else {}
    order = {name: index for index, name in enumerate(checks)}

    def rank(place: _Place) -> tuple[int, str, str]:
        """Checks in the order of a card, those that are not installed here at the end; others by name."""
        return order.get(place.part, len(order)), place.feature, place.part

    for place in sorted(places, key=rank):
        known = checks.get(place.part)
        features.setdefault(place.feature, []).append(
            Part(
                place.part,
                tuple(found[place]),
                doc=known.doc if known else "",
                api=known.api if known else "",
            )
        )
    rows = tuple(Feature(name, tuple(parts)) for name, parts in features.items())
    return Section(key, *SECTIONS[key], rows)


def _object(text: str | None) -> dict[str, object]:
    """A JSON object of a column; empty where the column is null."""
    found = json.loads(text) if text else {}
    return found if isinstance(found, dict) else {}

"""Rows of stores by device and release of torch, each with what it says: yes, no, or nothing and why.

A row that is degraded, unsupported or failed says no. One that is unchecked, unsteady, flaky, stale, of
another model, imported from a file, skipped or lost says nothing: it earns no point and costs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any

import pyarrow.compute as pc

from torchgauge.errors import DamagedJournalError
from torchgauge.records import (
    ATTEMPTED,
    GRAVEST,
    INCOMPLETE,
    UNTIMED,
    Modifier,
    Status,
    Workload,
    counts_as_pass,
)
from torchgauge.results.compat.table import NOT_APPLICABLE
from torchgauge.results.latest import STALE_AFTER_S, Row, StoredRows, read_rows
from torchgauge.results.origin import IMPORTED_FROM
from torchgauge.results.row_case import WORKLOAD, json_object, workload_of
from torchgauge.results.scorecard.releases import Release, release_in
from torchgauge.suites.suite import HOST

_COLUMNS = (
    "case_id", *WORKLOAD, "configuration", "backend", "reason", "cause", "modifiers", "facts",
    "torch_version", "environment_id",
)  # fmt: skip
_KEYS = ("torch_version", "environment_id", "modifiers")
_SILENT = (*(each for each in GRAVEST if each in UNTIMED), Modifier.FLAKY, Modifier.STALE)
_STATUSES = {status.value for status in Status}


class Says(str, Enum):
    """What a row says of its case."""

    YES = "yes"
    NO = "no"
    NOTHING = "nothing"
    EXCUSED = "excused"
    """The question makes no sense on the device, or PyTorch's own test of it is skipped."""


@dataclass(frozen=True)
class Seen:
    """The row that stands for a case; ``latency`` is low end, median and high end in seconds.

    ``at`` is when it started, in seconds since the epoch, and ``why`` why it does not say yes.
    """

    workload: Workload
    configuration: str
    backend: str
    says: Says
    why: str
    case_id: str
    run_id: str
    at: float
    facts: Mapping[str, Any]
    latency: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Moment:
    """One row of a case, whatever it says; for what is asked of many runs and not of the newest one."""

    key: str
    environment: str
    status: str
    at: float
    release: Release | None
    counts: bool


@dataclass(frozen=True)
class Evidence:
    """What stores hold of ``device`` with ``release``; ``host`` are the rows of the processor beside it.

    ``moments`` are of all releases, up to ``newest_at``: the start of the newest row of this one.
    """

    device: str
    release: Release
    rows: tuple[Seen, ...]
    host: tuple[Seen, ...]
    moments: tuple[Moment, ...]
    newest_at: float
    is_host: bool = False

    @cached_property
    def of_suite(self) -> Mapping[str, tuple[Seen, ...]]:
        """Rows by suite."""
        found: dict[str, list[Seen]] = {}
        for row in self.rows:
            found.setdefault(row.workload.suite, []).append(row)
        return {suite: tuple(rows) for suite, rows in found.items()}


@dataclass(frozen=True)
class StoreEvidence:
    """All of it, by device and release; ``gaps`` and ``notes`` are sentences."""

    of: Mapping[str, Mapping[Release, Evidence]]
    notes: tuple[str, ...]
    gaps: tuple[str, ...]


def read_evidence(stores: Sequence[str]) -> StoreEvidence:
    """The evidence in ``stores``.

    Raises :class:`UsageError` where there is no store, :class:`DamagedJournalError` where none can be read.
    """
    stored = read_rows(stores, _KEYS)
    gaps = stored.reading.gaps
    if gaps and not len(stored.table):
        raise DamagedJournalError("; ".join(gaps), hint="restore the store from a copy")
    stood = stored.standing("case_key", "torch_version", "target")
    rows = _by_device(_whole(stood))
    latencies = _latencies(stood)
    moments = _moments(stored)
    found: dict[str, dict[Release, Evidence]] = {}
    for device, releases in rows.items():
        for release, kept in releases.items():
            beside = rows.get(HOST, {}).get(release, []) if device != HOST else []
            found.setdefault(device, {})[release] = _evidence(
                device, release, (kept, beside), latencies, moments.get(device, [])
            )
    return StoreEvidence(found, tuple(stored.reading.notes), tuple(stored.reading.gaps))


def _whole(stood: StoredRows) -> Iterable[Row]:
    for _, rows in stood.whole((*_COLUMNS, "case_key")):
        yield from (row for row in rows if row["status"] in _STATUSES)


def _by_device(rows: Iterable[Row]) -> dict[str, dict[Release, list[Row]]]:
    """The newest row of every case of a release: of 2.13.0 and 2.13.1 the later one that says something."""
    found: dict[str, dict[Release, dict[str, Row]]] = {}
    for row in sorted(rows, key=lambda row: (row["at"], row["run_id"])):
        release = release_in(row["torch_version"])
        if release is None:
            continue
        kept = found.setdefault(row["target"], {}).setdefault(release, {})
        lost = row["status"] in {status.value for status in INCOMPLETE}
        if not (lost and row["case_key"] in kept):
            kept[row["case_key"]] = row
    return {
        device: {release: list(cases.values()) for release, cases in releases.items()}
        for device, releases in found.items()
    }


def _evidence(
    device: str,
    release: Release,
    rows: tuple[list[Row], list[Row]],
    latencies: Mapping[tuple[str, str], tuple[float, float, float]],
    moments: list[Moment],
) -> Evidence:
    own, beside = rows
    newest = max(row["at"] for row in own)
    return Evidence(
        device,
        release,
        tuple(_seen(row, newest, latencies) for row in own),
        tuple(_seen(row, newest, latencies) for row in beside),
        tuple(each for each in moments if each.at <= newest),
        newest,
        device == HOST,
    )


def _seen(row: Row, newest: float, latencies: Mapping[tuple[str, str], tuple[float, float, float]]) -> Seen:
    facts = json_object(row["facts"])
    seen = Seen(
        workload_of(row),
        row["configuration"],
        row["backend"],
        Says.YES,
        "",
        row["case_id"],
        row["run_id"],
        row["at"],
        facts,
        latencies.get((row["run_id"], row["case_key"])),
    )
    says, why = _said(row, facts, newest)
    return replace(seen, says=says, why=why)


def _said(row: Row, facts: Mapping[str, Any], newest: float) -> tuple[Says, str]:
    """What ``row`` says, and why where that is no yes; ``newest`` is the newest row of its release."""
    status, modifiers = Status(row["status"]), tuple(row["modifiers"] or ())
    if newest - row["at"] > STALE_AFTER_S:
        return Says.NOTHING, "stale"
    if facts.get(IMPORTED_FROM):
        return Says.NOTHING, "imported, not measured here"
    silent = [each.value for each in _SILENT if each.value in modifiers]
    if silent:
        return Says.NOTHING, silent[0]
    if counts_as_pass(status.value, modifiers):
        return Says.YES, ""
    if status is Status.UNSUPPORTED and (row["reason"] or "").startswith(NOT_APPLICABLE):
        return Says.EXCUSED, NOT_APPLICABLE
    if status is Status.SKIPPED and facts.get("upstream"):
        return Says.EXCUSED, "skipped by PyTorch's own tests"
    if status is Status.PASS:
        return Says.NO, Modifier.DEGRADED.value
    if status in ATTEMPTED or status is Status.UNSUPPORTED:
        return Says.NO, status.value
    return Says.NOTHING, status.value


def _latencies(stood: StoredRows) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Step times with both ends by run and case key."""
    found = {}
    columns = ("run_id", "case_key", "metric", "median", "low", "high")
    for number in sorted(set(stood.table["run"].to_pylist())):
        table = stood.reading.table(stood.reading.runs[number], "summaries", columns)
        if table is None:
            continue
        for row in table.filter(pc.equal(table["metric"], "latency")).to_pylist():
            if row["median"] and row["low"] is not None and row["high"] is not None:
                found[row["run_id"], row["case_key"]] = (row["low"], row["median"], row["high"])
    return found


def _moments(stored: StoredRows) -> dict[str, list[Moment]]:
    columns = ("target", "case_key", "environment_id", "status", "when", "torch_version", "modifiers")
    found: dict[str, list[Moment]] = {}
    values = zip(*(stored.table[name].to_pylist() for name in columns), strict=True)
    for target, key, environment, status, when, version, modifiers in values:
        moment = Moment(
            key,
            environment or "",
            status,
            when.timestamp(),
            release_in(version),
            counts_as_pass(status, tuple(modifiers or ())),
        )
        found.setdefault(target, []).append(moment)
    return found

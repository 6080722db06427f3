"""The page of runs: which ran, how far they came, and on what."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from torchgauge.dashboard.pages import links
from torchgauge.dashboard.pages.calibration import CalibrationRow, calibration_row
from torchgauge.dashboard.plain_rows import Row, plain_rows
from torchgauge.dashboard.statuses import LOOKS
from torchgauge.dashboard.tally import Tally, check_run
from torchgauge.records import Status
from torchgauge.results import frames, units
from torchgauge.results.hostile_text import first_line
from torchgauge.results.journal import RunState
from torchgauge.results.store import RunInfo, Store

_STATES = {
    RunState.RUNNING: "running",
    RunState.INTERRUPTED: "interrupted",
    RunState.OUT_OF_BUDGET: "out of budget",
    RunState.COMPLETE: "ended",
}
"""The states in words; a run that ended may still be incomplete, which is said apart."""


@dataclass(frozen=True)
class EnvironmentLink:
    """An environment of a run, with what was observed then: its conditions and notes."""

    id: str
    anchor: str
    device: str
    conditions: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RunSection:
    """One run."""

    run_id: str
    anchor: str
    state: str
    published: bool
    when: str
    age: str
    planned: int
    recorded: int
    incomplete: bool
    problem: str
    tally: Tally
    environments: tuple[EnvironmentLink, ...]
    calibrations: tuple[CalibrationRow, ...]


@dataclass(frozen=True)
class EnvironmentSection:
    """The identity of one environment: what its hash covers."""

    id: str
    anchor: str
    device: str
    identity: tuple[tuple[str, str], ...]
    runs: int


def environment_sections(store: Store) -> tuple[EnvironmentSection, ...]:
    """All environments of the store, by device."""
    identities: dict[tuple[str, str], dict[str, str]] = {}
    runs: dict[tuple[str, str], set[str]] = {}
    for row in plain_rows(frames.environments(store)):
        key = row["device"], row["environment_id"]
        identity = identities.setdefault(key, {})
        runs.setdefault(key, set()).add(row["run_id"])
        if row["kind"] == "identity":
            identity[row["key"]] = fact(row["value"])
    return tuple(
        EnvironmentSection(
            environment_id,
            links.environment_anchor(environment_id),
            device,
            tuple(sorted(identity.items())),
            len(runs[device, environment_id]),
        )
        for (device, environment_id), identity in sorted(identities.items())
    )


def run_sections(store: Store, now: float) -> tuple[RunSection, ...]:
    """All runs, newest first, finished or not.

    Raises :class:`DashboardError` where the rows of a published run do not add up to its plan.
    """
    statuses: dict[str, Counter[str]] = {}
    cases: dict[str, set[str]] = {}
    for row in plain_rows(frames.results(store)[["run_id", "case_key", "status"]]):
        statuses.setdefault(row["run_id"], Counter())[row["status"]] += 1
        cases.setdefault(row["run_id"], set()).add(row["case_key"])
    environments = _by_run(plain_rows(frames.environments(store)))
    calibrations = _by_run(plain_rows(frames.calibrations(store)))
    ids = sorted({*store.run_ids(), *store.published()})
    infos = sorted((store.info(run_id) for run_id in ids), key=lambda i: (-i.created_at, i.run_id))
    found = []
    for info in infos:
        counts = statuses.get(info.run_id, Counter())
        if info.published:
            check_run(info, counts, len(cases.get(info.run_id, ())))
        found.append(
            _section(
                info,
                counts if info.published else info.counts,
                environments.get(info.run_id, []),
                [calibration_row(row) for row in calibrations.get(info.run_id, [])],
                now,
            )
        )
    return tuple(found)


def fact(text: str) -> str:
    """A JSON value as a person reads it; text that is no JSON as it stands."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _section(
    info: RunInfo,
    counts: Counter[str] | dict[str, int],
    environments: Sequence[Row],
    calibrations: Sequence[CalibrationRow],
    now: float,
) -> RunSection:
    by_status = {status: counts.get(status.value, 0) for status in LOOKS}
    counted = Tally(by_status, by_status[Status.PASS], {})
    recorded = sum(counts.values())
    return RunSection(
        run_id=info.run_id,
        anchor=links.run_anchor(info.run_id),
        state="unknown" if info.problem else _STATES[info.state],
        published=info.published,
        when=units.moment(info.created_at) if info.created_at else "unknown",
        age=units.age(now - info.created_at) if info.created_at else "unknown",
        planned=recorded if info.problem else info.planned,
        recorded=recorded,
        incomplete=bool(counted.incomplete) or recorded < info.planned,
        problem=first_line(info.problem, 300),
        tally=counted,
        environments=_environment_links(environments),
        calibrations=tuple(calibrations),
    )


def _environment_links(rows: Sequence[Row]) -> tuple[EnvironmentLink, ...]:
    """The environments of one run; of several observations the last one's conditions."""
    conditions: dict[tuple[str, str], dict[str, str]] = {}
    notes: dict[tuple[str, str], dict[str, None]] = {}
    for row in sorted(rows, key=lambda row: row["observation"]):
        key = row["device"], row["environment_id"]
        conditions.setdefault(key, {})
        notes.setdefault(key, {})
        if row["kind"] == "condition":
            conditions[key][row["key"]] = fact(row["value"])
        elif row["kind"] == "note":
            notes[key][fact(row["value"])] = None
    return tuple(
        EnvironmentLink(
            environment_id,
            links.environment_anchor(environment_id),
            device,
            tuple(sorted(conditions[device, environment_id].items())),
            tuple(notes[device, environment_id]),
        )
        for device, environment_id in sorted(conditions)
    )


def _by_run(rows: Sequence[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["run_id"], []).append(row)
    return found

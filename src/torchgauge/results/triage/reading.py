"""The rows of several stores as triage needs them: how every case stands now, and how it stood before.

Only published runs are read. A run that is in several stores counts once. ``infra`` and ``not_run`` say
nothing of a case, so the newest row that says something stands for it, as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import pyarrow.compute as pc

from torchgauge.clock import utc
from torchgauge.counted import counted
from torchgauge.errors import NothingSelectedError, UnknownNameError
from torchgauge.records import Cause, Modifier, Status
from torchgauge.results.latest import Row, StoredRows, read_rows
from torchgauge.results.row_case import WORKLOAD
from torchgauge.results.triage.clusters import COLUMNS, ClusterKey, key_of

NOT_ATTEMPTED = [Status.SKIPPED.value, Status.UNSUPPORTED.value]
_LIGHT = ("suite", "modifiers", "cause")
HEAVY = tuple(
    dict.fromkeys(
        (
            "case_id", *WORKLOAD, "configuration", "expected", "unexpected", "modifiers", "parameters",
            "duration_s", "reproduce", "torch_version", *COLUMNS,
        )
    )
)  # fmt: skip
"""What is asked of a row that is shown."""


@dataclass(frozen=True)
class Wanted:
    """Which rows are read: devices as ``D`` or ``D.1`` and suites (empty: all), and failing statuses."""

    devices: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    statuses: tuple[Status, ...] = ()


@dataclass(frozen=True)
class RunMark:
    """A run on the time axis; ``at`` is when it was planned, seconds since the epoch."""

    run_id: str
    at: float

    @property
    def date(self) -> str:
        """The UTC day."""
        return f"{utc(self.at):%Y-%m-%d}"


@dataclass(frozen=True)
class Sighting:
    """The runs of the first and of the last row of a cluster; whether the baseline has a row of it."""

    first: RunMark
    last: RunMark
    in_baseline: bool


@dataclass(frozen=True)
class Failures:
    """What failed: now, before the baseline, and ever.

    ``now`` and ``before`` map a case key to its row where it has a wanted status; ``endings`` is the status
    of every case now. ``ever`` has every cluster that any wanted row belongs to. ``runs`` are in order of
    planning, and ``since`` is the newest that the baseline holds (None: it is empty). Rows are plain values,
    with ``target`` (the device as a case names it). ``lost`` are keys of cases that passed and are
    skipped or unsupported now, which count as failures; ``skipped`` has the cause of each skipped case.
    """

    now: dict[str, Row]
    before: dict[str, Row]
    endings: dict[str, str]
    ever: dict[ClusterKey, Sighting]
    runs: tuple[RunMark, ...]
    since: RunMark | None
    lost: frozenset[str] = frozenset()
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()


def read_failures(paths: Sequence[str], wanted: Wanted, since: str | float | None = None) -> Failures:
    """What failed in the stores at ``paths``, and what had failed before ``since``.

    ``since`` is a run, up to and with which the baseline goes; or a time (seconds since the epoch), before
    which its runs were planned; None: every run but the newest. Raises :class:`UsageError` where there is no
    store, :class:`NothingSelectedError` where no run is published, and :class:`UnknownNameError` for a run,
    device or suite that no row has.
    """
    published = published_rows(paths)
    chosen = chosen_rows(published, wanted)
    reading, rows = chosen.reading, chosen.saying
    runs = _runs(published)
    baseline = _baseline(runs, since)
    old = {run.run_id for run in baseline}
    now = _endings(rows.newest("case_key"))
    before = _endings(rows.of("run_id", old).newest("case_key"))
    lost = _lost(rows)
    ever_lost = lost | _lost(rows.of("run_id", old))
    skips = rows.newest("case_key").of("status", [Status.SKIPPED.value])
    failing = rows.of("status", [status.value for status in wanted.statuses])
    losing = rows.of("status", NOT_ATTEMPTED).of("case_key", ever_lost)
    shown = {(run, key) for found in (now, before) for key, (run, _) in found.items()}
    heavy: dict[tuple[str, str], Row] = {}
    ever: dict[ClusterKey, Sighting] = {}
    marks = {run.run_id: run for run in runs}
    for run, failed in chain(failing.whole(HEAVY), losing.whole(HEAVY)):
        for row in failed:
            _sight(ever, key_of(row), marks[run.run_id], in_baseline=run.run_id in old)
            if (run.run_id, row["case_key"]) in shown:
                heavy[run.run_id, row["case_key"]] = row
    mute = pc.count_distinct(chosen.table["case_key"]).as_py() - len(now)
    if mute:
        said = f"{counted(mute, 'case')} ended only as infra or not_run, and are in no cluster"
        reading.notes.append(said)
    last = rows.newest("case_key").table["modifiers"].to_pylist()
    if posing := sum(Modifier.OTHER_MODEL.value in (marks or ()) for marks in last):
        cases = counted(posing, "case")
        reading.notes.append(f"other_model: {cases} in which the built model is not the named one")
    return Failures(
        now={key: heavy[run, key] for key, (run, _) in now.items() if (run, key) in heavy},
        before={key: heavy[run, key] for key, (run, _) in before.items() if (run, key) in heavy},
        endings={key: status for key, (_, status) in now.items()},
        ever=ever,
        runs=runs,
        since=baseline[-1] if baseline else None,
        lost=lost,
        skipped=tuple(cause or "no cause" for cause in skips.table["cause"].to_pylist()),
        notes=tuple(reading.notes),
        gaps=tuple(reading.gaps),
    )


def _lost(rows: StoredRows) -> frozenset[str]:
    """Return the keys of cases that passed, and whose newest row is an undeclared skip or unsupported."""
    ended = rows.newest("case_key").of("status", NOT_ATTEMPTED).table
    undeclared = ended.filter(pc.not_equal(pc.fill_null(ended["cause"], ""), Cause.DECLARED.value))
    return rows.last_passed.intersection(undeclared["case_key"].to_pylist())


def _sight(ever: dict[ClusterKey, Sighting], key: ClusterKey, mark: RunMark, *, in_baseline: bool) -> None:
    known = ever.get(key, Sighting(mark, mark, in_baseline))
    ever[key] = Sighting(
        min(known.first, mark, key=_planned),
        max(known.last, mark, key=_planned),
        known.in_baseline or in_baseline,
    )


def _planned(mark: RunMark) -> tuple[float, str]:
    return mark.at, mark.run_id


def published_rows(paths: Sequence[str]) -> StoredRows:
    """All rows of the stores at ``paths``; raises :class:`UsageError` and :class:`NothingSelectedError`."""
    stored = read_rows(paths, _LIGHT)
    if not stored.reading.runs:
        gaps = "".join(f"; {gap}" for gap in stored.reading.gaps)
        raise NothingSelectedError(
            f"no run is published in {', '.join(paths)}{gaps}",
            hint="torchgauge run SUITE --device DEVICE --store DIR",
        )
    return stored


def chosen_rows(stored: StoredRows, wanted: Wanted) -> StoredRows:
    """Those of the wanted devices and suites; raises :class:`UnknownNameError` for one that no row has."""
    asked = (("target", "device", wanted.devices), ("suite", "suite", wanted.suites))
    for column, word, names in asked:
        known = set(stored.table[column].unique().to_pylist())
        for name in names:
            if name not in known:
                raise UnknownNameError(f"{word} of the store", name, known)
    for column, _, names in asked:
        stored = stored.of(column, names) if names else stored
    return stored


def _runs(rows: StoredRows) -> tuple[RunMark, ...]:
    """All runs of the stores that have a row, in order of planning."""
    planned = rows.table.group_by(["run_id", "run_created_at"]).aggregate([]).to_pylist()
    marks = [RunMark(row["run_id"], row["run_created_at"].timestamp()) for row in planned]
    return tuple(sorted(marks, key=_planned))


def _baseline(runs: Sequence[RunMark], since: str | float | None) -> tuple[RunMark, ...]:
    if since is None:
        return tuple(runs[:-1])
    if isinstance(since, str):
        names = [run.run_id for run in runs]
        if since not in names:
            raise UnknownNameError(
                "published run", since, names, hint="pass a run, a date, or days such as 30d"
            )
        return tuple(runs[: names.index(since) + 1])
    return tuple(run for run in runs if run.at < since)


def _endings(rows: StoredRows) -> dict[str, tuple[str, str]]:
    """Run and status by case key."""
    keys, runs, statuses = (rows.table[name].to_pylist() for name in ("case_key", "run_id", "status"))
    return {key: (run, status) for key, run, status in zip(keys, runs, statuses, strict=True)}

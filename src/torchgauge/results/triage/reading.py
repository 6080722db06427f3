"""The rows of several stores as triage needs them: how every case stands now, and how it stood before.

Only published runs are read. A run that is in several stores counts once. ``infra`` and ``not_run`` say
nothing of a case, so the newest row that says something stands for it, as everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from torchgauge.clock import utc
from torchgauge.errors import DamagedJournalError, NothingSelectedError, UnknownNameError, UsageError
from torchgauge.records import INCOMPLETE, DeviceTarget, Modifier, Status
from torchgauge.results.dataset import read_table
from torchgauge.results.store import Store
from torchgauge.results.triage.clusters import COLUMNS, ClusterKey, key_of

_LIGHT = (
    "run_id", "case_key", "suite", "device", "device_index", "status", "started_at", "run_created_at",
    "modifiers",
)  # fmt: skip
_MORE = (
    "case_id", "mode", "dtype", "batch", "size", "shape", "seed", "weights", "configuration", "expected",
    "unexpected", "parameters", "duration_s", "reproduce", "torch_version",
)  # fmt: skip
_HEAVY = tuple(dict.fromkeys((*_LIGHT, *_MORE, *COLUMNS)))
_ORDER = [("when", "ascending"), ("run_created_at", "ascending"), ("run_id", "ascending")]
_SILENT = pa.array(sorted(status.value for status in INCOMPLETE))

Row = dict[str, Any]


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
    with ``target`` (the device as a case names it).
    """

    now: dict[str, Row]
    before: dict[str, Row]
    endings: dict[str, str]
    ever: dict[ClusterKey, Sighting]
    runs: tuple[RunMark, ...]
    since: RunMark | None
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()


def read_failures(paths: Sequence[str], wanted: Wanted, since: str | float | None = None) -> Failures:
    """What failed in the stores at ``paths``, and what had failed before ``since``.

    ``since`` is a run, up to and with which the baseline goes; or a time (seconds since the epoch), before
    which its runs were planned; None: every run but the newest. Raises :class:`UsageError` where there is no
    store, :class:`NothingSelectedError` where no run is published, and :class:`UnknownNameError` for a run,
    device or suite that no row has.
    """
    parts, where, notes, gaps = light_rows(paths)
    if not parts:
        raise NothingSelectedError(
            f"no run is published in {', '.join(paths)}" + ("; " + "; ".join(gaps) if gaps else ""),
            hint="torchgauge run SUITE --device DEVICE --store DIR measures something",
        )
    whole = chosen_rows(pa.concat_tables(parts), wanted)
    runs = _runs(parts)
    baseline = _baseline(runs, since)
    failing = pa.array(sorted(status.value for status in wanted.statuses))
    saying = whole.filter(pc.invert(pc.is_in(whole["status"], value_set=_SILENT)))
    held = pa.array([run.run_id for run in baseline], pa.string())
    now = _newest(saying)
    before = _newest(saying.filter(pc.is_in(saying["run_id"], value_set=held)))
    shown = {(run, key) for found in (now, before) for key, (run, _) in found.items()}
    failed = saying.filter(pc.is_in(saying["status"], value_set=failing))
    heavy: dict[tuple[str, str], Row] = {}
    ever: dict[ClusterKey, Sighting] = {}
    marks = {run.run_id: run for run in runs}
    old = {run.run_id for run in baseline}
    for run_id, rows in heavy_rows(failed, where, gaps):
        for row in rows:
            _sight(ever, key_of(row), marks[run_id], in_baseline=run_id in old)
            if (run_id, row["case_key"]) in shown:
                heavy[run_id, row["case_key"]] = row
    mute = len(set(whole["case_key"].to_pylist()) - set(now))
    if mute:
        notes.append(f"{mute} case{'' if mute == 1 else 's'} only ever ended as infra or not_run: no cluster")
    posing = _other_models(saying)
    if posing:
        cases = "1 case" if posing == 1 else f"{posing} cases"
        notes.append(f"{cases} of another model than the name says: other_model")
    return Failures(
        now={key: heavy[run, key] for key, (run, _) in now.items() if (run, key) in heavy},
        before={key: heavy[run, key] for key, (run, _) in before.items() if (run, key) in heavy},
        endings={key: status for key, (_, status) in now.items()},
        ever=ever,
        runs=runs,
        since=baseline[-1] if baseline else None,
        notes=tuple(notes),
        gaps=tuple(dict.fromkeys(gaps)),
    )


def _sight(ever: dict[ClusterKey, Sighting], key: ClusterKey, mark: RunMark, *, in_baseline: bool) -> None:
    known = ever.get(key, Sighting(mark, mark, in_baseline))
    ever[key] = Sighting(
        min(known.first, mark, key=_planned),
        max(known.last, mark, key=_planned),
        known.in_baseline or in_baseline,
    )


def _planned(mark: RunMark) -> tuple[float, str]:
    return mark.at, mark.run_id


def light_rows(paths: Sequence[str]) -> tuple[list[Any], dict[str, Store], list[str], list[str]]:
    """A few columns of each published run, the store of each, notes and gaps; raises :class:`UsageError`."""
    if not paths:
        raise UsageError("no store is named", hint="--store DIR, as often as there are stores")
    parts: list[Any] = []
    where: dict[str, Store] = {}
    notes: list[str] = []
    gaps: list[str] = []
    for path in dict.fromkeys(str(Path(path)) for path in paths):
        store = Store.open(path)
        for run_id in store.published():
            if run_id in where:
                notes.append(f"run {run_id} is in {where[run_id].path} and in {path}: it counts once")
                continue
            try:
                parts.append(read_table(store, "results", run_id, _LIGHT))
            except (DamagedJournalError, UsageError) as error:
                gaps.append(f"run {run_id} of {path} is left out: {error.message}")
                continue
            where[run_id] = store
        waiting = sum(not store.is_published(run_id) for run_id in store.run_ids())
        if waiting:
            notes.append(f"{path}: {waiting} run{'' if waiting == 1 else 's'} not published, and not read")
    return parts, where, notes, gaps


def chosen_rows(whole: Any, wanted: Wanted) -> Any:
    """Rows of the wanted devices and suites, in order of time, with ``when``."""
    targets = [
        str(DeviceTarget(name, index))
        for name, index in zip(whole["device"].to_pylist(), whole["device_index"].to_pylist(), strict=True)
    ]
    for device in wanted.devices:
        if device not in targets:
            raise UnknownNameError("device of the store", device, set(targets))
    suites = set(whole["suite"].to_pylist())
    for suite in wanted.suites:
        if suite not in suites:
            raise UnknownNameError("suite of the store", suite, suites)
    if wanted.devices:
        whole = whole.filter(pa.array([target in wanted.devices for target in targets], pa.bool_()))
    if wanted.suites:
        whole = whole.filter(pc.is_in(whole["suite"], value_set=pa.array(wanted.suites)))
    when = pc.coalesce(whole["started_at"], whole["run_created_at"])
    return whole.append_column("when", when).sort_by(_ORDER)


def _runs(parts: Sequence[Any]) -> tuple[RunMark, ...]:
    marks = [
        RunMark(part["run_id"][0].as_py(), part["run_created_at"][0].as_py().timestamp())
        for part in parts
        if len(part)
    ]
    return tuple(sorted(marks, key=lambda mark: (mark.at, mark.run_id)))


def _baseline(runs: Sequence[RunMark], since: str | float | None) -> tuple[RunMark, ...]:
    if since is None:
        return tuple(runs[:-1])
    if isinstance(since, str):
        names = [run.run_id for run in runs]
        if since not in names:
            raise UnknownNameError("published run", since, names, hint="a run, a date, or days such as 30d")
        return tuple(runs[: names.index(since) + 1])
    return tuple(run for run in runs if run.at < since)


def _newest(rows: Any) -> dict[str, tuple[str, str]]:
    """Run and status of the newest of ``rows``, which are in order of time, by case key."""
    names = ("case_key", "run_id", "status")
    keys, runs, statuses = (rows[name].to_pylist() for name in names)
    return {key: (run, status) for key, run, status in zip(keys, runs, statuses, strict=True)}


def _other_models(rows: Any) -> int:
    """How many cases were last built as another model than their name says; ``rows`` are in order of time."""
    newest = dict(zip(rows["case_key"].to_pylist(), rows["modifiers"].to_pylist(), strict=True))
    return sum(Modifier.OTHER_MODEL.value in (marks or ()) for marks in newest.values())


def heavy_rows(rows: Any, where: dict[str, Store], gaps: list[str]) -> Iterator[tuple[str, list[Row]]]:
    """Everything that is asked of ``rows``, run by run, so that no more than one run is held at a time."""
    wanted: dict[str, set[str]] = {}
    for run_id, key in zip(rows["run_id"].to_pylist(), rows["case_key"].to_pylist(), strict=True):
        wanted.setdefault(run_id, set()).add(key)
    for run_id, keys in wanted.items():
        try:
            table = read_table(where[run_id], "results", run_id, _HEAVY)
        except (DamagedJournalError, UsageError) as error:
            gaps.append(f"run {run_id} of {where[run_id].path} is left out: {error.message}")
            continue
        found: list[Row] = table.filter(pc.is_in(table["case_key"], value_set=_strings(keys))).to_pylist()
        for row in found:
            row["target"] = str(DeviceTarget(row["device"], row["device_index"]))
        yield run_id, found


def _strings(values: Collection[str]) -> Any:
    return pa.array(sorted(values), pa.string())

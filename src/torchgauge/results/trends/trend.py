"""Nightly history of every case as series, and the changes in them that are worth a second look.

A series is one metric of one case on one class of machine, over the published runs. Its changes are
suspicions, not verdicts (``docs/comparison.md``, Trend): a confirmation decides, and is remembered in
:mod:`~torchgauge.results.trends.trend_outcomes`. Where the pinned reference build is measured into the same
store, its runs are a series of their own and never mix with those of the builds that change.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pandas as pd

from torchgauge.clock import utc
from torchgauge.records import Better, doubt, number_counts
from torchgauge.records.codec import digest
from torchgauge.results import frames
from torchgauge.results.dataset import read_table
from torchgauge.results.gain import change_text
from torchgauge.results.json_file import object_if_any
from torchgauge.results.origin import read_provenance
from torchgauge.results.store import Store
from torchgauge.results.trends.change_points import ChangePoint, Findings, change_points
from torchgauge.results.trends.trend_findings import TrendFilter
from torchgauge.results.trends.trend_outcomes import TrendOutcome, TrendState, read_outcomes
from torchgauge.suites.model_code import named_code

_MACHINE_FACTS = (
    "cpu.model", "cpu.cores_logical", "host.memory_bytes", "host.system", "device.model", "machine",
)  # fmt: skip
"""Facts that make two machines two: others (drivers, libraries, the governor) may change overnight."""
_PASSED = ("pass", "fail_accuracy")
_NEAR = 2
"""Nights by which more history may move a change that was confirmed."""


@dataclass(frozen=True)
class Night:
    """One run's value of a series, in its base unit; None where the case has no number that may be compared.

    ``doubt`` is the modifier that keeps its number out, such as ``unsteady``; empty where none does.

    ``at`` is when the run was planned, in seconds since the epoch. ``python`` is the interpreter of the
    run's workers, empty where the plan is gone, and ``commit`` what its campaign was planned for, empty
    where no campaign brought it. ``code`` names the model's code and libraries, empty where the row has none.
    """

    run_id: str
    at: float
    value: float | None
    torch_version: str
    environment_id: str
    python: str = ""
    commit: str = ""
    doubt: str = ""
    code: str = ""

    @property
    def date(self) -> str:
        """The day, UTC."""
        return f"{utc(self.at):%Y-%m-%d}"


@dataclass(frozen=True)
class Series:
    """One metric of one case on one class of machine, oldest night first.

    It ends where another model is built by the same name; ``rebuilt`` says that it begins with one.
    """

    case_key: str
    case_id: str
    suite: str
    model: str
    device: str
    configuration: str
    metric: str
    unit: str
    better: str
    machine: str
    nights: tuple[Night, ...]
    mode: str = ""
    rebuilt: bool = False

    @property
    def code_changes(self) -> tuple[Night, ...]:
        """Return the nights whose code digest differs from the previous known digest."""
        named = [night for night in self.nights if night.code]
        return tuple(after for before, after in pairwise(named) if after.code != before.code)

    def worse(self, size: float) -> bool | None:
        """Whether a relative change of ``size`` is for the worse; None where neither direction is better."""
        return Better(self.better or Better.NEITHER).worse(size)


@dataclass(frozen=True)
class Suspicion:
    """A change of one series, with what became of it.

    ``good`` is the last night before the change with a number, ``suspect`` the first with the new level.
    """

    series: Series
    change: ChangePoint
    good: Night
    suspect: Night
    state: TrendState = TrendState.SUSPECTED
    outcome: TrendOutcome | None = None

    @property
    def code_changed(self) -> bool:
        """Return whether the code changed between the good and the suspect night, the suspect included."""
        return any(self.good.at < night.at <= self.suspect.at for night in self.series.code_changes)

    @property
    def worse(self) -> bool | None:
        """Whether the change is for the worse."""
        return self.series.worse(self.change.size)

    @property
    def moved(self) -> str:
        """The size of the change as text, such as ``+12.0% time``."""
        return change_text(self.change.size, self.series.unit)

    @property
    def key(self) -> str:
        """Sixteen hex digits that name the suspicion."""
        return digest([self.series.case_key, self.series.metric, self.series.machine, self.suspect.run_id])


@dataclass(frozen=True)
class SeriesTrend:
    """One series with its noise, its changes and how far it has come from its baseline.

    ``drift`` is the present level over the level since the last change that was confirmed, less 1: small
    losses that no single night shows add up in it. None where there is no number.
    """

    series: Series
    findings: Findings
    suspicions: tuple[Suspicion, ...]
    drift: float | None


@dataclass
class Trend:
    """All series that were asked for; ``reference`` holds those of the pinned build."""

    series: list[SeriesTrend] = field(default_factory=list)
    reference: list[Series] = field(default_factory=list)

    @property
    def suspicions(self) -> list[Suspicion]:
        """All changes, newest first."""
        found = [each for trend in self.series for each in trend.suspicions]
        return sorted(found, key=lambda each: (-each.suspect.at, each.series.case_id))

    def groups(self) -> list[tuple[str, bool | None, list[Suspicion]]]:
        """Suspicions by date of the suspect night and direction: what begins together has one cause."""
        found: dict[tuple[str, bool | None], list[Suspicion]] = {}
        for each in self.suspicions:
            found.setdefault((each.suspect.date, each.worse), []).append(each)
        return [(date, worse, members) for (date, worse), members in found.items()]

    def reference_of(self, series: Series) -> Series | None:
        """The series of the pinned build for the same case on the same class of machine."""
        wanted = (series.case_key, series.metric, series.machine)
        for each in self.reference:
            if (each.case_key, each.metric, each.machine) == wanted:
                return each
        return None


def trend(store: Store, wanted: TrendFilter) -> Trend:
    """Every series of ``store`` that ``wanted`` selects, with its changes and what became of them."""
    found = series_of(store, wanted)
    reference = _reference_runs(store, wanted.reference)
    ours, pinned = [], []
    for each in found:
        inside = tuple(night for night in each.nights if _is_reference(night, reference, wanted.reference))
        outside = tuple(night for night in each.nights if night not in inside)
        if inside:
            pinned.append(replace(each, nights=inside))
        if outside:
            ours.append(replace(each, nights=outside))
    outcomes = read_outcomes(store)
    return Trend([judged(store, each, outcomes) for each in ours], pinned)


def judged(store: Store, series: Series, outcomes: Iterable[TrendOutcome]) -> SeriesTrend:
    """The changes of ``series``; a change that was confirmed resets its baseline."""
    ours = (series.case_key, series.metric, series.machine)
    own = [each for each in outcomes if (each.case_key, each.metric, each.machine) == ours]
    places = {night.run_id: place for place, night in enumerate(series.nights)}
    last = {each.suspect_run: each for each in own if each.suspect_run in places}
    known = [places[run] for run, each in last.items() if each.state.settled]
    answered = [places[run] for run, each in last.items() if not each.state.open]
    findings = change_points([night.value for night in series.nights], known=known, answered=answered)
    by_place = {places[run]: each for run, each in last.items()}
    suspicions = tuple(
        _suspicion(store, series, change, _answer(change, findings.points, by_place))
        for change in findings.points
    )
    return SeriesTrend(series, findings, suspicions, _drift(series, suspicions))


def series_of(store: Store, wanted: TrendFilter) -> list[Series]:
    """The series that ``wanted`` selects, by case id, without their interpreters."""
    results = frames.results(store)
    summaries = frames.frame_of(read_table(store, "summaries"))
    summaries = summaries[summaries["metric"] == wanted.metric]
    if wanted.modes:
        summaries = summaries[summaries["mode"].isin(wanted.modes)]
    if results.empty or summaries.empty:
        return []
    keys = ["run_id", "case_key"]
    rows = results.merge(summaries[[*keys, "unit", "better", "median"]], on=keys, how="left")
    rows = rows[rows["case_key"].isin(set(summaries["case_key"]))]
    doubts = [doubt(wanted.metric, modifiers) for modifiers in rows["modifiers"]]
    rows = rows.assign(doubt=pd.Series(doubts, index=rows.index, dtype="string"))
    counts = [
        number_counts(wanted.metric, *row) for row in zip(rows["status"], rows["modifiers"], strict=True)
    ]
    usable = rows["status"].isin(_PASSED) & pd.Series(counts, index=rows.index, dtype=bool)
    rows = rows.assign(median=rows["median"].where(usable))
    machines = _machines(store)
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    ordered = rows.sort_values(["run_created_at", "run_id"], kind="stable").to_dict("records")
    for row in cast("list[dict[str, Any]]", ordered):
        if row["run_created_at"].timestamp() >= wanted.since and wanted.fits(row):
            machine = machines.get((row["run_id"], _text(row["environment_id"])), "")
            found.setdefault((row["case_key"], machine), []).append(row)
    _join_unknown(found)
    parts = [
        _series(part, wanted.metric, machine, rebuilt=number > 0)
        for (_, machine), rows in found.items()
        for number, part in enumerate(_by_model(rows))
    ]
    return sorted(parts, key=lambda each: (each.case_id, each.machine))


def interpreter_of(store: Store, run_id: str) -> str:
    """The interpreter of the workers of ``run_id``; empty where its plan is gone."""
    return str(object_if_any(store.path / "runs" / run_id / "plan.json").get("python", ""))


def commit_of(store: Store, run_id: str) -> str:
    """The commit that the campaign of ``run_id`` was planned for; empty where no campaign brought it."""
    return str(read_provenance(store, run_id).get("sha", ""))


def _machines(store: Store) -> dict[tuple[str, str], str]:
    facts = frames.environments(store)
    facts = facts[(facts["kind"] == "identity") & facts["key"].isin(_MACHINE_FACTS)]
    found: dict[tuple[str, str], dict[str, str]] = {}
    for row in facts.to_dict("records"):
        found.setdefault((row["run_id"], row["environment_id"]), {})[row["key"]] = row["value"]
    return {key: digest(value) for key, value in found.items()}


def _join_unknown(found: dict[tuple[str, str], list[dict[str, Any]]]) -> None:
    """A run in which a case never started has no environment: it is a gap in the one series of the case."""
    for case_key, machine in [key for key in found if not key[1]]:
        others = [key for key in found if key[0] == case_key and key[1]]
        if len(others) == 1:
            rows = found[others[0]] + found.pop((case_key, machine))
            found[others[0]] = sorted(rows, key=lambda row: (row["run_created_at"], row["run_id"]))


def _by_model(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Cut the rows of a case where another model was built; a row without one belongs to that before it."""
    parts, built = [[rows[0]]], _text(rows[0]["realised_hash"])
    for row in rows[1:]:
        other = _text(row["realised_hash"])
        if other and built and other != built:
            parts.append([])
        parts[-1].append(row)
        built = other or built
    return parts


def _series(rows: Sequence[dict[str, Any]], metric: str, machine: str, *, rebuilt: bool) -> Series:
    last = rows[-1]
    named = next((row for row in reversed(rows) if _text(row["unit"])), last)
    return Series(
        case_key=last["case_key"],
        case_id=last["case_id"],
        suite=last["suite"],
        model=last["model"],
        mode=last["mode"],
        device=last["device"],
        configuration=last["configuration"],
        metric=metric,
        unit=_text(named["unit"]),
        better=_text(named["better"]),
        machine=machine,
        rebuilt=rebuilt,
        nights=tuple(
            Night(
                run_id=row["run_id"],
                at=row["run_created_at"].timestamp(),
                value=_number(row["median"]),
                torch_version=_text(row["torch_version"]),
                environment_id=_text(row["environment_id"]),
                doubt=_text(row["doubt"]),
                code=named_code(json.loads(_text(row["facts"]) or "{}")),
            )
            for row in rows
        ),
    )


def _answer(
    change: ChangePoint, points: Sequence[ChangePoint], outcomes: dict[int, TrendOutcome]
) -> TrendOutcome | None:
    """What was said of ``change``, one of ``points``; more history may have moved it by a few nights.

    An answer is to one change, the nearest: a second one close by was not measured with the first.
    """
    near = range(change.first - _NEAR, change.last + _NEAR + 1)
    own = [
        place
        for place in outcomes
        if place in near and min(points, key=lambda point: abs(point.index - place)) is change
    ]
    return outcomes[min(own, key=lambda place: abs(place - change.index))] if own else None


def _suspicion(store: Store, series: Series, change: ChangePoint, outcome: TrendOutcome | None) -> Suspicion:
    nights = series.nights
    good = next(each for each in reversed(nights[: change.index]) if each.value is not None)
    return Suspicion(
        series=series,
        change=change,
        good=_with_build(store, good),
        suspect=_with_build(store, nights[change.index]),
        state=outcome.state if outcome else TrendState.SUSPECTED,
        outcome=outcome,
    )


def _drift(series: Series, suspicions: Sequence[Suspicion]) -> float | None:
    settled = [each.change.index for each in suspicions if each.state.settled]
    open_ = [each.change.index for each in suspicions if not each.state.settled]
    start = max(settled, default=0)
    later = [index for index in open_ if index > start]
    values = [night.value for night in series.nights]
    usable = [value for value in values[start:] if value is not None and value > 0]
    if not usable:
        return None
    first = [v for v in values[start : min(later, default=len(values))] if v is not None and v > 0]
    now = [v for v in values[max(later, default=start) :] if v is not None and v > 0][-7:]
    return float(np.median(now) / np.median(first[:30])) - 1.0 if first and now else None


def _reference_runs(store: Store, reference: str) -> Collection[str]:
    """Runs of the pinned build: those whose workers were this interpreter."""
    if not reference:
        return ()
    return {run for run in store.published() if interpreter_of(store, run) == reference}


def _is_reference(night: Night, runs: Collection[str], reference: str) -> bool:
    return bool(reference) and (night.run_id in runs or night.torch_version == reference)


def _with_build(store: Store, night: Night) -> Night:
    return replace(night, python=interpreter_of(store, night.run_id), commit=commit_of(store, night.run_id))


def _number(value: Any) -> float | None:
    return None if pd.isna(value) else float(value)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

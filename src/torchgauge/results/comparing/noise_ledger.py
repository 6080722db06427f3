"""The noise ledger: per case and class of runner, what unchanged code was seen to do, and how often the rule
cried wolf.

Everything comes from the tables of A/B runs. A ledger over thousands of runs reads a few columns of launches
and verdicts and never their steps.
"""  # noqa: D205

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from torchgauge.clock import DAY_S
from torchgauge.records.comparison import Verdict
from torchgauge.results.comparing.comparison_store import read_comparisons
from torchgauge.results.comparing.quarantine import WINDOW_DAYS, Night, quarantine_state
from torchgauge.results.comparing.verdict_words import CHANGED
from torchgauge.results.frames import frame_of
from torchgauge.results.runner_class import UNKNOWN
from torchgauge.results.store import Store

ALARMS = frozenset(each.value for each in CHANGED)
"""Verdicts that are false alarms where head was measured against head."""

_LAUNCH_COLUMNS = (
    "run_id",
    "pair_key",
    "case_id",
    "runner_class",
    "control",
    "log_ratio",
    "wall_log_ratio",
    "memory_log_ratio",
)
_VERDICT_COLUMNS = (
    "run_id",
    "pair_key",
    "head_case",
    "metric",
    "runner_class",
    "control",
    "verdict",
    "confirmed",
    "run_created_at",
)


@dataclass(frozen=True)
class AlarmRate:
    """False alarms among ``trials`` A/A comparisons; the interval is exact binomial at 95 %.

    Clopper and Pearson, Biometrika 26, 1934. ``rate`` and its ends are None without a trial. ``decided`` are
    trials with a verdict: a rule that never decides never alarms either.
    """

    alarms: int
    trials: int
    decided: int
    rate: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, alarms: int, trials: int, decided: int) -> AlarmRate:
        """The rate with its interval."""
        if not trials:
            return cls(0, 0, 0, None, None, None)
        from scipy.stats import binomtest

        ends = binomtest(alarms, trials).proportion_ci(0.95, method="exact")
        return cls(alarms, trials, decided, alarms / trials, float(ends.low), float(ends.high))


@dataclass(frozen=True)
class CaseNoise:
    """One line of the ledger: a case on a class of runner.

    ``spreads`` are (metric, standard deviation of a launch's log ratio, degrees of freedom), ``latency``
    first; ``controls`` counts A/A comparisons, ``launches`` their launches, and
    ``contradicted`` the suspicions of the last 30 days that did not repeat. ``quarantine`` is the reason,
    empty where there is none; ``quarantined_on`` is in days since the epoch.
    """

    case_id: str
    runner_class: str
    launches: int
    spreads: tuple[tuple[str, float, float], ...]
    controls: int
    alarms: AlarmRate
    recent: AlarmRate
    contradicted: int
    quarantine: str = ""
    quarantined_on: int | None = None
    clean_nights: int = 0

    @property
    def spread(self) -> float | None:
        """The spread of latency; None where no launch says anything of it."""
        return self.spreads[0][1] if self.spreads else None


@dataclass(frozen=True)
class Ledger:
    """All lines, and the false-alarm rate over all time and over the last 30 days."""

    cases: tuple[CaseNoise, ...]
    alarms: AlarmRate
    recent: AlarmRate
    comparisons: int


def read_ledger(store: Store, now: float, runner_class: str | None = None) -> Ledger:
    """The ledger of ``store`` as of ``now`` (seconds since the epoch), of one class of runner or of all."""
    verdicts = frame_of(read_comparisons(store, "verdicts", columns=_VERDICT_COLUMNS))
    launches = frame_of(read_comparisons(store, "launches", columns=_LAUNCH_COLUMNS))
    verdicts = verdicts[verdicts["pair_key"] != ""]
    for frame in (verdicts, launches):
        frame["runner_class"] = frame["runner_class"].fillna(UNKNOWN)
    if runner_class is not None:
        verdicts = verdicts[verdicts["runner_class"] == runner_class]
        launches = launches[launches["runner_class"] == runner_class]
    since_epoch = verdicts["run_created_at"] - pd.Timestamp(0, unit="s", tz="UTC")
    verdicts = verdicts.assign(day=since_epoch // pd.Timedelta(days=1))
    days = verdicts.drop_duplicates("run_id").set_index("run_id")["day"]
    launches = launches[launches["log_ratio"].notna() & launches["case_id"].notna()]
    launches = launches.assign(day=launches["run_id"].map(days)).dropna(subset=["day"])
    records = _gathered(launches, verdicts)
    today = math.floor(now / DAY_S)
    cases = tuple(_line(key, records[key], today) for key in sorted(records))
    trials = [trial for record in records.values() for trial in record.trials]
    return Ledger(cases, _rate(trials), _rate(_recent(trials, today)), verdicts["run_id"].nunique())


@dataclass(frozen=True)
class _Trial:
    """One A/A comparison."""

    day: int
    alarm: bool
    decided: bool


@dataclass
class _Record:
    """What was gathered of one case: nights by day, (squares, df) by metric, trials and launches of A/A."""

    nights: dict[int, Night] = field(default_factory=dict)
    squares: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: {"latency": []})
    trials: list[_Trial] = field(default_factory=list)
    launches: int = 0

    def add(self, day: int, **more: Any) -> None:
        before = self.nights.get(day, Night(day))
        self.nights[day] = Night(
            day,
            **{name: getattr(before, name) + more.get(name, type(getattr(before, name))()) for name in _SUMS},
        )


_SUMS = ("squares", "df", "ratios", "contradicted", "alarms")
_Key = tuple[str, str]


def _gathered(launches: pd.DataFrame, verdicts: pd.DataFrame) -> dict[_Key, _Record]:
    records: dict[_Key, _Record] = defaultdict(_Record)
    columns = {"latency": "log_ratio", "latency_wall": "wall_log_ratio", "peak_memory": "memory_log_ratio"}
    for metric, column in columns.items():
        _gather_spreads(records, launches[launches[column].notna()], metric, column)
    changed = verdicts["verdict"].isin(ALARMS)
    told = verdicts.assign(
        alarm=changed,
        decided=changed | (verdicts["verdict"] == Verdict.UNCHANGED.value),
        lone=(verdicts["confirmed"] == False).fillna(False),  # noqa: E712  a nullable column
        timed=verdicts["metric"] == "latency",
    )
    told["decided"] &= told["timed"] | told["alarm"]
    by_pair = told.groupby(
        ["runner_class", "head_case", "run_id", "pair_key", "control", "day"], observed=True
    )
    sums = by_pair[["alarm", "decided", "lone"]].any().reset_index()
    names = ("runner_class", "head_case", "day", "control", "alarm", "decided", "lone")
    for where, case, day, control, changes, decided, lone in _rows(sums, names):
        record = records[where, case]
        alarm = bool(changes and control)
        record.add(day, contradicted=int(lone), alarms=int(alarm))
        if control:
            record.trials.append(_Trial(day, alarm, bool(decided)))
    return records


def _gather_spreads(records: dict[_Key, _Record], launches: pd.DataFrame, metric: str, column: str) -> None:
    """Sums of squares of log ratios: about the mean of their pair, or about 0 in A/A, where it is known."""
    keys = ["runner_class", "case_id", "run_id", "pair_key", "control", "day"]
    logs = launches[column].astype("float64")
    values = launches[keys].assign(n=1, total=logs, square=logs**2)
    sums = values.groupby(keys, observed=True).sum().reset_index()
    control = sums["control"].to_numpy(dtype=bool)
    n, total = sums["n"].to_numpy(dtype=float), sums["total"].to_numpy(dtype=float)
    about_mean = sums["square"].to_numpy(dtype=float) - total**2 / n
    squares = np.where(control, sums["square"].to_numpy(dtype=float), np.maximum(about_mean, 0.0))
    sums = sums.assign(squares=squares, df=np.where(control, n, n - 1))
    summed = ("runner_class", "case_id", "day", "control", "n", "squares", "df")
    for where, case, day, aa, count, total_squares, df in _rows(sums, summed):
        record = records[where, case]
        record.squares.setdefault(metric, []).append((total_squares, df))
        if metric == "latency":
            record.add(day, squares=total_squares, df=df)
            record.launches += count if aa else 0
    if metric == "latency":
        single = ("runner_class", "case_id", "day", "log_ratio")
        for where, case, day, log in _rows(launches[launches["control"]], single):
            records[where, case].add(day, ratios=(log,))


def _rows(frame: pd.DataFrame, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The columns ``names`` of ``frame`` row by row, as Python values."""
    return zip(*(frame[name].tolist() for name in names), strict=True)


def _line(key: _Key, record: _Record, today: int) -> CaseNoise:
    nights = [record.nights[day] for day in sorted(record.nights)]
    stands = quarantine_state(nights)
    recent = [night for night in nights if night.day > today - WINDOW_DAYS]
    return CaseNoise(
        case_id=key[1],
        runner_class=key[0],
        launches=record.launches,
        spreads=tuple(_spreads(record)),
        controls=len(record.trials),
        alarms=_rate(record.trials),
        recent=_rate(_recent(record.trials, today)),
        contradicted=sum(night.contradicted for night in recent),
        quarantine=stands.reason,
        quarantined_on=stands.since,
        clean_nights=stands.clean,
    )


def _spreads(record: _Record) -> Iterable[tuple[str, float, float]]:
    for name, pairs in record.squares.items():
        df = sum(each for _, each in pairs)
        if df >= 1:
            yield name, math.sqrt(sum(each for each, _ in pairs) / df), df


def _recent(trials: Iterable[_Trial], today: int) -> list[_Trial]:
    return [trial for trial in trials if trial.day > today - WINDOW_DAYS]


def _rate(trials: Iterable[_Trial]) -> AlarmRate:
    listed = list(trials)
    alarms, decided = (sum(getattr(trial, name) for trial in listed) for name in ("alarm", "decided"))
    return AlarmRate.of(alarms, len(listed), decided)

"""Whether a model will run on a device, from the verdicts on what it needs; and how often that is right."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from torchgauge.records import ATTEMPTED, Status
from torchgauge.records.case import AUTOCAST
from torchgauge.results.blockers.verdicts import Judge, OperatorState, OperatorVerdict
from torchgauge.results.stats import wilson
from torchgauge.suites.census.record import ModelCensus

WIDE = "float32"
"""What autocast computes in where it does not narrow."""
NO_CENSUS = "the operator census does not contain this model"


class Forecast(str, Enum):
    """What is expected of a model."""

    RUNS = "will run"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Prediction:
    """The forecast and why; ``blockers`` and ``inaccurate`` are base names, ``verdicts`` their reasons."""

    forecast: Forecast
    reason: str = ""
    blockers: frozenset[str] = frozenset()
    inaccurate: frozenset[str] = frozenset()
    unjudged: tuple[str, ...] = ()
    verdicts: tuple[OperatorVerdict, ...] = ()


@dataclass(frozen=True)
class Share:
    """``hits`` of ``n``, with Wilson's 95 % interval; no ends where ``n`` is 0."""

    hits: int
    n: int

    @property
    def value(self) -> float | None:
        """The share, None of nothing."""
        return self.hits / self.n if self.n else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """Lower and upper end."""
        return wilson(self.hits, self.n) if self.n else None


@dataclass(frozen=True)
class Accuracy:
    """Forecasts against what happened, over models that were run; ``blocked`` is the positive class.

    ``true_blocked`` of all that were called blocked did not run; ``missed_blocked`` did not run although
    they were to run or nothing was known. ``unknown`` of all forecasts said nothing.
    """

    true_blocked: int = 0
    false_blocked: int = 0
    missed_blocked: int = 0
    true_runs: int = 0
    unknown: int = 0

    @property
    def n(self) -> int:
        """Models that were run."""
        return self.true_blocked + self.false_blocked + self.missed_blocked + self.true_runs

    @property
    def precision(self) -> Share:
        """Of those called blocked, how many did not run."""
        return Share(self.true_blocked, self.true_blocked + self.false_blocked)

    @property
    def recall(self) -> Share:
        """Of those that did not run, how many were called blocked; an unknown counts against it."""
        return Share(self.true_blocked, self.true_blocked + self.missed_blocked)

    @property
    def base_rate(self) -> Share:
        """How many of the models did not run: what a guess would have to beat."""
        return Share(self.true_blocked + self.missed_blocked, self.n)


def did_run(status: Status) -> bool | None:
    """Whether a model with this status ran to its end, whatever its result; None where it says nothing."""
    if status in (Status.PASS, Status.FAIL_ACCURACY):
        return True
    return False if status in ATTEMPTED or status is Status.UNSUPPORTED else None


def accuracy_of(pairs: Iterable[tuple[Forecast, bool]]) -> Accuracy:
    """The tally of forecasts, each with whether the model ran."""
    found = {"tb": 0, "fb": 0, "mb": 0, "tr": 0, "unknown": 0}
    for forecast, ran in pairs:
        found["unknown"] += forecast is Forecast.UNKNOWN
        if forecast is Forecast.BLOCKED:
            found["fb" if ran else "tb"] += 1
        else:
            found["tr" if ran else "mb"] += 1
    return Accuracy(found["tb"], found["fb"], found["mb"], found["tr"], found["unknown"])


def predict(judge: Judge, census: ModelCensus | None, dtype: str) -> Prediction:
    """The forecast for a model in ``dtype`` without any row of its own; ``census`` is what it needs."""
    if census is None:
        return Prediction(Forecast.UNKNOWN, NO_CENSUS)
    pairs = needed(census, dtype)
    if not pairs:
        return Prediction(
            Forecast.UNKNOWN, census.problem or "the operator census lists no operator of this model"
        )
    name = f"{census.suite}/{census.model}"
    asked = {operator for operator, _ in census.operators}
    every = [_in_either(judge, operator, of, dtype, name) for operator, of in pairs]
    verdicts = [each for each in every if each.operator in asked or _counts_as_part(each)]
    found: dict[OperatorState, list[OperatorVerdict]] = {}
    for verdict in verdicts:
        found.setdefault(verdict.state, []).append(verdict)
    blocking = found.get(OperatorState.MISSING, []) + found.get(OperatorState.FAILS, [])
    inaccurate = found.get(OperatorState.INACCURATE, [])
    unjudged = found.get(OperatorState.UNJUDGED, [])
    forecast, reason = Forecast.RUNS, ""
    if blocking:
        forecast = Forecast.BLOCKED
        reason = "; ".join(dict.fromkeys(f"{each.blocker}: {each.because}" for each in blocking))
    elif unjudged:
        forecast = Forecast.UNKNOWN
        names = [each.operator for each in unjudged]
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        reason = f"not judged: {shown} ({unjudged[0].because})"
    return Prediction(
        forecast,
        reason,
        frozenset(each.blocker for each in blocking),
        frozenset(each.blocker for each in inaccurate),
        tuple(each.operator for each in unjudged),
        tuple(blocking + inaccurate),
    )


def needed(census: ModelCensus, dtype: str) -> list[tuple[str, str]]:
    """Pairs of operator and dtype that the model needs in ``dtype``, sorted.

    Where the census was taken in another dtype, that one is replaced: a model dispatches alike in all
    floating-point dtypes but for autocast.
    """
    low = dtype.removeprefix(AUTOCAST)
    pairs = census.operators | census.received
    return sorted({(name, low if of == census.dtype else of) for name, of in pairs})


def explained(prediction: Prediction, missing: str, error: str, status: Status) -> bool:
    """Whether the failure of a model is what its blockers bring about.

    Where it names an operator, it is. Else its error must be that of an operator's own failure, and a crash,
    a timeout or a full memory must be how that operator ended.
    """
    if missing:
        return True
    if status is Status.ERROR or status is Status.UNSUPPORTED:
        return bool(error) and any(
            error in verdict.errors for verdict in prediction.verdicts if verdict.blocks
        )
    return any(status in verdict.statuses for verdict in prediction.verdicts if verdict.blocks)


def _counts_as_part(verdict: OperatorVerdict) -> bool:
    """Whether a verdict on a part of an operator counts: a device that has the whole needs no part of it.

    So a part blocks only where running it failed, never because the dispatcher has no kernel for it.
    """
    return not verdict.by_dispatcher and verdict.state is not OperatorState.UNJUDGED


def _in_either(judge: Judge, operator: str, of: str, dtype: str, model: str) -> OperatorVerdict:
    """Under autocast an operator runs in the narrow dtype or the wide one: the better verdict counts."""
    verdict = judge.of(operator, of, model)
    if dtype.startswith(AUTOCAST) and of == dtype.removeprefix(AUTOCAST) and verdict.blocks:
        wide = judge.of(operator, WIDE, model)
        return verdict if wide.blocks else wide
    return verdict

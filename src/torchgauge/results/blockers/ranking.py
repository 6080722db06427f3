"""From evidence and census to what stands between a device and the models: one ranking per dtype and path."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from torchgauge.counted import counted
from torchgauge.records import Status, digest
from torchgauge.results.blockers.cover import best_order
from torchgauge.results.blockers.evidence import Evidence, ModelRow
from torchgauge.results.blockers.prediction import (
    NO_CENSUS,
    Accuracy,
    Forecast,
    Prediction,
    accuracy_of,
    did_run,
    explained,
    needed,
    predict,
)
from torchgauge.results.blockers.verdicts import Judge, OperatorState, OperatorVerdict, judge_of
from torchgauge.suites.census.data import CensusData
from torchgauge.suites.census.record import ModelCensus
from torchgauge.suites.ops.upstream import BACKWARD

MODEL_DTYPES = frozenset({"float32", "bfloat16", "float16"})
"""What models are run in; a matrix has integers and others besides."""
NAMED = "the error of this model names the operator"
Key = tuple[str, str, str]
"""Suite, model and mode."""


@dataclass(frozen=True)
class ModelLine:
    """One model in one mode: what was expected of it, what happened, and what it lacks.

    ``status`` is empty where the device never ran it. ``lacks`` are operators to implement, or, where
    ``inaccurate`` is true, operators to correct. ``unexplained`` is a failure that they do not account for.
    """

    suite: str
    model: str
    mode: str
    forecast: Forecast
    forecast_reason: str
    status: str = ""
    reason: str = ""
    fingerprint: str = ""
    lacks: tuple[str, ...] = ()
    inaccurate: bool = False
    unexplained: bool = False
    age_s: float = 0.0

    @property
    def title(self) -> str:
        """``suite/model``, which is what is counted as a model."""
        return f"{self.suite}/{self.model}"

    @property
    def name(self) -> str:
        """``suite/model:mode``."""
        return f"{self.title}:{self.mode}"


@dataclass(frozen=True)
class RankedStep:
    """Operators to implement or correct together, given all earlier steps, and what that brings.

    ``unblocks`` are models (``suite/model:mode``) that run from then on, of which ``observed`` were seen to
    fail and the others are predicted to; ``fixes`` are models whose results become right. ``perhaps`` are
    models that need the operators too, but failed in a way that may have another cause.
    """

    operators: tuple[str, ...]
    unblocks: tuple[str, ...]
    observed: tuple[str, ...]
    fixes: tuple[str, ...]
    perhaps: tuple[str, ...]


@dataclass(frozen=True)
class OperatorLine:
    """One operator in the way: why, and the models that it blocks ``alone`` and with others (``in_all``)."""

    operator: str
    state: OperatorState
    because: str
    alone: tuple[str, ...]
    in_all: tuple[str, ...]
    fixes: tuple[str, ...]
    perhaps: tuple[str, ...]
    age_s: float = 0.0


@dataclass(frozen=True)
class Cluster:
    """Failures of one fingerprint that no operator explains; ``also_lacks`` is missing besides."""

    fingerprint: str
    status: str
    reason: str
    models: tuple[str, ...]
    also_lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Blockers:
    """The ranking for one device, dtype and path, with all that it rests on."""

    device: str
    dtype: str
    path: str
    steps: tuple[RankedStep, ...]
    operators: tuple[OperatorLine, ...]
    clusters: tuple[Cluster, ...]
    models: tuple[ModelLine, ...]
    accuracy: Accuracy
    judged_rows: int
    judged_age_s: float
    notes: tuple[str, ...] = ()

    @property
    def never_run(self) -> tuple[ModelLine, ...]:
        """Models of which the store has no word on this device."""
        return tuple(line for line in self.models if not line.status)


@dataclass(frozen=True)
class Question:
    """What is asked: the device's ``evidence`` over the models of ``suites`` (empty: all) on one path."""

    evidence: Evidence
    census: CensusData
    path: str
    suites: Collection[str] = field(default=())


def dtypes_of(evidence: Evidence) -> tuple[str, ...]:
    """Return the dtypes of models, and without models those of the matrix in :data:`MODEL_DTYPES`."""
    of_models = {row.dtype for row in evidence.models}
    return tuple(sorted(of_models or {row.dtype for row in evidence.operators} & MODEL_DTYPES))


def blockers(question: Question, dtype: str) -> Blockers:
    """What stands in the way of models in ``dtype``; equal evidence gives an equal answer."""
    evidence, path = question.evidence, question.path
    rows = {
        (row.suite, row.model, row.mode): row
        for row in evidence.models
        if row.dtype == dtype and row.path == path and _wanted(row.suite, question.suites)
    }
    censuses = _censuses(question, rows, dtype)
    passed = [
        (row, needed(census, dtype))
        for key, row in sorted(rows.items())
        if row.status is Status.PASS and (census := censuses[key]) is not None
    ]
    judge = judge_of(evidence, question.census.opinfo, passed)
    predictions = {key: predict(judge, census, dtype) for key, census in censuses.items()}
    lines = tuple(_line(key, predictions[key], rows.get(key)) for key in sorted(censuses))
    judged = [row for row in evidence.operators if row.dtype == dtype]
    return Blockers(
        evidence.device,
        dtype,
        path,
        _steps(lines),
        _operators(lines, predictions.values(), judge),
        _clusters(lines),
        lines,
        accuracy_of(_tried(lines)),
        len(judged),
        max((row.age_s for row in judged), default=0.0),
        tuple(_notes(question, dtype, lines)),
    )


def _wanted(suite: str, suites: Collection[str]) -> bool:
    return not suites or suite in suites


def _censuses(question: Question, rows: Mapping[Key, ModelRow], dtype: str) -> dict[Key, ModelCensus | None]:
    """The census of every model that there is a row or a census of."""
    keys: set[Key] = {
        (each.suite, each.model, each.mode)
        for each in question.census.models
        if each.path == question.path and _wanted(each.suite, question.suites)
    }
    found: dict[Key, list[ModelCensus]] = {}
    for each in question.census.models:
        if each.path == question.path:
            found.setdefault((each.suite, each.model, each.mode), []).append(each)
    best = {
        key: min(of_key, key=lambda each: (each.dtype != dtype, each.dtype != "float32", each.dtype))
        for key, of_key in found.items()
    }
    return {key: best.get(key) for key in sorted(keys | set(rows))}


def _line(key: Key, prediction: Prediction, row: ModelRow | None) -> ModelLine:
    """The model of ``key``: what its own row says counts before what is predicted."""
    ran = did_run(row.status) if row is not None else None
    blank = ModelLine(*key, prediction.forecast, prediction.reason)
    if row is None or ran is None:
        said = "" if row is None else f"{row.status.value}: {row.reason}"
        return replace(blank, reason=said, lacks=tuple(sorted(prediction.blockers)))
    known = replace(
        blank,
        status=row.status.value,
        reason=row.reason,
        fingerprint=row.fingerprint or digest([row.status.value, row.reason]),
        age_s=row.age_s,
    )
    if row.status is Status.PASS:
        return known
    if row.status is Status.FAIL_ACCURACY:
        suspects = tuple(sorted(prediction.inaccurate))
        return replace(known, lacks=suspects, inaccurate=True, unexplained=not suspects)
    lacks = tuple(sorted(prediction.blockers | ({row.missing} if row.missing else set())))
    known_cause = explained(prediction, row.missing, row.error, row.status)
    return replace(known, lacks=lacks, unexplained=not known_cause)


def _steps(lines: Iterable[ModelLine]) -> tuple[RankedStep, ...]:
    """The best order for models that operators account for, then for those that need more operators still."""
    lacking = {line.name: line for line in lines if line.lacks}
    sure = {name: frozenset(line.lacks) for name, line in lacking.items() if not line.unexplained}
    left = {name: frozenset(line.lacks) for name, line in lacking.items() if line.unexplained}
    done: frozenset[str] = frozenset()
    steps = []
    for step in best_order(sure):
        done |= frozenset(step.operators)
        helped = tuple(sorted(name for name, lacks in left.items() if lacks <= done))
        left = {name: lacks for name, lacks in left.items() if not lacks <= done}
        found = [lacking[name] for name in step.unlocked]
        blocked = [line for line in found if not line.inaccurate]
        steps.append(
            RankedStep(
                step.operators,
                tuple(line.name for line in blocked),
                tuple(line.name for line in blocked if line.status),
                tuple(line.name for line in found if line.inaccurate),
                helped,
            )
        )
    rest = best_order({name: lacks - done for name, lacks in left.items()})
    return (*steps, *(RankedStep(step.operators, (), (), (), step.unlocked) for step in rest))


def _operators(
    lines: Collection[ModelLine], predictions: Iterable[Prediction], judge: Judge
) -> tuple[OperatorLine, ...]:
    """Every operator that a model lacks, the one with most models first.

    A prediction for a model leaves that model's own rows out. What is said of an operator does not, so that
    it is the same whichever model is looked at first.
    """
    verdicts: dict[str, OperatorVerdict] = {}
    for prediction in predictions:
        for verdict in prediction.verdicts:
            kept = verdicts.setdefault(verdict.blocker, verdict)
            if (not kept.blocks, kept.operator) > (not verdict.blocks, verdict.operator):
                verdicts[verdict.blocker] = verdict
    for blocker, verdict in verdicts.items():
        whole = judge.of(verdict.operator, verdict.dtype)
        if whole.state is verdict.state:
            verdicts[blocker] = whole
    found = []
    for operator in sorted({name for line in lines for name in line.lacks}):
        lacking = [line for line in lines if operator in line.lacks]
        blocked = [line for line in lacking if not line.inaccurate and not line.unexplained]
        known = verdicts.get(operator)
        found.append(
            OperatorLine(
                operator,
                known.state if known else OperatorState.MISSING,
                known.because if known else NAMED,
                tuple(line.name for line in blocked if len(line.lacks) == 1),
                tuple(line.name for line in blocked),
                tuple(line.name for line in lacking if line.inaccurate),
                tuple(line.name for line in lacking if line.unexplained and not line.inaccurate),
                known.age_s if known else min(line.age_s for line in lacking),
            )
        )
    return tuple(
        sorted(
            found, key=lambda each: (-len(each.in_all) - len(each.fixes), -len(each.perhaps), each.operator)
        )
    )


def _clusters(lines: Iterable[ModelLine]) -> tuple[Cluster, ...]:
    groups: dict[tuple[str, str], list[ModelLine]] = {}
    for line in lines:
        if line.unexplained:
            groups.setdefault((line.status, line.fingerprint), []).append(line)
    found = [
        Cluster(
            print_,
            status,
            members[0].reason,
            tuple(line.name for line in members),
            tuple(sorted({name for line in members for name in line.lacks})),
        )
        for (status, print_), members in groups.items()
    ]
    return tuple(sorted(found, key=lambda each: (-len(each.models), each.status, each.fingerprint)))


def _tried(lines: Iterable[ModelLine]) -> Iterable[tuple[Forecast, bool]]:
    for line in lines:
        ran = did_run(Status(line.status)) if line.status else None
        if ran is not None:
            yield line.forecast, ran


def _notes(question: Question, dtype: str, lines: Collection[ModelLine]) -> Iterable[str]:
    """What is missing for a better answer, and what to type."""
    evidence = question.evidence
    name = evidence.device
    variants = {row.variant for row in evidence.operators if row.dtype == dtype}
    if not variants:
        yield (
            f"the operator matrix has no row in {dtype}; try: "
            f"torchgauge ops judge --device {name} --tier full --variant forward,backward --dtype {dtype}"
        )
    elif BACKWARD not in variants and any(line.mode == "training" for line in lines):
        yield (
            "the operator matrix has no backward rows, so operators that only training needs are not judged; "
            f"try: torchgauge ops judge --device {name} --tier full --variant backward --dtype {dtype}"
        )
    if evidence.static is None:
        yield f"no static census was recorded; try: torchgauge ops census --static --device {name}"
    without = sum(line.forecast_reason == NO_CENSUS for line in lines)
    if without:
        yield f"not in the census: {counted(without, 'model')} of the store"
    other = [row for row in evidence.models if row.path != question.path and row.dtype == dtype]
    if other:
        yield (
            f"{counted(len(other), 'row')} of paths other than "
            f"{question.path} are ignored; --path selects a path"
        )

"""Stores with models whose speed-ups, memory and endings are known, written by the real writers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # the runner imports test files by path

import stored_runs as stored

from torchgauge.records import (
    METRICS,
    Case,
    Configuration,
    DeviceTarget,
    Environment,
    Measurement,
    Result,
    Status,
    Workload,
)
from torchgauge.results.claims.answering import Listing
from torchgauge.results.claims.claim import Aggregation, Claim, Condition, Expect, Published, Question, Select
from torchgauge.results.stats import summarise
from torchgauge.results.store import Store

PUBLISHED = Published("someone", "https://example.org/claim", "2024-10-17", 0.5, 193)


def case(model: str, configuration: str = "inductor", device: str = "fake", **workload: Any) -> Case:
    """A case of suite ``zoo``, or of the ``suite`` that is named."""
    suite = workload.pop("suite", "zoo")
    return Case(
        Workload(suite, model, **workload), Configuration(configuration, configuration), DeviceTarget(device)
    )


def row(
    of: Case,
    numbers: Mapping[str, float | Sequence[float] | None] = (),  # type: ignore[assignment]
    **changes: Any,
) -> Result:
    """A row with ``numbers`` by metric: ten samples within 0.2 % of one number, or the samples given."""
    measurements = [_measurement(name, value) for name, value in dict(numbers).items()]
    status = changes.get("status", Status.PASS)
    made = stored.result(of, latency=None, **changes)
    if status is not Status.PASS:
        return made
    summaries = tuple(summarise(each, METRICS[each.metric]) for each in measurements)
    return replace(made, measurements=tuple(measurements), summaries=summaries)


def _measurement(name: str, value: float | Sequence[float] | None) -> Measurement:
    unit = METRICS[name].unit
    if value is None:
        return Measurement(name, unit, absent="the clock stood still")
    samples = (
        [value * (1 + 0.002 * (i - 4.5) / 4.5) for i in range(10)]
        if isinstance(value, (int, float))
        else value
    )
    return Measurement(name, unit, tuple(samples), tuple(range(len(samples))), "steady")


STRADDLING = (0.9, 0.95, 0.98, 0.99, 1.01, 1.02, 1.05, 1.1, 1.2, 1.3)
"""Speed-ups whose interval has 1 in it; their median is 1.015."""


def speedups(values: Mapping[str, float | Sequence[float] | None], **workload: Any) -> list[Result]:
    """A row per model with its speed-up."""
    return [row(case(model, **workload), {"speedup": value}) for model, value in values.items()]


def store_of(
    path: Path,
    results: Sequence[Result],
    where: Environment | Sequence[Environment] = (),
    *,
    run_id: str = "run-1",
    at: float = stored.BEGIN,
) -> str:
    """A store at ``path`` with one more run; its name as the command line takes it."""
    store = Store.open(path, create=True)
    timed = [replace(each, started_at=at) for each in results]
    stored.run(store, run_id, timed, where, at=at)
    return str(path)


def claim(
    aggregation: Aggregation = Aggregation.SHARE,
    threshold: float = 0.5,
    condition: str = "speedup > 1",
    measure: str = "speedup",
    **changes: Any,
) -> Claim:
    """A claim on suite ``zoo``; ``select`` and fields of the question are keywords."""
    select = changes.pop("select", Select(suites=("zoo",)))
    asked = None
    if aggregation is Aggregation.SHARE:
        name, operator, value = condition.split()
        asked, measure = Condition(name, operator, float(value)), name
    if aggregation is Aggregation.PASS_RATE:
        measure = ""
    question = Question(
        aggregation,
        threshold,
        changes.pop("expect", Expect.AT_LEAST),
        measure,
        asked,
        **{"minimum": 1, **changes},
    )
    return Claim("a-claim", "a claim", "something is said of models", PUBLISHED, question, select)


def listing(*models: str, suite: str = "zoo"):
    """A lister of ``models``, whatever the store has."""
    return lambda _select, _stored: Listing(tuple((suite, model) for model in models))


def whatever_is_stored(_select: Select, found: Mapping[str, Any]) -> Listing:
    """A lister of all that the store has."""
    return Listing(tuple((suite, model) for suite in sorted(found) for model in sorted(found[suite])))

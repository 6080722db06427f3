"""Two stores that differ in nothing but step times in doubt: whatever is compared is alike in both."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from store_builder import (
    ACCURACY,
    CPU,
    DAY,
    EAGER,
    INDUCTOR,
    NOW,
    NPU,
    RunBuilder,
    environment,
    result,
    timings,
)

from torchgauge.records import METRICS, STEP_TIMES, Case, Measurement, Modifier, Realised, Result, Workload
from torchgauge.results.stats import summarise

NIGHTS = 7
MODELS = ("calm", "still", "quiet", "loud", "blind")
LOUD, BLIND = "loud", "blind"
"""The model whose newest step times are unsteady, and the one that nothing checked."""

WHY = {
    Modifier.UNSTEADY: "other work used 61 % of the cores in 9 of 10 blocks",
    Modifier.UNCHECKED: "the run was told --no-accuracy",
}
_MODIFIERS = {LOUD: Modifier.UNSTEADY, BLIND: Modifier.UNCHECKED}


def run_id(night: int) -> str:
    """The run of a night, of which the last has the rows in doubt."""
    return f"2025122{night}T020000Z-aaaaaaaa"


def doubtful_store(path: Path, factor: float) -> Path:
    """Clean rows of about 0.04 s over a week; in the last night some in doubt, ``factor`` times as slow."""
    rng = random.Random(11)
    for night in range(NIGHTS):
        run = RunBuilder(run_id(night), NOW - (NIGHTS - night) * DAY)
        for device in (CPU, NPU):
            run.environments.append(environment(device.name))
            for place, model in enumerate(MODELS):
                for configuration in (EAGER, INDUCTOR):
                    case = Case(Workload("timm", model, "inference", batch=8), configuration, device)
                    speedup = None if configuration is EAGER else 1.3
                    found = timings(rng, 0.04 + 0.001 * place, speedup, device.name)
                    modifier = _MODIFIERS.get(model) if night == NIGHTS - 1 and device is CPU else None
                    _row(run, case, found, modifier, factor)
        run.write(path)
    return path


def _row(
    run: RunBuilder, case: Case, found: list[Measurement], modifier: Modifier | None, factor: float
) -> Result:
    if modifier is not None:
        found = [_slowed(each, factor) for each in found]
    return result(
        run,
        case,
        measurements=found,
        modifiers=(modifier,) if modifier else (),
        accuracy=None if modifier is Modifier.UNCHECKED else ACCURACY,
        realised=Realised("0123456789abcdef", 11_689_512, 9_620, "float32[8,3,224,224]"),
        facts=((modifier.value, WHY[modifier]),) if modifier else (("kernels", 41),),
    )


def _slowed(each: Measurement, factor: float) -> Measurement:
    if each.metric not in STEP_TIMES or not each.samples:
        return each
    return replace(each, samples=tuple(sample * factor for sample in each.samples))


def newest_rows(factor: float) -> list[Result]:
    """The rows of the last night on the processor, without a store."""
    rng, run = random.Random(11), RunBuilder("run", NOW)
    for model in MODELS:
        case = Case(Workload("timm", model, "inference", batch=8), INDUCTOR, CPU)
        _row(run, case, timings(rng, 0.04, 1.3, "cpu"), _MODIFIERS.get(model), factor)
    return run.results


def summary_of(row: Result, metric: str) -> float:
    """The median of ``metric`` of ``row``."""
    (found,) = [each for each in row.measurements if each.metric == metric]
    median = summarise(found, METRICS[metric]).median
    assert median is not None
    return median

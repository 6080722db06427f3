"""What the store keeps of a launch beside the launch itself, so that a ledger need not read its steps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torchgauge.records.comparison import ComparisonPlan, Launch, MetricVerdict
from torchgauge.results.comparing.estimators import Estimator, LaunchEstimate, choose_estimator, estimate
from torchgauge.results.comparing.launch_samples import LaunchSamples
from torchgauge.results.comparing.sized_change import MEMORY
from torchgauge.results.comparing.status_verdict import unfit

_NAMES = frozenset(each.value for each in Estimator)


def launch_facts(
    plan: ComparisonPlan, launch: Launch, verdicts: Sequence[MetricVerdict], classes: Mapping[str, str]
) -> dict[str, Any]:
    """Case, class of runner, estimator and log ratios of ``launch``; ``classes`` are by name of the device.

    The estimator is the one that the verdict on the pair's latency rests on.
    """
    pair = next((each for each in plan.pairs if each.key == launch.pair_key), None)
    estimator = next(
        (
            Estimator(verdict.estimator)
            for verdict in verdicts
            if (verdict.pair_key, verdict.metric) == (launch.pair_key, "latency")
            and verdict.estimator in _NAMES
        ),
        None,
    )
    found = wall = None
    if launch.blocks and not unfit(launch):
        estimator = estimator or choose_estimator(launch)
        found, wall = estimate(launch, estimator), estimate(launch, Estimator.WALL)
    usable = isinstance(found, LaunchEstimate)
    # Log of head over base of peak memory; None where a side has none, or a zero.
    ratios = LaunchSamples.of(MEMORY, [launch]).ratios
    return {
        "case_id": pair.head.id if pair else None,
        "runner_class": classes.get(pair.head.device.name) if pair else None,
        "estimator": estimator.value if usable and estimator else None,
        "log_ratio": found.log_ratio if isinstance(found, LaunchEstimate) else None,
        "wall_log_ratio": wall.log_ratio if isinstance(wall, LaunchEstimate) else None,
        "memory_log_ratio": math.log(ratios[0]) if ratios else None,
    }

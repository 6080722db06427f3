"""One call that measures two builds against each other, for whoever needs a verdict and not a command."""

from __future__ import annotations

import io

from torchgauge.harness.ab.comparison import Comparison, Request, new_comparison
from torchgauge.harness.ab.judging import judge_for, read_policy
from torchgauge.harness.ab.progress import AbProgress
from torchgauge.harness.ab.run_comparison import ComparisonEnding, run_comparison
from torchgauge.harness.planning.selection import Selection
from torchgauge.records import RunSettings
from torchgauge.records.comparison import MetricVerdict, SideSpec


def compare_builds(
    base: SideSpec,
    head: SideSpec,
    selection: Selection,
    settings: RunSettings,
    store: str,
    *,
    policy: str = "",
    max_launches: int = 12,
    max_time_s: float | None = None,
    seed: int | None = None,
    controls: int = 0,
    progress: AbProgress | None = None,
) -> list[MetricVerdict]:
    """Measure ``selection`` on both sides, keep the comparison in ``store`` and return its verdicts.

    ``policy`` names a policy file; ``controls`` counts the pairs that are also measured head against head;
    ``seed`` makes orders, CPUs and controls repeatable, and is drawn where it is None.
    Raises :class:`UsageError` where base and head are the same, and ``KeyboardInterrupt`` where Ctrl-C ended
    it; what was measured stays in the store.
    """
    return compare(
        Request(
            selection,
            settings,
            base,
            head,
            controls=controls,
            seed=seed,
            max_launches=max_launches,
            policy=policy,
        ),
        store,
        max_time_s=max_time_s,
        progress=progress,
    ).verdicts


def compare(
    request: Request,
    store: str,
    *,
    max_time_s: float | None = None,
    progress: AbProgress | None = None,
) -> ComparisonEnding:
    """The same for any ``request``, with the folder of the comparison in what it returns."""
    policy = read_policy(request.policy)
    made: Comparison = new_comparison(request, store=store, progress=progress or AbProgress(io.StringIO()))
    ending = run_comparison(made, judge_for(made, policy), max_time_s=max_time_s)
    if ending.interrupted:
        raise KeyboardInterrupt
    return ending

"""Whether the step times of a row are steady enough to stand for its case: the modifier ``unsteady`` and why.

Why the parent decides: the rule reads what is stored, so that a reader of the store can repeat it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from torchgauge.autocorrelation import FEWEST, effective_sample_size
from torchgauge.counted import counted
from torchgauge.harness.derived_series import BESIDE
from torchgauge.harness.worker.series import CONTENDED
from torchgauge.harness.worker.stopping import interval_rank
from torchgauge.records import Measurement, Scalar, Summary
from torchgauge.records.attempt import MEASURED_ON
from torchgauge.records.placement import parse_cpus
from torchgauge.results.stats import all_lags

WIDEST = 0.10
"""Half-width of the latency's interval, relative to its median, from which it is in doubt."""
MOST_TAKEN = 0.10
"""Share of the cores' time that hypervisor or quota may take while a case is sampled."""
FEWEST_INDEPENDENT = 6
"""Independent samples that those of a row must be worth, in what they say of the median."""
TELLING = 12
"""Samples from which it can be told how much they resemble each other."""
_WITHOUT_OTHERS = 0.1
"""Cores that others may use for a process with more threads than CPUs to be its own only hindrance."""


def doubts(
    measurements: Sequence[Measurement], summaries: Sequence[Summary], facts: Mapping[str, Scalar]
) -> str:
    """Why the step times are in doubt, for a reader; empty where they are steady, or where there are none."""
    latency = next((each for each in summaries if each.metric == "latency"), None)
    if latency is None or latency.median is None:
        return ""
    reasons = (
        _wide(latency),
        _alike(measurements),
        _contended(measurements, summaries, facts),
        *_taken(facts),
        f"measured on {facts[MEASURED_ON]} instead of its own device" if MEASURED_ON in facts else "",
    )
    return "; ".join(reason for reason in reasons if reason) or _beside(summaries)


def _wide(latency: Summary) -> str:
    if latency.low is None or latency.high is None or not interval_rank(latency.n, latency.confidence):
        return f"{latency.n} {'samples give' if latency.n > 1 else 'sample gives'} no interval"
    if not latency.median:
        return "its clock did not advance"
    width = (latency.high - latency.low) / latency.median
    if width <= 2 * WIDEST:
        return ""
    return f"its interval is {width:.0%} wide, above the limit of {2 * WIDEST:.0%}"


def _alike(measurements: Sequence[Measurement]) -> str:
    """That the samples resemble each other so much that the machine showed too few of its regimes."""
    samples = next(each.samples for each in measurements if each.metric == "latency")
    worth = effective_sample_size(samples, all_lags) if len(samples) >= TELLING else math.inf
    if worth >= FEWEST_INDEPENDENT:
        return ""
    return f"its {len(samples)} samples are autocorrelated: their effective number is {max(1, int(worth))}"


def _contended(
    measurements: Sequence[Measurement], summaries: Sequence[Summary], facts: Mapping[str, Scalar]
) -> str:
    """That others had the cores in most of the blocks that count, or right before them.

    A block that nobody disturbs is slower all the same where it begins with the caches of somebody else.
    An asynchronous device whose own clock is steady did not notice what its host waited for.
    """
    by_metric = {each.metric: each for each in measurements}
    latency, contention = by_metric["latency"], by_metric.get("contention")
    if contention is None or not contention.samples or not latency.blocks:
        return ""
    device = next((each for each in summaries if each.metric == "latency_device"), None)
    if device is not None and device.median is not None and not _wide(device):
        return ""
    taken = {b: s for b, s in zip(contention.blocks, contention.samples, strict=True) if s > CONTENDED}
    disturbed = [block for block in latency.blocks if block in taken or block - 1 in taken]
    if 2 * len(disturbed) <= len(latency.blocks) or _own_threads_only(facts):
        return ""
    blocks = f"{len(taken)} of {counted(len(contention.blocks), 'block')}"
    return f"other processes used one of its cores for {median(taken.values()):.0%} of the time in {blocks}"


def _beside(summaries: Sequence[Summary]) -> str:
    """That its speed-up is of disturbed rounds although its latency is not: eager had others to itself."""
    if any(each.metric == "speedup" and each.provenance == BESIDE for each in summaries):
        return f"fewer than {FEWEST} rounds were undisturbed for both this case and eager"
    return ""


def _own_threads_only(facts: Mapping[str, Scalar]) -> bool:
    """Whether the process has more threads than CPUs, so that it waits for itself, and nobody else works."""
    threads, cpus, others = facts.get("threads"), facts.get("cpus"), facts.get("others_cores")
    if not isinstance(threads, int) or not isinstance(cpus, str) or not isinstance(others, float):
        return False
    return threads > len(parse_cpus(cpus)) and others <= _WITHOUT_OTHERS


def _taken(facts: Mapping[str, Scalar]) -> list[str]:
    found = []
    for name, who in (("stolen_share", "the hypervisor"), ("throttled_share", "the CPU quota")):
        share = facts.get(name)
        if isinstance(share, float) and share > MOST_TAKEN:
            found.append(f"{who} took its cores for {share:.0%} of the time")
    slowed, blocks, why = (facts.get(name) for name in ("throttled_counted", "blocks", "throttled_for"))
    # they count where there are too few others
    if isinstance(slowed, int) and isinstance(blocks, int) and slowed:
        found.append(f"the device had lowered its clock ({why}) in {slowed} of {counted(blocks, 'block')}")
    return found

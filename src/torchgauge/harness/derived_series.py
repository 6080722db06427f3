"""Series that follow, block by block, from the wall times of a row and one other number of it.

The worker makes them with these functions, and so does whoever is handed rows: no ratio is believed.
"""

from __future__ import annotations

from collections.abc import Iterable

from torchgauge.records import METRICS, Measurement, absent

ITEMS = "items_per_step"
"""The fact that says how many items a step has, where that is another number than the workload's batch."""
PER_STEP = {
    "flops": "flops_rate",
    "bytes": "bytes_rate",
    "attainable": "peak_share",
    "block_flops": "block_flops_rate",
}
"""Numbers of one step, and the series that each becomes when it is divided by the wall time of each block."""


def throughput(latency: Measurement, items: int) -> Measurement:
    """Items per second, where a step has ``items``."""
    return _of("throughput", latency, latency.provenance, (items / wall for wall in latency.samples))


def rate(latency: Measurement, whole: Measurement) -> Measurement:
    """``whole``, what one step does or needs at least, by wall time; absent where ``whole`` is."""
    name = PER_STEP[whole.metric]
    if not whole.samples:
        return absent(name, whole.absent)
    amount, how = whole.samples[0], f"{whole.provenance} / {latency.provenance}"
    return _of(name, latency, how, (amount / wall for wall in latency.samples))


def launch_overhead(latency: Measurement, device: Measurement) -> Measurement:
    """What the host's clock sees of each step beyond the device's."""
    pairs = zip(latency.samples, device.samples, strict=True)
    how = f"{latency.provenance} less {device.provenance}"
    return _of("launch_overhead", latency, how, (wall - on_device for wall, on_device in pairs))


def speedup(latency: Measurement, eager: Measurement) -> Measurement:
    """``eager`` divided by ``latency`` in the rounds that both have; absent where they share none."""
    by_round = dict(zip(eager.blocks, eager.samples, strict=False))
    pairs = [
        (number, by_round[number] / wall)
        for number, wall in zip(latency.blocks, latency.samples, strict=False)
        if number in by_round
    ]
    if not pairs:
        return absent("speedup", "eager and this configuration share no round")
    rounds, ratios = zip(*pairs, strict=True)
    return Measurement("speedup", METRICS["speedup"].unit, ratios, rounds, "paired by round", latency.stopped)


def _of(metric: str, latency: Measurement, provenance: str, samples: Iterable[float]) -> Measurement:
    """``samples`` of the blocks of ``latency``."""
    unit = METRICS[metric].unit
    return Measurement(metric, unit, tuple(samples), latency.blocks, provenance, latency.stopped)

"""Series that follow, block by block, from the wall times of a row and one other number of it.

The worker makes them with these functions, and so does whoever is handed rows: no ratio is believed.
"""

from __future__ import annotations

from collections.abc import Iterable

from torchgauge.records import METRICS, Measurement, absent

ITEMS = "items_per_step"
"""The fact that says how many items a step has, where that is another number than the workload's batch."""


def throughput(latency: Measurement, items: int) -> Measurement:
    """Items per second, where a step has ``items``."""
    return _of("throughput", latency, latency.provenance, (items / wall for wall in latency.samples))


def flops_rate(latency: Measurement, flops: Measurement | None) -> Measurement:
    """Achieved floating-point rate; absent where nobody counted operations."""
    if flops is None or not flops.samples:
        return absent("flops_rate", flops.absent if flops else "operations were not counted")
    counted, how = flops.samples[0], f"{flops.provenance} / {latency.provenance}"
    return _of("flops_rate", latency, how, (counted / wall for wall in latency.samples))


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

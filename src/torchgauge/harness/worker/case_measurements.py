"""From a lane's samples to the measurements of its case."""

from __future__ import annotations

from collections.abc import Sequence

from torchgauge.harness.worker.contention import UNKNOWN
from torchgauge.harness.worker.lane import Lane
from torchgauge.records import METRICS, Measurement, absent

_STEADY_CLOCK = "perf_counter"


def timings(lane: Lane, eager: Lane | None, stopped: str) -> list[Measurement]:
    """Latencies of ``lane`` by every clock, and its speed-up over ``eager`` in the same rounds."""
    blocks, stopped = tuple(lane.rounds), lane.stopped or stopped
    found = [
        _of("latency", lane.wall, _STEADY_CLOCK, blocks, stopped),
        _of("latency_cpu", lane.cpu, "process_time, all threads", blocks, stopped),
    ]
    if lane.device:
        overhead = [wall - device for wall, device in zip(lane.wall, lane.device, strict=True)]
        found.append(_of("latency_device", lane.device, "device events", blocks, stopped))
        found.append(_of("launch_overhead", overhead, "perf_counter less device events", blocks, stopped))
    else:
        reason = "the device has no working events"
        found += [absent("latency_device", reason), absent("launch_overhead", reason)]
    if eager is None:
        found.append(absent("speedup", "eager was not measured in this process"))
    elif eager is not lane:
        by_round = dict(zip(eager.rounds, eager.wall, strict=True))
        pairs = [
            (n, by_round[n] / wall) for n, wall in zip(lane.rounds, lane.wall, strict=True) if n in by_round
        ]
        rounds = tuple(n for n, _ in pairs)
        if not pairs:
            return [*found, absent("speedup", "eager and this configuration share no round")]
        found.append(_of("speedup", [ratio for _, ratio in pairs], "paired by round", rounds, stopped))
    return found


def contention(lane: Lane, stopped: str) -> list[Measurement]:
    """What others took of each block, and the wall times of the blocks that were left out for it."""
    if not lane.contention:
        return [absent("contention", UNKNOWN)]
    stopped = lane.stopped or stopped
    rounds, shares = tuple(lane.contention), list(lane.contention.values())
    found = [_of("contention", shares, "time in run queues, schedstat", rounds, stopped)]
    if lane.contended:
        walls = [block.wall for block in lane.contended.values()]
        found.append(_of("latency_contended", walls, _STEADY_CLOCK, tuple(lane.contended), stopped))
    return found


def rates(lane: Lane, known: Sequence[Measurement], items_per_step: int, stopped: str) -> list[Measurement]:
    """Throughput and achieved floating-point rate, from the wall time of every block."""
    blocks, stopped = tuple(lane.rounds), lane.stopped or stopped
    found = [_of("throughput", [items_per_step / wall for wall in lane.wall], _STEADY_CLOCK, blocks, stopped)]
    flops = next((m for m in known if m.metric == "flops"), None)
    if flops is None or not flops.samples:
        found.append(absent("flops_rate", flops.absent if flops else "operations were not counted"))
    else:
        rate = [flops.samples[0] / wall for wall in lane.wall]
        found.append(_of("flops_rate", rate, f"{flops.provenance} / {_STEADY_CLOCK}", blocks, stopped))
    return found


def single(metric: str, value: float, provenance: str = "") -> Measurement:
    """A metric that was read once."""
    return _of(metric, [value], provenance, stopped="read once")


def _of(
    metric: str,
    samples: Sequence[float],
    provenance: str,
    blocks: tuple[int, ...] = (),
    stopped: str = "",
) -> Measurement:
    unit = METRICS[metric].unit
    return Measurement(metric, unit, tuple(float(s) for s in samples), blocks, provenance, stopped)

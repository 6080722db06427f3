"""From a series' samples to the measurements of its case."""

from __future__ import annotations

from collections.abc import Sequence

from torchgauge.harness.derived_series import PER_STEP, launch_overhead, rate, speedup, throughput
from torchgauge.harness.worker.contention import UNKNOWN
from torchgauge.harness.worker.series import Series
from torchgauge.records import METRICS, Measurement, absent

_STEADY_CLOCK = "perf_counter"


def timings(
    series: Series, eager: Series | None, stopped: str, compiled: Series | None = None
) -> list[Measurement]:
    """Latencies of ``series`` by every clock, and its speed-ups over ``eager`` and ``compiled``.

    Both are taken in the same rounds; ``compiled`` is the model that is not quantised, where this one is.
    """
    blocks, stopped = tuple(series.rounds), series.stopped or stopped
    latency = _latency(series, stopped)
    found = [latency, of("latency_cpu", series.cpu, "process_time, all threads", blocks, stopped)]
    if series.device:
        device = of("latency_device", series.device, "device events", blocks, stopped)
        found += [device, launch_overhead(latency, device)]
    else:
        reason = "the device has no working timing events"
        found += [absent("latency_device", reason), absent("launch_overhead", reason)]
    if eager is None:
        found.append(absent("speedup", "eager was not measured in this process"))
    elif eager is not series:
        found.append(speedup(_clocked(series, stopped), _clocked(eager, stopped)))
    if compiled is not None:
        base = _clocked(compiled, stopped)
        found.append(speedup(_clocked(series, stopped), base, "speedup_compiled"))
    return found


def _latency(series: Series, stopped: str) -> Measurement:
    return of("latency", series.wall, _STEADY_CLOCK, tuple(series.rounds), stopped)


def _clocked(series: Series, stopped: str) -> dict[str, Measurement]:
    """What a ratio of wall times is made of, by the name of the metric."""
    return {each.metric: each for each in (_latency(series, stopped), *contention(series, stopped))}


def contention(series: Series, stopped: str) -> list[Measurement]:
    """What others took of each block, and the wall times of the blocks that were left out for it."""
    if not series.contention:
        return [absent("contention", UNKNOWN)]
    stopped = series.stopped or stopped
    rounds, shares = tuple(series.contention), list(series.contention.values())
    found = [of("contention", shares, "time in run queues, schedstat", rounds, stopped)]
    if series.contended:
        walls = [block.wall for block in series.contended.values()]
        found.append(of("latency_contended", walls, _STEADY_CLOCK, tuple(series.contended), stopped))
    return found


def rates(known: Sequence[Measurement], items_per_step: int) -> list[Measurement]:
    """Throughput, achieved rates and share of the peak, from the wall time of every block in ``known``."""
    by_metric = {
        "flops": absent("flops", "operations were not counted"),
        **{each.metric: each for each in known},
    }
    latency = by_metric["latency"]
    return [
        throughput(latency, items_per_step),
        *(rate(latency, by_metric[whole]) for whole in PER_STEP if whole in by_metric),
    ]


def single(metric: str, value: float, provenance: str = "") -> Measurement:
    """A metric that was read once."""
    return of(metric, [value], provenance, stopped="read once")


def of(
    metric: str,
    samples: Sequence[float],
    provenance: str,
    blocks: tuple[int, ...] = (),
    stopped: str = "",
) -> Measurement:
    """``samples`` of a metric of the table, with the numbers of the blocks that they are of."""
    unit = METRICS[metric].unit
    return Measurement(metric, unit, tuple(float(s) for s in samples), blocks, provenance, stopped)

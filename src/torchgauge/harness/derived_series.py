"""Series that follow, block by block, from the wall times of a row and one other number of it.

The worker makes them with these functions, and so does whoever is handed rows: no ratio is believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torchgauge.autocorrelation import FEWEST
from torchgauge.harness.worker.series import CONTENDED
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

ALONE, BESIDE = "paired by round", "paired by round, disturbed rounds included"
"""How a speed-up came about: of rounds that nobody disturbed, or of disturbed ones too."""
_OVER = {"speedup": "eager", "speedup_compiled": "the compiled model"}
ONE_ALONE = "in every round, other programs disturbed only one of the two configurations"
"""Why there is no speed-up on a machine that others use."""


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


def token_rate(metric: str, times: Measurement, tokens: float) -> Measurement:
    """Tokens by second: ``tokens`` in each of ``times``, of the prompt or of one step of all sequences."""
    return _of(metric, times, times.provenance, (tokens / each for each in times.samples))


def launch_overhead(latency: Measurement, device: Measurement) -> Measurement:
    """What the host's clock sees of each step beyond the device's."""
    pairs = zip(latency.samples, device.samples, strict=True)
    how = f"{latency.provenance} less {device.provenance}"
    return _of("launch_overhead", latency, how, (wall - on_device for wall, on_device in pairs))


def speedup(
    ours: Mapping[str, Measurement], base: Mapping[str, Measurement], metric: str = "speedup"
) -> Measurement:
    """The wall times of ``base`` (eager's) divided by ``ours``, by the name of the metric, in shared rounds.

    A round in which others had the cores of one of them alone says who was disturbed, and makes no ratio.
    Where neither was disturbed in fewer rounds than an interval needs, those in which both were count too.
    """
    mine, theirs = _walls(ours), _walls(base)
    shared = sorted(mine.keys() & theirs.keys())
    if not shared:
        return absent(metric, f"{_OVER[metric]} and this configuration have no common round")
    my_lost, base_lost = (contended(each.get("contention")) for each in (ours, base))
    alike = [number for number in shared if (number in my_lost) == (number in base_lost)]
    alone = [number for number in alike if number not in my_lost]
    rounds = alone if len(alone) >= FEWEST else alike
    if not rounds:
        return absent(metric, ONE_ALONE.replace("eager", _OVER[metric]))
    how = ALONE if rounds == alone else BESIDE
    ratios = tuple(theirs[number] / mine[number] for number in rounds)
    unit, stopped = METRICS[metric].unit, ours["latency"].stopped
    return Measurement(metric, unit, ratios, tuple(rounds), how, stopped)


def contended(contention: Measurement | None) -> frozenset[int]:
    """The blocks of which others had the cores; none where nobody counted that."""
    shares = zip(contention.blocks, contention.samples, strict=False) if contention else ()
    return frozenset(block for block, share in shares if share > CONTENDED)


def _walls(found: Mapping[str, Measurement]) -> dict[int, float]:
    """Wall times by the number of their block: those that count, and those that were left out."""
    clocked = [found[name] for name in ("latency", "latency_contended") if name in found]
    return {n: wall for each in clocked for n, wall in zip(each.blocks, each.samples, strict=False)}


def _of(metric: str, latency: Measurement, provenance: str, samples: Iterable[float]) -> Measurement:
    """``samples`` of the blocks of ``latency``, or of other times."""
    unit = METRICS[metric].unit
    return Measurement(metric, unit, tuple(samples), latency.blocks, provenance, latency.stopped)

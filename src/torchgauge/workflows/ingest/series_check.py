"""Series that follow from the wall times of a row, made again by the functions that a worker makes them with.

Throughput, floating-point rate and launch overhead follow from the row alone; a speed-up from it and another
row of its workload, eager's or that of the compiled model, which a run writes together with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import isclose
from statistics import median
from typing import Any

from torchgauge import registry
from torchgauge.harness.backends.backend import EAGER, GROUP, beside
from torchgauge.harness.derived_series import (
    ITEMS,
    PER_STEP,
    contended,
    launch_overhead,
    rate,
    speedup,
    throughput,
    token_rate,
)
from torchgauge.records import Configuration
from torchgauge.workflows.ingest.refusal import Reason, RefusedSetError

OF_ITS_BLOCKS = ("latency_cpu", "latency_device")
"""Other clocks' times of the very blocks that the latency has."""
OF_ITS_TOKENS = ("first_token_time", "output_token_time", "decode_bandwidth")
"""Parts of a generation, in the blocks of its latency."""
GAPS = ("inter_token_p50", "inter_token_p90", "inter_token_p99")
"""Gaps between tokens, the smaller rank first."""
LEAST_OF_STEP, USUAL_OF_STEP = 0.1, 0.9
"""The part of a generation that its tokens take at least: of any, and of the middle one.

The rest is to empty the cache. Of 67 rows, some of busy machines, the middle generation was above 0.99, the
worst one 0.51.
"""
_ROUNDING = 1 + 1e-9
"""Sums and products of the same numbers in another order."""
RATIOS = {"speedup": "eager's", "speedup_compiled": "that of what it is planned beside"}
"""Ratios of two rows of one process, and over whose latency they are."""


def check_series(row: Any) -> None:
    """Raise :class:`RefusedSetError` where a series of ``row`` does not follow from its wall times."""
    found = {each.metric: each for each in row.measurements if each.samples}
    latency, case_id = found.get("latency"), row.case_id
    if latency is None:
        if orphan := found.keys() & {*OF_ITS_BLOCKS, *OF_ITS_TOKENS, *FOLLOWS, *RATIOS, "latency_contended"}:
            raise RefusedSetError(Reason.UNFOUNDED, f"{case_id}: {min(orphan)} without a latency")
        return
    for name in OF_ITS_BLOCKS:
        if name in found and found[name].blocks != latency.blocks:
            raise RefusedSetError(Reason.ROW, f"{case_id}: {name} and latency are of other blocks")
    _check_contended(found, case_id)
    _check_tokens(latency, found, row)
    for name, of in FOLLOWS.items():
        said = found.get(name)
        if said is None:
            continue
        try:
            ours = of(latency, found, row)
        except (ArithmeticError, KeyError, ValueError) as error:
            raise _not_of_its_latency(name, case_id) from error
        if ours is not None and not _same(ours, said, 1e-9 if name in OF_TOKEN_TIMES else 0.0):
            raise _not_of_its_latency(name, case_id)


class Speedups:
    """The speed-ups of the workload whose rows a journal tells of now, with what they may be over.

    A process that times a configuration beside others writes the rows of all together.
    """

    def __init__(self) -> None:
        self._place: tuple[Any, Any] | None = None
        self._rows: list[tuple[str, Configuration, Mapping[str, Any]]] = []

    def add(self, row: Any) -> None:
        """The next row of the journal; raises :class:`RefusedSetError` as :meth:`check` does."""
        place = (row.case.workload, row.case.device)
        if place != self._place:
            self.check()
            self._place = place
        found = {each.metric: each for each in row.measurements if each.samples}
        if "latency" in found:
            self._rows.append((row.case_id, row.case.configuration, found))

    def check(self) -> None:
        """Raise where a speed-up so far is not that of its row over another row that it may be over."""
        for case_id, own, found in self._rows:
            for metric, whose in RATIOS.items():
                others = (
                    base
                    for name, other, base in self._rows
                    if name != case_id and _may_be_over(metric, own, other)
                )
                if metric in found and not any(_is_over(base, found, metric) for base in others):
                    said = f"its speed-up ({metric}) is not that of its latency over {whose}"
                    raise RefusedSetError(Reason.RECOMPUTED, f"{case_id}: {said}")
        self._rows = []


def _may_be_over(metric: str, own: Configuration, other: Configuration) -> bool:
    """Whether ``metric`` of ``own`` is over ``other``; of a backend unknown here, over any that compiles."""
    if metric == "speedup":
        return other.backend == EAGER
    if own.backend in registry.names(GROUP):
        return other.name in beside(own)[:1]
    return bool(other.backend != EAGER)


def _is_over(base: Mapping[str, Any], found: Mapping[str, Any], metric: str) -> bool:
    """Whether ``metric`` of a row with the series ``found`` is that over a row with those of ``base``."""
    try:
        ours, said = speedup(found, base, metric), found[metric]
    except (ArithmeticError, ValueError):
        return False
    return (ours.samples, ours.blocks) == (said.samples, said.blocks)


def _not_of_its_latency(name: str, case_id: str) -> RefusedSetError:
    return RefusedSetError(Reason.RECOMPUTED, f"{case_id}: its {name} is not that of its latency")


def _check_contended(found: Mapping[str, Any], case_id: str) -> None:
    """Blocks that were left out were found contended, and are left out."""
    left_out, seen = found.get("latency_contended"), found.get("contention")
    if left_out is None:
        return
    if not left_out.blocks or not set(left_out.blocks) <= contended(seen) - set(found["latency"].blocks):
        raise RefusedSetError(Reason.ROW, f"{case_id}: blocks that it leaves out count, or are its own")


def _check_tokens(latency: Any, found: Mapping[str, Any], row: Any) -> None:
    """The first token and the further ones are parts of the generation that the latency is of."""
    sizes, gaps = _generated(row), [found[name].samples[0] for name in GAPS if name in found]
    if gaps != sorted(gaps):
        raise RefusedSetError(Reason.ROW, f"{row.case_id}: gaps of a higher rank are shorter")
    if sizes is None or not found.keys() & {*OF_ITS_TOKENS}:
        return
    first, further = (found.get(name) for name in OF_ITS_TOKENS[:2])
    if first is None or further is None or not first.blocks == further.blocks == latency.blocks:
        raise RefusedSetError(Reason.ROW, f"{row.case_id}: its token times and latency are of other blocks")
    steps, samples = sizes["output"] - 1, (first.samples, further.samples, latency.samples)
    if any(min(each) <= 0 for each in zip(*samples, strict=True)):
        raise RefusedSetError(Reason.NUMBER, f"{row.case_id}: tokens that take no time")
    parts = [(one + steps * each) / wall for one, each, wall in zip(*samples, strict=True)]
    if min(parts) < LEAST_OF_STEP or median(parts) < USUAL_OF_STEP or max(parts) > _ROUNDING:
        raise _not_of_its_latency("time of tokens", row.case_id)
    said = found.get("decode_bandwidth")
    if said is not None:
        read = [one * each for one, each in zip(said.samples, further.samples, strict=False)]
        if said.blocks != further.blocks or max(read) > min(read) * _ROUNDING:
            raise _not_of_its_latency("decode_bandwidth", row.case_id)


def _generated(row: Any) -> dict[str, Any] | None:
    """The sizes of a workload of the text that it generates; None for one that has others."""
    sizes = dict(row.case.workload.shape)
    return sizes if {"prompt", "output"} <= sizes.keys() else None


def _prefill_rate(_: Any, found: Mapping[str, Any], row: Any) -> Any:
    sizes = _generated(row)
    if sizes is None:
        return None
    return token_rate("prefill_rate", found["first_token_time"], row.case.workload.batch * sizes["prompt"])


def _decode_rate(_: Any, found: Mapping[str, Any], row: Any) -> Any:
    """Tokens after the first one of each sequence; all of them are the items of a step."""
    sizes, batch = _generated(row), row.case.workload.batch
    if sizes is None:
        return None
    further = dict(row.facts).get(ITEMS, batch * sizes["output"]) - batch
    return token_rate("decode_rate", found["output_token_time"], further / (sizes["output"] - 1))


def _same(ours: Any, said: Any, tolerance: float) -> bool:
    """Whether both are the same samples; within a relative ``tolerance``, of which 0 is none."""
    if ours.blocks != said.blocks or len(ours.samples) != len(said.samples):
        return False
    return all(map(partial(isclose, rel_tol=tolerance), ours.samples, said.samples))


def _throughput(latency: Any, _: Mapping[str, Any], row: Any) -> Any:
    items = dict(row.facts).get(ITEMS, row.case.workload.batch)
    sizes = _generated(row)
    most = row.case.workload.batch * sizes["output"] if sizes else items
    if type(items) is not int or not 1 <= items <= most:
        raise ValueError(f"items: {items!r}")
    return throughput(latency, items)


def _rate_of(whole: str) -> Callable[[Any, Mapping[str, Any], Any], Any]:
    return lambda latency, found, _: rate(latency, found[whole])


OF_TOKEN_TIMES = ("prefill_rate", "decode_rate")
"""Rates that an earlier version made of the same times in another order."""
FOLLOWS: Mapping[str, Callable[[Any, Mapping[str, Any], Any], Any]] = {
    "throughput": _throughput,
    **{name: _rate_of(whole) for whole, name in PER_STEP.items()},
    "prefill_rate": _prefill_rate,
    "decode_rate": _decode_rate,
    "launch_overhead": lambda latency, found, _: launch_overhead(latency, found["latency_device"]),
}
"""What makes each series of a row that follows from its latency and another number of it."""

"""From the times of generations to the numbers that people ask for.

With B sequences, a prompt of P tokens and N generated ones (the sources differ; these are the definitions of
vLLM's and SGLang's serving benchmarks):

* *time to first token*: from the call to the first token on the host, prefill and one choice;
* *time per output token*: (last - first) / (N - 1), with the device waited for at both ends only;
* *inter-token time*: the gap between two tokens on the host, in generations that wait for each token;
* *prefill rate*: B P / time to first token; *decode rate*: tokens after the first of each sequence by second;
* *decode bandwidth*: bytes of weights that a step reads, embeddings left out, by time (as in gpt-fast).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from torchgauge.counted import counted
from torchgauge.harness.derived_series import token_rate
from torchgauge.harness.worker.case_measurements import of, single
from torchgauge.harness.worker.series import Series
from torchgauge.records import Measurement, absent

GAPS = 200
"""Gaps between tokens that are taken, if there is time: two of them lie above the 99th percentile."""
LEAST_GAPS = 100
STREAM_BUDGET_S = 3.0
"""A generation that is longer is streamed once."""
PERCENTILES = {"inter_token_p50": 50, "inter_token_p90": 90, "inter_token_p99": 99}


class Times(NamedTuple):
    """Seconds from the call to the first token, and from there to the last."""

    first: float
    rest: float


def timed(
    series: Series,
    blocks: Mapping[int, Sequence[Times]],
    ends: Sequence[int],
    prompt: int,
    weight_bytes: int,
) -> list[Measurement]:
    """What the timed blocks of ``series`` say of its tokens; ``blocks`` are their generations, by round."""
    kept = [blocks[number] for number in series.rounds]
    steps, tokens = max(ends) - 1, sum(ends) - len(ends)
    first = [sum(each.first for each in block) / len(block) for block in kept]
    rest = [sum(each.rest for each in block) / len(block) for block in kept]
    order, clock, stopped = tuple(series.rounds), "perf_counter", series.stopped
    to_first = of("first_token_time", first, clock, order, stopped)
    to_next = of("output_token_time", [each / steps for each in rest], clock, order, stopped)
    return [
        to_first,
        to_next,
        token_rate("prefill_rate", to_first, len(ends) * prompt),
        token_rate("decode_rate", to_next, tokens / steps),
        of("decode_bandwidth", [weight_bytes * steps / each for each in rest], clock, order, stopped),
    ]


def streamed(generation: Any) -> list[Measurement]:
    """Percentiles of the gaps between tokens of ``generation``, which is streamed until there are enough."""
    gaps: list[float] = []
    until = time.perf_counter() + STREAM_BUDGET_S
    while len(gaps) < GAPS and (not gaps or time.perf_counter() < until):
        generation.arrivals.clear()
        generation.stream()
        gaps += [after - before for before, after in pairwise(generation.arrivals)]
        if not gaps:
            return [absent(name, "a generation of two tokens has no gap") for name in PERCENTILES]
    return [_percentile(name, rank, sorted(gaps)) for name, rank in PERCENTILES.items()]


def _percentile(name: str, rank: int, gaps: Sequence[float]) -> Measurement:
    """By nearest rank: no value that was not measured."""
    if rank == 99 and len(gaps) < LEAST_GAPS:
        return absent(name, f"{counted(len(gaps), 'gap was', 'gaps were')} measured, {LEAST_GAPS} are needed")
    how = f"{counted(len(gaps), 'gap')} between tokens that reach the host one by one"
    return single(name, gaps[-(-rank * len(gaps) // 100) - 1], how)

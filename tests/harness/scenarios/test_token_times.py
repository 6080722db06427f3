"""From the moments of tokens to numbers: which generation is of which block, what a percentile is."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace

import pytest

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch"),
]


def test_each_block_has_the_mean_of_its_own_generations() -> None:
    """Generations before the timed ones, after a pause, and of contended blocks are in no sample."""
    import torch

    from torchgauge.harness.scenarios.generate_steps import Generation
    from torchgauge.harness.scenarios.scenario import Subject
    from torchgauge.harness.scenarios.token_times import Times, timed
    from torchgauge.harness.worker.series import Block, Series

    inputs, decoder = {"input_ids": torch.zeros(2, 8, dtype=torch.int64)}, SimpleNamespace(ends=(5, 3))
    generation = Generation(Subject(None, None, (), inputs, None, None, 0), decoder)  # type: ignore[arg-type]
    series = Series("one", generation, inner=2)

    def block(number: int, *times: Times, contention: float = 0.0) -> None:
        generation.times += times
        series.add(Block(1.0, 1.0, None), number, contention)

    generation.times += [Times(100.0, 100.0)] * 3  # warms up
    block(0, Times(1.0, 6.0), Times(3.0, 10.0))
    block(1, Times(50.0, 50.0), Times(50.0, 50.0), contention=0.5)
    generation.times += [Times(100.0, 100.0)] * 2  # settles after a pause
    block(2, Times(2.0, 4.0), Times(2.0, 4.0))
    generation.times.append(Times(100.0, 100.0))  # is profiled
    found = timed(series, generation.blocks, ends=(5, 3), prompt=8, weight_bytes=1000)
    by_name = {each.metric: each.samples for each in found}
    assert by_name["first_token_time"] == (2.0, 2.0)
    assert by_name["output_token_time"] == (2.0, 1.0)  # four steps after the first
    assert by_name["prefill_rate"] == (8.0, 8.0)  # two prompts of eight tokens
    assert by_name["decode_rate"] == (0.75, 1.5)  # six tokens after the first of each
    assert by_name["decode_bandwidth"] == (500.0, 1000.0)
    assert all(each.blocks == (0, 2) for each in found)


class Streamed:
    """A generation whose tokens arrive after given gaps."""

    def __init__(self, gaps: list[float]) -> None:
        self.gaps, self.arrivals, self.count = gaps, [], 0

    def stream(self) -> None:
        """The tokens of one."""
        self.count += 1
        self.arrivals.append(0.0)
        for gap in self.gaps:
            self.arrivals.append(self.arrivals[-1] + gap)


def test_percentiles_are_gaps_that_were_measured() -> None:
    """By nearest rank over 250 gaps of two generations and more."""
    from torchgauge.harness.scenarios.token_times import streamed

    one = Streamed([float(i) for i in range(1, 126)])
    p50, p90, p99 = (each.samples for each in streamed(one))
    assert one.count == 2
    assert (p50, p90, p99) == ((63.0,), (113.0,), (124.0,))


def test_a_tail_of_few_gaps_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer than a hundred gaps have no 99th percentile, a generation of two tokens has no gap."""
    from torchgauge.harness.scenarios import token_times

    monkeypatch.setattr(token_times, "STREAM_BUDGET_S", 0.0)
    p50, _, p99 = token_times.streamed(Streamed([1.0] * 15))
    assert p50.samples == (1.0,)
    assert (p99.samples, p99.absent) == ((), "15 gaps were measured, 100 are needed")
    assert not any(each.samples for each in token_times.streamed(Streamed([])))

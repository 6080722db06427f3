"""What the loop of scenario ``generate`` costs for each token beyond the forward pass.

The model is none: it returns the same logits at once, so a generation takes what the loop takes. What bare
calls with the same arguments take in a loop of their own is taken off. Both are timed in turns; the smallest
of each counts, since a busy machine only adds, and the median is told beside it. Part of it is the greedy
choice, which is mathematics: its share is told too.

    python benchmarks/llm_overhead.py
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from torchgauge.harness.scenarios.generate_steps import Generation, enter, step
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.suites.suite import BuiltWorkload

PROMPT = 16


class NullDecoder:
    """A model of no cost: the same logits for every token."""

    cache_bytes = weight_bytes = 0

    def __init__(self, batch: int, tokens: int, words: int, unequal: bool) -> None:
        parts = range(1, batch + 1)
        self.ends = tuple(max(2, tokens * i // batch) if unequal else tokens for i in parts)
        self.logits = torch.randn(batch, words, generator=torch.Generator().manual_seed(0))

    def reset(self) -> None:
        """Nothing is kept."""

    def prefill(self, _ids: Any) -> Any:
        """The logits."""
        return self.logits

    def decode(self, call: Callable[..., Any], token: Any, place: Any) -> Any:
        """The logits, by way of the call."""
        return call(token, place)


class Host:
    """The part of a session that a subject needs."""

    def seed(self, seed: int) -> None:
        """Nothing draws."""


def loop_of(decoder: NullDecoder) -> Generation:
    """The scenario's own step over ``decoder``."""
    built = BuiltWorkload(module=None, abilities={"generate": lambda _: decoder})
    prompt = torch.zeros(len(decoder.ends), PROMPT, dtype=torch.int64)
    call = lambda _token, _place: decoder.logits  # noqa: E731  a forward pass that costs a call
    return step(Subject(None, call, (), {"input_ids": prompt}, None, Host(), 0, built=built))


def measured(decoder: NullDecoder, repeats: int) -> tuple[list[float], list[float]]:
    """Seconds by token of the loop, and of the bare calls, in turns."""
    generation, tokens = loop_of(decoder), max(decoder.ends)
    token, place = generation.ids[:, :1], generation.place
    ours, bare = [], []
    for _ in range(repeats):
        generation()
        ours.append(generation.times[-1].rest / (tokens - 1))
        began = time.perf_counter()
        for _ in range(tokens - 1):
            decoder.decode(generation.subject.call, token, place)
        bare.append((time.perf_counter() - began) / (tokens - 1))
    return ours, bare


def main() -> None:
    """Print a row for each shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=200)
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    enter()
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    print(f"torch {torch.__version__}, {platform.machine()}, {os.cpu_count()} cores, load {load}")
    print(
        "batch  vocabulary  ends       argmax us   loop us: least, median   beyond forward and argmax: least"
    )
    for batch, words, unequal in (
        (1, 2, False),
        (8, 2, False),
        (8, 2, True),
        (1, 32_000, False),
    ):  # the last: what a choice among many costs
        decoder = NullDecoder(batch, wanted.tokens, words, unequal)
        ours, bare = measured(decoder, wanted.repeats)
        beyond = [(own - call) * 1e6 for own, call in zip(ours, bare, strict=True)]
        choice = min(_argmax(decoder.logits) for _ in range(20)) * 1e6
        least = (min(ours) - min(bare)) * 1e6
        shape = "unequal" if unequal else "equal"
        print(
            f"{batch:5}  {words:10,}  {shape:8} {choice:10.1f} {least:12.1f}, {statistics.median(beyond):.1f}"
            f" {least - choice:24.1f}"
        )


def _argmax(logits: Any) -> float:
    """Seconds of one greedy choice, which is the mathematics and not the loop."""
    began = time.perf_counter()
    for _ in range(50):
        logits.argmax(-1, keepdim=True)
    return (time.perf_counter() - began) / 50


if __name__ == "__main__":
    main()

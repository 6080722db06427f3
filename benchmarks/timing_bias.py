"""Whether the harness's timed block is biased against a bare synchronised ``perf_counter`` loop.

Both time the same steps of the same small torch model in one process, in pairs of blocks in random order,
until the 95 % interval of the ratio (order statistics of paired log ratios) is at most 0.5 % to either side.
The interval must contain 1. Prints one JSON object.
"""

from __future__ import annotations

import json
import math
import os
import platform
import random
import time
from itertools import repeat
from statistics import median

import torch

from torchgauge.devices.cpu import DEVICE
from torchgauge.harness.worker.stopping import interval_rank
from torchgauge.harness.worker.timing import quiet_collector, steps_per_block, time_block
from torchgauge.registry import resolve

TARGET = 0.005
BLOCK_S = 0.004
MAX_PAIRS = 40_000
TIME_LIMIT_S = 240.0


def bare(step, inner, session):
    """The peer: a synchronised loop around the clock; seconds per step.

    It counts with ``repeat``, as the harness does: ``range`` makes an integer per step, which on the machine
    of docs/performance.md costs 0.2 % of these steps and would be charged to neither.
    """
    session.synchronize()
    start = time.perf_counter()
    for _ in repeat(None, inner):
        step()
    session.synchronize()
    return (time.perf_counter() - start) / inner


def interval(logs):
    """Estimate, low and high of the ratio from paired log ratios."""
    ordered, rank = sorted(logs), interval_rank(len(logs), 0.95)
    if rank == 0:
        return math.exp(median(ordered)), 0.0, math.inf
    return math.exp(median(ordered)), math.exp(ordered[rank - 1]), math.exp(ordered[-rank])


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.set_grad_enabled(False)
    session = resolve(DEVICE.session)(DEVICE.name, 0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64)).eval()
    data = torch.randn(16, 64)
    step = lambda: model(data)  # noqa: E731  the harness's own steps are lambdas too
    for _ in range(2000):
        step()
    inner = steps_per_block(bare(step, 2000, session), BLOCK_S)
    order, logs, began = random.Random(0), [], time.perf_counter()
    estimate, low, high = 1.0, 0.0, math.inf
    with quiet_collector():
        while len(logs) < MAX_PAIRS and time.perf_counter() - began < TIME_LIMIT_S:
            if order.random() < 0.5:
                ours, theirs = time_block(step, inner, session).wall, bare(step, inner, session)
            else:
                theirs, ours = bare(step, inner, session), time_block(step, inner, session).wall
            logs.append(math.log(ours / theirs))
            if len(logs) % 100 == 0:
                estimate, low, high = interval(logs)
                if estimate - low <= TARGET and high - estimate <= TARGET:
                    break
    print(
        json.dumps(
            {
                "benchmark": "timing_bias",
                "machine": f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}",
                "load_1min": os.getloadavg()[0],
                "pairs": len(logs),
                "steps_per_block": inner,
                "ratio": round(estimate, 5),
                "low": round(low, 5),
                "high": round(high, 5),
                "half_width_reached": high - estimate <= TARGET and estimate - low <= TARGET,
                "contains_1": low <= 1.0 <= high,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()

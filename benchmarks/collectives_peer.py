"""What the harness adds to a collective: its blocks against a bare loop, in the same processes and in turns.

Two processes join a group as the workers of a case do. For each size, rounds of one block of ours (the step
of scenario ``collective``, timed as every step) and one of a bare loop (``torch.distributed.all_reduce`` and
two readings of the clock) run in random order, of as many calls each. Both times are those of the slower
process. Prints one JSON object: by size the median ratio, ours by bare, with the 95 % interval of that
median, and the times of a call. Goal: within 5 %.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from child_run import run_child

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

SIZES = (4, 64, 1024, 16384, 262144, 4194304, 67108864)
SEED = 20261123


def rank_main(asked: argparse.Namespace) -> None:
    """One process; the first one prints what was found."""
    rank, count, rounds, block_s = asked.rank, asked.processes, asked.rounds, asked.block
    import torch
    from torch import distributed

    from torchgauge.devices.cpu import CpuSession
    from torchgauge.harness.events import EventWriter
    from torchgauge.harness.job import Job
    from torchgauge.harness.scenarios import collective_steps
    from torchgauge.harness.worker.ranks import RANKS
    from torchgauge.harness.worker.subjects import make_subject
    from torchgauge.harness.worker.timing import quiet_collector, steps_per_block, time_block
    from torchgauge.records import DeviceTarget, RunSettings, Workload
    from torchgauge.suites.distributed.models import build

    torch.set_num_threads(1)
    session = CpuSession()
    place = Path(asked.folder)
    events = EventWriter(str(place / f"events-{rank}"), str(place / f"cursor-{rank}"))
    target = DeviceTarget("cpu")
    job = Job(
        "measure",
        target,
        "",
        RunSettings(),
        "",
        "",
        rank=rank,
        processes=count,
        rendezvous=str(place / "meet"),
    )
    RANKS.join(job, session, events)
    collective_steps.enter()
    found = {}
    for size in map(int, asked.sizes.split(",")):
        workload = Workload(
            "distributed", "collectives-all_reduce", mode="collective", shape=(("bytes", size),)
        )
        step = collective_steps.step(
            make_subject(build(workload, {}), workload, session, session.torch_device)
        )
        message = torch.ones(size // 4)

        def bare(calls: int, message: torch.Tensor = message) -> float:
            start = time.perf_counter()
            for _ in range(calls):
                distributed.all_reduce(message)
            seconds = (time.perf_counter() - start) / calls
            (slowest,) = RANKS.slowest(seconds)
            assert slowest is not None
            return slowest

        calls = steps_per_block(time_block(step, 3, session).wall, block_s)
        dice = random.Random(SEED)  # the same order in each process
        pairs = []
        with quiet_collector():
            for number in range(rounds + 2):
                ours_first = dice.random() < 0.5
                ours = time_block(step, calls, session).wall if ours_first else 0.0
                theirs = bare(calls)
                ours = ours or time_block(step, calls, session).wall
                if number >= 2:  # the first two warm up
                    pairs.append((ours, theirs))
        ratios = sorted(ours / theirs for ours, theirs in pairs)
        half = int(0.98 * len(ratios) ** 0.5)
        low, high = max(0, len(ratios) // 2 - half - 1), min(len(ratios) - 1, len(ratios) // 2 + half)
        found[size] = {
            "ratio": round(median(ratios), 4),
            "interval": [round(ratios[low], 4), round(ratios[high], 4)],
            "ours_us": round(1e6 * median(ours for ours, _ in pairs), 2),
            "bare_us": round(1e6 * median(theirs for _, theirs in pairs), 2),
            "calls_per_block": calls,
            "rounds": rounds,
        }
        if rank == 0:
            print(size, found[size], file=sys.stderr, flush=True)
    if rank == 0:
        print(json.dumps(found))


def main() -> int:
    """Start the processes; ends with 1 where one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--block", type=float, default=0.05, help="seconds of a block")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--rank", type=int, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rank is not None:
        rank_main(asked)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        own = [sys.executable, __file__, *sys.argv[1:], "--folder", folder]
        sizes = asked.sizes.split(",")

        def figures(text: str) -> str:
            if text and list(json.loads(text)) != sizes:
                raise ValueError(f"the figures are not of {sizes}")
            return text

        with ThreadPoolExecutor(asked.processes) as pool:
            commands = [[*own, "--rank", str(rank)] for rank in range(asked.processes)]
            ended = list(pool.map(lambda each: run_child(each, figures, log=sys.stderr.buffer), commands))
        print(ended[0].results)
        return 0 if ended[0].results else 1


if __name__ == "__main__":
    sys.exit(main())

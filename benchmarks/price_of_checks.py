"""What a change of torchgauge costs a campaign, and whether its step times move: two versions in turns.

Pairs run the same command with OLD and NEW, every second one with NEW first. Every run has an empty store,
an empty compile cache and an empty home. The script prints for each pair the ratio of wall time and of CPU
time (NEW / OLD), and for each case the ratio of median latencies over all pairs.

    python benchmarks/price_of_checks.py OLD/bin/python NEW/bin/python --pairs 2 timm huggingface --tier smoke
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from child_run import run_child


@dataclass(frozen=True)
class CampaignCost:
    """One campaign: its seconds, and the median latency in seconds of each case that passed."""

    wall_s: float
    cpu_s: float
    statuses: dict[str, str]
    latencies: dict[str, float]


def campaign(python: str, arguments: Sequence[str]) -> CampaignCost:
    """Run one campaign in a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        env = {**os.environ, "HOME": folder, "HF_HUB_OFFLINE": "1"}
        command = [python, "-m", "torchgauge", "run", *arguments, "--device", "cpu", "--store", store]
        run = run_child(command, str, good=(0, 1), env=env)
        query = [python, "-m", "torchgauge", "results", "query", "--store", store, "--json"]
        columns = ["--columns", "case_id,status", "status=*"]
        statuses = run_child([*query, *columns], json.loads, env=env).results
        columns = ["--table", "summaries", "--columns", "case_id,median", "metric=latency"]
        medians = run_child([*query, *columns], json.loads, env=env).results
    return CampaignCost(
        run.seconds,
        run.cpu_s,
        {row["case_id"]: row["status"] for row in statuses},
        {row["case_id"]: row["median"] for row in medians},
    )


def main() -> None:
    """Print each pair as it ends, then the ratios of step times and changed statuses."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--pairs", type=int, default=2)
    options, arguments = parser.parse_known_args()
    costs: dict[str, list[CampaignCost]] = defaultdict(list)
    for pair in range(options.pairs):
        for python in (options.old, options.new) if pair % 2 == 0 else (options.new, options.old):
            costs[python].append(campaign(python, arguments))
        old, new = costs[options.old][-1], costs[options.new][-1]
        print(
            f"pair {pair + 1}: wall {new.wall_s:.1f} / {old.wall_s:.1f} s = {new.wall_s / old.wall_s:.3f}, "
            f"CPU {new.cpu_s:.1f} / {old.cpu_s:.1f} s = {new.cpu_s / old.cpu_s:.3f}",
            flush=True,
        )
    before, after = costs[options.old], costs[options.new]
    ratios = {}
    for case in sorted(before[0].latencies):
        times = [[run.latencies[case] for run in runs if case in run.latencies] for runs in (before, after)]
        if not all(times):
            sys.exit(f"{case} has no latency in one of the versions")
        ratios[case] = statistics.median(times[1]) / statistics.median(times[0])
        print(f"{ratios[case]:.3f}  {case}  ({statistics.median(times[0]) * 1e3:.3f} ms)")
    if not ratios:
        sys.exit("no case has a latency")
    print(f"geometric mean of step times: {statistics.geometric_mean(ratios.values()):.4f}")
    for case, status in sorted(before[0].statuses.items()):
        if after[0].statuses.get(case) != status:
            print(f"changed: {case}: {status} to {after[0].statuses.get(case)}")


if __name__ == "__main__":
    main()

"""Measure how much of a plain loop's time is memory that each step gives back and faults in again.

A worker is started with two settings of glibc that keep freed memory in the process; a user's script is not.
Here the warm loop of one model of timm runs in fresh processes that take turns: as a script is started, after
a float64 forward (its larger blocks, once freed, make glibc keep smaller ones), with the two settings, and
with both. Prints, for each, the medians over processes of a step's CPU and wall time and page faults, and the
ratio of CPU time to the plain script's with its range over rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from statistics import median

from child_run import run_child

from torchgauge.harness.pool.host_process import _STEADY_MEMORY

PLAIN = "a plain script"
STATES = {
    PLAIN: ({}, False),
    "after a float64 forward": ({}, True),
    "with the two settings": (_STEADY_MEMORY, False),
    "with both": (_STEADY_MEMORY, True),
}
CHILD = """
import copy, json, resource, statistics, sys, time, timm, torch
torch.set_num_threads(1)
torch.manual_seed(0)
model = timm.create_model(sys.argv[1], pretrained=False).eval()
inputs = torch.randn(int(sys.argv[2]), 3, 224, 224)
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
with torch.no_grad():
    if sys.argv[3] == "True":
        copy.deepcopy(model).double()(inputs.double())
    for _ in range(10):
        model(inputs)
    cpu, wall, before = [], [], faults()
    for _ in range(40):
        began = time.process_time(), time.perf_counter()
        model(inputs)
        cpu.append(time.process_time() - began[0])
        wall.append(time.perf_counter() - began[1])
    print(json.dumps([statistics.median(cpu), statistics.median(wall), (faults() - before) / 40]))
"""


def loop(given: argparse.Namespace, state: str) -> list[float]:
    """Return CPU seconds, wall seconds and page faults of a step in a process in ``state``."""
    variables, before = STATES[state]
    rest = {name: value for name, value in os.environ.items() if name not in _STEADY_MEMORY}
    words = [given.python, "-c", CHILD, given.model, str(given.batch), str(before)]
    return run_child(words, json.loads, env={**rest, **variables}).results


def main() -> None:
    """Run the rounds, print a line for each state."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--python", default=sys.executable, help="an interpreter with timm")
    given = parser.parse_args()
    rounds = [
        {state: loop(given, state) for state in random.sample([*STATES], len(STATES))}
        for _ in range(given.rounds)
    ]
    for state in STATES:
        cpu, wall, faults = (median(each[state][at] for each in rounds) for at in range(3))
        ratios = [each[state][0] / each[PLAIN][0] for each in rounds]
        spread = f"{median(ratios):.3f} of {PLAIN} ({min(ratios):.3f} to {max(ratios):.3f})"
        print(f"{state}: {cpu * 1e3:.1f} ms of CPU, {wall * 1e3:.1f} ms, {faults:.0f} page faults; {spread}")


if __name__ == "__main__":
    main()

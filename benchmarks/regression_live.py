"""Live trials of ``torchgauge ab``: known slow-downs, on a machine that this benchmark keeps busy itself.

Base and head are one interpreter and one model (``slowed_suite``); a variable makes the head burn a known
share of its CPU time on top, or plants rare slow steps. Prints a line per trial as JSON and at last a
Markdown table.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from child_run import run_child

SUITE = Path(__file__).parent / "slowed_suite"
BURN = """
import os, random, time
parent, rng, table = os.getppid(), random.Random(os.getpid()), bytearray(1 << 23)
while os.getppid() == parent:
    until = time.monotonic() + rng.uniform(0.01, 0.5)
    while time.monotonic() < until:
        if rng.random() < 0.5:
            table[: 1 << 20] = table[1 << 20 : 1 << 21]
        else:
            sum(range(20_000))
    time.sleep(rng.uniform(0.0, 0.02))
"""
"""What a neighbour does: arithmetic and copying, with short rests; it ends when its parent has."""


@contextmanager
def load(neighbours: int) -> Iterator[None]:
    """That many processes which want a core nearly always."""
    burning = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(neighbours)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def trial(effect: float, rare: str, folder: Path, seed: int) -> dict:
    """One ``torchgauge ab`` with a head slower by ``effect``, or with the slow steps that ``rare`` says."""
    path = [str(SUITE), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torchgauge.cli.main", "ab", "slowed", "--device", "cpu"]
    command += ["--config", "eager", "--threads", "1", "--base-env", "SLOWED_BY=0"]
    command += ["--head-env", f"SLOWED_BY={effect:.3f}", "--no-control", "--seed", str(seed)]
    command += ["--base-env", "SLOW_STEPS=", "--head-env", f"SLOW_STEPS={rare}"]
    command += ["--store", str(folder / "store"), "--json"]

    def verdicts(text: str) -> dict[str, dict]:
        found = {each["metric"]: each for each in json.loads(text)["verdicts"] if each["pair_key"]}
        return {"latency": found["latency"], **found}

    ended = run_child(command, verdicts, good=(0, 1, 3), env=environment)
    timed = ended.results
    latency, wall, tail = timed["latency"], timed.get("latency_wall", {}), timed.get("latency_tail", {})
    facts = ("verdict", "estimator", "ratio", "low", "high", "launches", "time_s", "spread", "reason")
    return {
        "effect": effect,
        **{name: latency[name] for name in facts},
        "wall": wall.get("verdict"),
        "rare": rare,
        "tail": tail.get("verdict"),
        "tail_ratio": tail.get("ratio"),
        "tail_reason": tail.get("reason"),
        "command_s": round(ended.seconds, 1),
        "load_1min": os.getloadavg()[0],
        "exit": ended.code,
    }


def table(trials: list[dict]) -> str:
    """The Markdown of all trials."""
    lines = [
        "| slow-down | trials | regression | improvement | unchanged | undecided | mean time | longest |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for effect in sorted({each["effect"] for each in trials}):
        some = [each for each in trials if each["effect"] == effect]
        counts = [
            sum(verdict in (each["verdict"], each["wall"]) for each in some)
            for verdict in ("regression", "improvement")
        ]
        counts += [sum(verdict == each["verdict"] for each in some) for verdict in ("unchanged", "undecided")]
        times = [each["time_s"] for each in some]
        shown = " | ".join(map(str, counts))
        mean, longest = sum(times) / len(times), max(times)
        lines.append(f"| {effect:.0%} | {len(some)} | {shown} | {mean:.0f} s | {longest:.0f} s |")
    return "\n".join(lines)


def tail_table(trials: list[dict]) -> str:
    """The Markdown of what was said of slow steps."""
    kinds = ("regression", "improvement", "unchanged", "undecided")
    lines = [
        f"| planted | trials | {' | '.join(kinds)} | latency regression | launches | longest |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for rare in sorted({each["rare"] for each in trials}):
        some = [each for each in trials if each["rare"] == rare]
        counts = [sum(each["tail"] == kind for each in some) for kind in kinds]
        counts.append(sum(each["verdict"] == "regression" for each in some))
        launches, longest = (
            sum(each["launches"] for each in some) / len(some),
            max(e["time_s"] for e in some),
        )
        shown = " | ".join(map(str, counts))
        lines.append(f"| {rare or 'nothing'} | {len(some)} | {shown} | {launches:.1f} | {longest:.0f} s |")
    return "\n".join(lines)


def main() -> None:
    """Keep the machine busy, compare, and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--neighbours", type=int, default=5, help="processes that want a core beside ours")
    parser.add_argument("--settle", type=float, default=60.0, help="seconds before the first trial")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--trials", default="0:7,0.03:6,0.05:7", help="slow-down:number of trials, separated by commas"
    )
    parser.add_argument(
        "--rare",
        default="",
        help="slow steps and number of trials: 40:100=5,200:20=5,=5; instead of --trials",
    )
    args = parser.parse_args()
    wanted = [
        (float(effect), "")
        for effect, number in (each.split(":") for each in args.trials.split(","))
        for _ in range(int(number))
    ]
    if args.rare:
        planted = (each.rpartition("=") for each in args.rare.split(","))
        wanted = [(0.0, rare) for rare, _, number in planted for _ in range(int(number))]
    random.Random(args.seed).shuffle(wanted)
    done = []
    with tempfile.TemporaryDirectory() as folder, load(args.neighbours):
        time.sleep(args.settle)
        for number, (effect, rare) in enumerate(wanted):
            done.append(trial(effect, rare, Path(folder), args.seed + number))
            print(json.dumps(done[-1]), flush=True)
    print(f"\n{tail_table(done) if args.rare else table(done)}")


if __name__ == "__main__":
    main()

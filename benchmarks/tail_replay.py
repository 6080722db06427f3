"""How often rare slow steps are found, and how often equal code is accused of them, on recorded timings.

Launches are drawn as in ``regression_replay.py``: pairs of processes with replacement, several records each,
the sides swapped by a coin. Then slow steps are planted at known places of chance. The recordings do not tell
run-queue delays, so that own time is CPU time. The rule looks as it would for a run of one pair whose latency
is decided at the first look: only what looks heavier goes on.

Prints Markdown.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from ab_noise import interleaved
from scipy import stats

from torchgauge.results.comparing.sequential import Levels, live_change, looks, moderate
from torchgauge.results.comparing.tails import SUSPECT, stretch

MAX_LAUNCHES = 12
KINDS = ("regression", "improvement", "undecided")
LEVELS = Levels(0.03, looks(MAX_LAUNCHES))


def recorded(model: str, regime: str) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """CPU times of base and head of every record, by pair of processes."""
    found: dict[int, list] = {}
    for each in interleaved():
        if (each.model, each.regime) == (model, regime):
            _, cpu = each.clean_times()
            found.setdefault(each.pair, []).append((cpu[~each.head].ravel(), cpu[each.head].ravel()))
    return list(found.values())


def planted(times: np.ndarray, every: int, factor: float, rng: np.random.Generator) -> np.ndarray:
    """``times`` with about one in ``every`` taking ``factor`` times the median."""
    if not every:
        return times
    return np.where(rng.random(times.size) * every < 1, factor * np.median(times), times)


def trial(pairs: list, plant: tuple, args: argparse.Namespace, rng: np.random.Generator) -> tuple[str, int]:
    """What the rule says of one comparison, and after how many launches."""
    every, factor, both = plant
    logs: list[float] = []
    for count in range(1, MAX_LAUNCHES + 1):
        records = pairs[rng.integers(len(pairs))]
        chosen = [records[at] for at in rng.permutation(len(records))[: args.records]]
        sides = [np.concatenate([each[side] for each in chosen]) for side in (0, 1)]
        if rng.random() < 0.5:
            sides.reverse()
        base = planted(sides[0], every if both else 0, factor, rng)
        head = planted(sides[1], every, factor, rng)
        logs.append(math.log(stretch(head)[0] / stretch(base)[0]))
        if count not in LEVELS.planned:
            continue
        found = moderate(np.array(logs))
        change = live_change(found, LEVELS)
        if change.more:
            return "regression", count
        large = float(found.mean) >= math.log1p(LEVELS.tolerance / 2)
        heavy = large and not change.same and float(found.p_value()) / 2 <= SUSPECT
        if not heavy:
            return ("improvement" if change.less else "no harm"), count
    return "undecided", MAX_LAUNCHES


def main() -> None:
    """Parse, replay and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--records", type=int, default=5, help="records of 16 ABBA blocks per launch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="rows whose plant holds this")
    args = parser.parse_args()
    plants = {
        "nothing": (0, 1.0, False),
        "1 in 40, 100 times as long, on both sides": (40, 100.0, True),
        "1 in 40, 100 times as long": (40, 100.0, False),
        "1 in 200, 20 times as long": (200, 20.0, False),
        "1 in 100, 10 times as long": (100, 10.0, False),
        "1 in 500, 100 times as long": (500, 100.0, False),
    }
    print("| recording | planted in head | regression (95 % interval) | improvement | undecided | launches |")
    print("|---|---|---|---|---|---|")
    for model, regime in (("encoder2x256", "busy"), ("encoder2x256", "calm"), ("resnet18_64px", "busy")):
        pairs = recorded(model, regime)
        for name, plant in plants.items():
            if args.only not in name:
                continue
            rng = np.random.default_rng(args.seed)
            done = [trial(pairs, plant, args, rng) for _ in range(args.trials)]
            said = [each for each, _ in done]
            ends = stats.binomtest(said.count("regression"), args.trials).proportion_ci(0.95, method="exact")
            share = {
                each: said.count(each) / args.trials for each in ("regression", "improvement", "undecided")
            }
            print(
                f"| {model}, {regime} | {name} | {share[KINDS[0]]:.2%} ({ends.low:.2%} to {ends.high:.2%}) "
                f"| {share[KINDS[1]]:.2%} | {share[KINDS[2]]:.2%} | {np.mean([n for _, n in done]):.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""How often the A/B rule is right, and how long it takes, replayed on recorded step timings.

Each trial draws launches (pairs of processes) with replacement and several records of each, their known
slow-down taken out and the sides swapped by a coin, puts in a slow-down of the wanted size, and lets the rule
look as it would. Each launch costs what its records and its start cost when they were recorded.

Prints Markdown. ``--ABBA blocks`` of a record is 16; a launch takes ``--records`` of them.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np
from ab_noise import LaunchTable, launch_table, sequential
from scipy import stats

from torchgauge.results.comparing.estimators import Estimator
from torchgauge.results.comparing.pair_evidence import DEARER
from torchgauge.results.comparing.sequential import (
    Levels,
    Moderated,
    live_change,
    looks,
    moderate,
)

MAX_LAUNCHES = 12


@dataclass(frozen=True)
class Trials:
    """What many trials of one kind did: arrays of one value per trial."""

    harm: np.ndarray
    gain: np.ndarray
    unchanged: np.ndarray
    wall_harm: np.ndarray
    launches: np.ndarray
    time_s: np.ndarray


@dataclass(frozen=True)
class History:
    """A prior of the launch spread; None where there is none."""

    spread: float | None = None
    df: float = 0.0


def history_of(table: LaunchTable, estimator: Estimator, most: float = 20.0) -> History:
    """The spread over the launches of ``table``, as a noise history of as many A/A launches would know it.

    The sign of a launch is arbitrary, so the mean of its log ratio is known to be 0.
    """
    logs = table.logs[estimator]
    each = np.array([row[np.isfinite(row)].mean() if np.isfinite(row).any() else np.nan for row in logs**2])
    each = each[np.isfinite(each)]
    return History(math.sqrt(each.mean()), min(most, len(each) - 1.0)) if len(each) > 2 else History()


def draw(table: LaunchTable, trials: int, effect: float, rng: np.random.Generator) -> dict:
    """``trials`` x 12 launches: log ratios by estimator, costs, and whether the first one was clean."""
    pairs, choices = table.cost_s.shape
    shape = (trials, MAX_LAUNCHES)
    at = rng.integers(0, pairs, shape), rng.integers(0, choices, shape)
    sign = rng.choice((-1.0, 1.0), shape)
    logs = {each: values[at] * sign for each, values in table.logs.items()}
    for each in (Estimator.CPU, Estimator.CLEAN_WALL):
        logs[each] = logs[each] + math.log1p(effect)
    return {"logs": logs, "cost": table.cost_s[at], "clean": table.clean[at][:, 0]}


def run_rule(drawn: dict, levels: Levels, history: dict[Estimator, History], cap_s: float = 240.0) -> Trials:
    """The rule for a run of one pair, over all trials at once: launch, look, and go on or not."""
    clean, cost = drawn["clean"], drawn["cost"]
    latency = np.where(clean[:, None], drawn["logs"][Estimator.CLEAN_WALL], drawn["logs"][Estimator.CPU])
    trials, planned = len(clean), looks(MAX_LAUNCHES)
    kept, wall = (np.full((trials, MAX_LAUNCHES), np.nan) for _ in range(2))
    running, spent, dearest = np.ones(trials, bool), np.zeros(trials), np.zeros(trials)
    usable = np.zeros(trials, int)
    out = Trials(*(np.zeros(trials, bool) for _ in range(4)), usable, spent)
    for launch in range(MAX_LAUNCHES):
        spent += np.where(running, cost[:, launch], 0.0)
        dearest = np.maximum(dearest, cost[:, launch])
        good = np.flatnonzero(running & np.isfinite(latency[:, launch]))
        kept[good, usable[good]] = latency[good, launch]
        wall[good, usable[good]] = drawn["logs"][Estimator.WALL][good, launch]
        usable[good] += 1
        last = (spent + DEARER * dearest > cap_s) | (launch == MAX_LAUNCHES - 1)
        looking = running & (usable >= 3) & (last | np.isin(usable, planned))
        for n in np.unique(usable[looking]):
            for estimator, which in ((Estimator.CLEAN_WALL, clean), (Estimator.CPU, ~clean)):
                rows = np.flatnonzero(looking & (usable == n) & which)
                if len(rows):
                    _look(out, rows, _known(kept[rows, :n], history[estimator]), levels)
                    seen = _known(wall[rows, :n], history[Estimator.WALL])
                    out.wall_harm[rows] = live_change(seen, levels).more
        running &= ~(last | out.harm | out.gain | out.unchanged)
    return out


def _known(logs: np.ndarray, history: History) -> Moderated:
    return moderate(logs, history.spread, history.df)


def _look(out: Trials, rows: np.ndarray, found: Moderated, levels: Levels) -> None:
    harm, gain, same = live_change(found, levels)
    out.harm[rows], out.gain[rows], out.unchanged[rows] = harm, gain, same & ~harm & ~gain


def row(name: str, effect: float, trials: Trials) -> str:
    """One line of the table."""
    n = len(trials.harm)
    interval = stats.binomtest(int(trials.harm.sum()), n).proportion_ci(0.95, method="exact")
    undecided = ~(trials.harm | trials.gain | trials.unchanged)
    return (
        f"| {name} | {effect:.0%} | {trials.harm.mean():.2%} ({interval.low:.2%} to {interval.high:.2%}) | "
        f"{trials.wall_harm.mean():.2%} | {trials.unchanged.mean():.1%} | {undecided.mean():.1%} | "
        f"{trials.launches.mean():.1f} | {trials.time_s.mean():.0f} s | {trials.time_s.max():.0f} s |"
    )


HEADER = (
    "| launches | slow-down | regression (95 % interval) | wall regression | unchanged | undecided | number "
    "| mean time | longest |\n|---|---|---|---|---|---|---|---|---|"
)


def no_history() -> dict[Estimator, History]:
    """A prior for no estimator."""
    return {each: History() for each in Estimator}


@dataclass(frozen=True)
class Setting:
    """What the policy says."""

    tolerance: float = 0.03
    cap_s: float = 240.0


def replay(model: str, regime: str, setting: Setting, args: argparse.Namespace) -> None:
    """Print the table of one model in one regime: without history, and with that of the other launches."""
    table = launch_table(model, regime, args.records)
    rng = np.random.default_rng(args.seed)
    levels = Levels(setting.tolerance, looks(MAX_LAUNCHES))
    pairs = np.arange(len(table.pairs))
    odd, even = pairs[1::2], pairs[::2]
    known = {
        "odd launches, history of the even": (odd, even),
        "even launches, history of the odd": (even, odd),
    }
    print(
        f"\n{model}, {regime}, tolerance {setting.tolerance:.0%}, at most {setting.cap_s:.0f} s:\n\n{HEADER}"
    )
    for effect in (0.0, 0.01, 0.02, 0.03, 0.05, 0.10):
        drawn = draw(table, args.trials, effect, rng)
        print(row("no history", effect, run_rule(drawn, levels, no_history(), setting.cap_s)))
    for name, (test, others) in known.items():
        history = {each: history_of(table.part(others), each) for each in table.logs}
        for effect in (0.0, 0.02, 0.03, 0.05):
            drawn = draw(table.part(test), args.trials, effect, rng)
            print(row(name, effect, run_rule(drawn, levels, history, setting.cap_s)))


def peers(regime: str) -> None:
    """Print what rules over two sequential runs say of the same pairs."""
    print(f"\nRules over two sequential runs, {regime}: called slower, and in brackets called changed:\n")
    print("| rule | 0 % | 2 % | 5 % |\n|---|---|---|---|")
    found = [each for each in sequential() if (each.regime, each.model) == (regime, "encoder2x256")]
    rules = {
        "medians of wall time, 7 % (TorchBench)": lambda a, b: abs(np.median(b) / np.median(a) - 1) > 0.07,
        "Mann-Whitney, p < 0.05": lambda a, b: stats.mannwhitneyu(a, b).pvalue < 0.05,
    }
    for name, rule in rules.items():
        cells = []
        for slowdown in (0.0, 0.02, 0.05):
            some = [each for each in found if each.slowdown == slowdown]
            changed = np.array([rule(each.base, each.head) for each in some])
            slower = np.array([np.median(each.head) > np.median(each.base) for each in some])
            cells.append(f"{(changed & slower).mean():.0%} ({changed.mean():.0%})")
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    """Parse, replay and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=5000)
    parser.add_argument("--records", type=int, default=5, help="records of 16 ABBA blocks per launch")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    replay("encoder2x256", "busy", Setting(), args)
    replay("encoder2x256", "calm", Setting(), args)
    replay("encoder2x256", "calm", Setting(tolerance=0.02), args)
    replay("encoder2x256", "calm", Setting(tolerance=0.02, cap_s=60.0), args)
    replay("resnet18_64px", "busy", Setting(), argparse.Namespace(**{**vars(args), "records": 4}))
    for regime in ("busy", "calm"):
        peers(regime)


if __name__ == "__main__":
    main()

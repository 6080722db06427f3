"""Suites of 300 cases: how often a clean one ends red, and what is found of five slow cases.

Noise is drawn from recorded launches: the effect of a launch, and the residuals of its records around it,
each resampled as they are, tails included. Every case has its own scale. Red is what the rule calls red:
left after Benjamini and Hochberg at 5 % over both step times of all cases, or a hint, then repeated by fresh
launches. Without history the prior is what the cases of the suite have in common.

Prints Markdown.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np
from ab_noise import launch_table
from scipy import stats

from torchgauge.results.comparing.estimators import Estimator
from torchgauge.results.comparing.pair_verdict import CONFIRMING, HINT_LAUNCHES, HINTED
from torchgauge.results.comparing.pooled_noise import pooled_prior
from torchgauge.results.comparing.sequential import (
    Levels,
    Moderated,
    live_change,
    looks,
    moderate,
    spent_p,
)

BATCH = 50
HISTORY = 20


@dataclass(frozen=True)
class Noise:
    """Effects of launches and residuals of records, by estimator (latency, wall); they belong together."""

    launches: np.ndarray
    residuals: np.ndarray
    records: int

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Log ratios of launches without any slow-down: 2 x shape."""
        at = rng.integers(0, self.launches.shape[1], shape)
        sign = rng.choice((-1.0, 1.0), shape)
        within = rng.integers(0, self.residuals.shape[1], (*shape, self.records))
        flips = rng.choice((-1.0, 1.0), (*shape, self.records))
        return self.launches[:, at] * sign + (self.residuals[:, within] * flips).mean(axis=-1)


def noise_of(regime: str, records: int) -> Noise:
    """The parts of the noise in ``regime``, scaled so that their variances are the measured ones."""
    table = launch_table("encoder2x256", regime, 1)
    effects, residuals = [], []
    for estimator in (Estimator.CPU, Estimator.WALL):
        logs = table.logs[estimator]
        size = logs.shape[1]
        means = logs.mean(axis=1)
        rest = (logs - means[:, None]) * math.sqrt(size / (size - 1))
        within = (rest**2).mean()
        between = max(0.0, (means**2).mean() - within / size)
        effects.append(means * math.sqrt(between / (means**2).mean()))
        residuals.append(rest.ravel())
    return Noise(np.array(effects), np.array(residuals), records)


@dataclass(frozen=True)
class Suites:
    """One value per suite; ``seen`` counts the slow cases that were suspected, ``found`` those called red.

    ``hidden`` counts slow cases that are called unchanged; ``launches`` is the mean, fresh ones included.
    """

    suspected: np.ndarray
    seen: np.ndarray
    red: np.ndarray
    found: np.ndarray
    hidden: np.ndarray
    launches: np.ndarray


@dataclass(frozen=True)
class Setting:
    """Suites of one kind: ``slow`` of ``cases`` are slower by ``effect``.

    ``known`` is whether there is history; it was taken when launches spread ``worse`` times less than now.
    ``scatter`` is the standard deviation of the logarithm of a case's own scale of noise; ``loud`` is the
    share of cases that are five times as noisy as the others.
    """

    cases: int
    launches: int
    slow: int = 0
    effect: float = 0.0
    known: bool = True
    scatter: float = 0.3
    worse: float = 1.0
    loud: float = 0.0


def simulate(noise: Noise, setting: Setting, suites: int, seed: int) -> Suites:
    """``suites`` suites of one kind, rounded up to whole batches."""
    rng = np.random.default_rng(seed)
    parts = [_batch(noise, setting, rng) for _ in range(math.ceil(suites / BATCH))]
    return Suites(*(np.concatenate(each) for each in zip(*parts, strict=True)))


def _batch(noise: Noise, setting: Setting, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    planned = looks(setting.launches)
    levels = Levels(0.03, planned)
    shape = (BATCH, setting.cases)
    scale = np.exp(rng.normal(0, setting.scatter, shape))[..., None]
    scale = scale * np.where(rng.random((*shape, 1)) < setting.loud, 5.0, 1.0)
    slower = np.zeros(setting.cases)
    slower[: setting.slow] = math.log1p(setting.effect)
    first = noise.draw((*shape, planned[-1]), rng) * scale + slower[:, None]
    fresh = noise.draw((*shape, HINT_LAUNCHES), rng) * scale + slower[:, None]
    if setting.known:
        before = noise.draw((*shape, HISTORY), rng) * scale / setting.worse
        priors = [(spread, HISTORY) for spread in np.sqrt((before**2).mean(axis=-1))]
    else:
        priors = [_pooled(logs) for logs in first]
    at_look = [
        [moderate(logs[..., :n], *prior) for n in planned] for logs, prior in zip(first, priors, strict=True)
    ]
    p = np.array([[spent_p(found, levels) for found in each] for each in at_look])
    harm = np.array([[live_change(found, levels).more for found in each] for each in at_look])
    same = np.array([live_change(found, levels).same for found in at_look[0]])
    gain = np.array([live_change(found, levels).less for found in at_look[0]])
    ended, survives = _first_stage(p, harm[0] | gain, same)
    shown = np.take_along_axis(harm, ended[None, None], axis=1)[:, 0]
    suspicion = shown & survives
    repeated = np.zeros_like(shown)
    hints = (shown & ~survives).sum(axis=(0, 2))
    extra = np.zeros(shape)
    for metric, suite, case in zip(*np.nonzero(shown), strict=True):
        before, where = at_look[metric][ended[suite, case]], (suite, case)
        count, error = max(3, (before.n + 1) // 2), CONFIRMING
        if not suspicion[metric, suite, case]:
            count, error = max(HINT_LAUNCHES, count), HINTED / hints[suite]
        extra[where] = max(extra[where], count)
        again = Levels(levels.tolerance, (count,), error, levels.harmless)
        repeated[metric, suite, case] = _repeats(before, fresh[metric, suite, case], where, again)
    clean = np.arange(setting.cases) >= setting.slow
    launches = np.array(planned)[ended] + extra
    unchanged = np.take_along_axis(same, ended[None], axis=0)[0] & ~shown.any(axis=0)
    return (
        suspicion[..., clean].any(axis=(0, 2)),
        suspicion[..., ~clean].any(axis=0).sum(axis=1),
        repeated[..., clean].any(axis=(0, 2)),
        repeated[..., ~clean].any(axis=0).sum(axis=1),
        unchanged[..., ~clean].sum(axis=1),
        launches.mean(axis=1),
    )


def _first_stage(p: np.ndarray, changed: np.ndarray, same: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For every suite x case the look at which it ended, and whether either step time survives.

    ``p`` is metrics x looks x suites x cases; a case goes on until it is unchanged, or changed among all.
    """
    last = p.shape[1] - 1
    at = np.zeros(p.shape[2:], dtype=int)
    while True:
        now = np.take_along_axis(p, at[None, None], axis=1)[:, 0]
        family = np.moveaxis(now, 1, 0).reshape(now.shape[1], -1)
        adjusted = stats.false_discovery_control(family, axis=1).reshape(now.shape[1], *now.shape[::2])
        survives = np.moveaxis(adjusted, 0, 1) <= 0.05
        decided = np.take_along_axis(same, at[None], axis=0)[0] | (
            np.take_along_axis(changed, at[None], axis=0)[0] & survives[0]
        )
        onwards = ~decided & (at < last)
        if not onwards.any():
            return at, survives
        at += onwards


def _pooled(logs: np.ndarray) -> tuple[np.ndarray | None, np.ndarray | float]:
    """Spread and worth of the prior that the cases of each suite (axis 0) share; no prior for few cases."""
    found = [pooled_prior(suite) for suite in logs]
    if any(each is None for each in found):
        return None, 0.0
    return np.array([[each.spread] for each in found]), np.array([[each.df] for each in found])


def _repeats(before: Moderated, logs: np.ndarray, at: tuple[int, int], levels: Levels) -> bool:
    found = moderate(logs[: levels.planned[0]], float(before.spread[at]), float(before.df[at]))
    return bool(live_change(found, levels).more)


def share(count: int, n: int) -> str:
    """A share with its exact 95 % interval."""
    interval = stats.binomtest(count, n).proportion_ci(0.95, method="exact")
    return f"{count / n:.2%} ({interval.low:.2%} to {interval.high:.2%})"


def row(name: str, setting: Setting, got: Suites) -> str:
    """One line of the table."""
    suites = len(got.red)
    slow = f"{setting.slow} by {setting.effect:.0%}" if setting.slow else "none"
    seen, found, hidden = (
        share(int(each.sum()), suites * setting.slow) if setting.slow else ""
        for each in (got.seen, got.found, got.hidden)
    )
    wrong = [share(int(each.sum()), suites) for each in (got.suspected, got.red)]
    return f"| {' | '.join([name, slow, *wrong, seen, found, hidden, f'{got.launches.mean():.2f}'])} |"


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suites", type=int, default=2000)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--launches", type=int, default=6, help="launches of the first stage, at most")
    parser.add_argument("--records", type=int, default=5, help="records of 16 ABBA blocks per launch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="rows whose name holds this")
    args = parser.parse_args()
    print(f"{args.suites} suites of {args.cases} cases, {args.launches} launches at most:\n")
    titles = ["suspected wrongly", "red wrongly", "slow suspected", "slow red", "slow called unchanged"]
    print(f"| noise and history | slow | {' | '.join(titles)} | launches |")
    print("|---|---|---|---|---|---|---|---|")
    kinds = {
        "busy, 20 launches of history": ("busy", {"scatter": 0.0}),
        "the same, cases scattered by 30 %": ("busy", {}),
        "the same, history 1.25 times too calm": ("busy", {"worse": 1.25}),
        "busy, scattered, no history": ("busy", {"known": False}),
        "the same, cases scattered by 60 %": ("busy", {"known": False, "scatter": 0.6}),
        "the same, one in ten five times as noisy": ("busy", {"known": False, "loud": 0.1}),
        "calm, scattered, 20 launches of history": ("calm", {}),
        "calm, scattered, no history": ("calm", {"known": False}),
    }
    for name, (regime, changes) in kinds.items():
        if args.only not in name:
            continue
        noise = noise_of(regime, args.records)
        for slow, effect in ((0, 0.0), (5, 0.03), (5, 0.05)):
            setting = Setting(args.cases, args.launches, slow, effect, **changes)
            suites = args.suites // 8 if slow else args.suites
            print(row(name, setting, simulate(noise, setting, suites, args.seed)), flush=True)


if __name__ == "__main__":
    main()

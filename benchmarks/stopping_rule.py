"""Whether the rule that ends sampling keeps its promise of 95 %, and what it costs, beside the earlier rule.

``replay`` draws series of step times from known processes and runs both rules on them: how often the interval
that would be reported covers the true median, and how many rounds were taken. ``record FILE MODEL...`` times
eager and inductor of timm models in turns for ``ROUNDS`` rounds; ``replay FILE`` then runs the rules from
many places of these recordings, against the median of the whole. Prints one JSON object.
"""

from __future__ import annotations

import json
import math
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from statistics import mean, median

from torchgauge.autocorrelation import resemblance, widening
from torchgauge.harness.worker.lane import Lane
from torchgauge.harness.worker.purse import Purse
from torchgauge.harness.worker.rounds import CEILING, Rounds
from torchgauge.harness.worker.stopping import log_ratio_half_width, relative_half_width
from torchgauge.records import RunSettings
from torchgauge.results.stats import Estimate, median_interval

ROUNDS = 150
TRIALS = 150
SETTINGS = RunSettings()
Series = list[float]


def before(lanes: Sequence[Lane], done: int, now: float, budget: float) -> str:
    """The rule until November 2026: 30 rounds at least, one look is enough, correlation is not asked for."""
    if done >= 30 and done in _CHECKS:
        widths = [relative_half_width(lane.wall, 0.95) for lane in lanes]
        widths += [log_ratio_half_width(lanes[0].wall, lane.wall, 0.95) for lane in lanes[1:]]
        if max(widths) <= SETTINGS.precision_target:
            return "precision"
    over = (now > budget and done >= 30) or (now > CEILING * budget and done >= 3)
    return "budget" if over else ""


def _checks() -> frozenset[int]:
    found, number = [], 30
    while number <= SETTINGS.max_blocks:
        found.append(number)
        number += max(2, number // 8)
    return frozenset(found)


_CHECKS = _checks()


def run(series: Sequence[Series], *, new: bool) -> tuple[list[Lane], float]:
    """The lanes with what a rule took of ``series``, one per lane, and the seconds of it."""
    lanes = [Lane(str(number), lambda: None) for number in range(len(series))]
    budget, now = SETTINGS.measure_budget_s * len(series), 0.0
    rounds = Rounds(lanes, SETTINGS, Purse(), 0.0, budget)
    for number in range(min(map(len, series))):
        for lane, samples in zip(lanes, series, strict=True):
            if not lane.stopped:
                lane.wall.append(samples[number])
                lane.rounds.append(number)
                now += max(samples[number], SETTINGS.min_block_s)
        if rounds.verdict(number + 1, now) if new else before(lanes, number + 1, now, budget):
            break
    return lanes, now


def reported(samples: Series, *, new: bool) -> Estimate:
    """The interval that would be reported: samples that resemble the one before have a wider one now."""
    return median_interval(samples, 0.95, widening(resemblance(samples)) if new else 1.0)


def covers(found: Estimate, truth: float) -> bool:
    """Whether the interval of the median that would be reported holds ``truth``."""
    return found.low is not None and found.low <= truth <= found.high


def row(draw: Callable[[], list[Series]], truths: Sequence[float], trials: int) -> dict[str, float]:
    """Coverage, rounds and seconds of both rules on the same series."""
    found: dict[str, list[float]] = {}
    for _ in range(trials):
        series = draw()
        for name, new in (("before", False), ("now", True)):
            lanes, seconds = run(series, new=new)
            intervals = [reported(lane.wall, new=new) for lane in lanes]
            hits = [covers(each, truth) for each, truth in zip(intervals, truths, strict=True)]
            widths = [(each.high - each.low) / 2 / each.estimate for each in intervals]
            for what, value in (
                ("coverage", mean(hits)),
                ("rounds", mean(len(lane.wall) for lane in lanes)),
                ("seconds", seconds),
                ("half_width", median(widths)),
            ):
                found.setdefault(f"{what}_{name}", []).append(value)
    return {name: round(mean(values), 4) for name, values in found.items()}


def process(step_s: float, spread: float, correlation: float, dice: random.Random) -> Callable[[], Series]:
    """Series of a step of ``step_s`` whose logarithm is a first-order autoregressive process."""
    fresh = spread * math.sqrt(1.0 - correlation**2)

    def draw() -> Series:
        value, found = dice.gauss(0.0, spread), []
        for _ in repeat(None, max(ROUNDS, int(2 * SETTINGS.measure_budget_s / max(step_s, 0.01)))):
            value = correlation * value + dice.gauss(0.0, fresh)
            found.append(step_s * math.exp(value))
        return found

    return draw


def replay_processes(trials: int) -> dict[str, dict[str, float]]:
    """Known processes: the true median is the step's length. Two lanes, the second twice as fast."""
    dice, found = random.Random(0), {}
    for step_s in (0.02, 0.2):
        for spread in (0.005, 0.015, 0.04):
            for correlation in (0.0, 0.6):
                lanes = [process(length, spread, correlation, dice) for length in (step_s, step_s / 2)]
                name = f"step {step_s:g} s, spread {spread:.1%}, correlation {correlation:g}"
                found[name] = row(lambda lanes=lanes: [f() for f in lanes], [step_s, step_s / 2], trials)
    return found


def replay_recording(file: Path, trials: int) -> dict[str, dict[str, float]]:
    """Recorded models, each from ``trials`` random places; "truth" is the median of the whole recording."""
    dice, found = random.Random(0), {}
    for model, lanes in json.loads(file.read_text(encoding="utf-8")).items():
        length = len(lanes[0])

        def draw(lanes: list[Series] = lanes, length: int = length) -> list[Series]:
            start = dice.randrange(length)
            return [lane[start:] + lane[:start] for lane in lanes]

        found[model] = row(draw, [median(lane) for lane in lanes], trials)
    return found


def record(file: Path, models: Sequence[str]) -> None:
    """Time eager and inductor of ``models`` in turns, on one thread; writes the seconds to ``file``."""
    from torchgauge.suites.torchvision_schemas import define_missing_schemas

    define_missing_schemas()
    import timm
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    found: dict[str, list[Series]] = {}
    for name in models:
        torch._dynamo.reset()
        model = timm.create_model(name).eval()
        data = torch.randn(2, *model.default_cfg["input_size"])
        lanes = [model, torch.compile(model)]
        for lane in lanes:
            for _ in range(5):
                lane(data)
        series: list[Series] = [[], []]
        for _ in range(ROUNDS):
            for lane, samples in zip(lanes, series, strict=True):
                began = time.perf_counter()
                lane(data)
                samples.append(time.perf_counter() - began)
        found[name] = series
        file.write_text(json.dumps(found), encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    """Record, or replay and print."""
    if arguments[:1] == ["record"]:
        record(Path(arguments[1]), arguments[2:])
        return
    files = [Path(each) for each in arguments if each != "replay"]
    results = replay_recording(files[0], TRIALS) if files else replay_processes(TRIALS)
    print(
        json.dumps(
            {"benchmark": "stopping_rule", "trials": TRIALS, "settings": _settings(), **results}, indent=1
        )
    )


def _settings() -> dict[str, float]:
    default = replace(SETTINGS)
    return {name: getattr(default, name) for name in ("precision_target", "measure_budget_s", "min_blocks")}


if __name__ == "__main__":
    main(sys.argv[1:])

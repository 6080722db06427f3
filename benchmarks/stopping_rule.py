"""Whether the interval of a latency holds the true one as often as it says, under what machines do.

``replay`` draws series of step times from known processes and runs the rule that ends sampling on them, with
its visits and pauses: while a pause lasts the process goes on unseen. What is judged is what a row would say:
the interval of the first of two configurations (the second is twice as fast), and whether it is ``unsteady``.
``recorded`` does the same with the step times in ``data/ab_steps.json.gz``, each against the median of its
whole recording, with a budget that lets the rule see a quarter of it. ``record FILE MODEL...`` times eager
and inductor of timm models in turns for ``ROUNDS`` rounds; ``replay FILE`` then runs the rule from many
places of these recordings, against the median of the whole. Prints one JSON object.
"""

from __future__ import annotations

import gzip
import json
import math
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

from torchgauge.harness.run.steadiness import doubts
from torchgauge.harness.worker.rounds import Rounds
from torchgauge.harness.worker.series import Series
from torchgauge.harness.worker.shared_budget import SharedBudget
from torchgauge.records import METRICS, Measurement, RunSettings
from torchgauge.results.stats import summarise

DATA = Path(__file__).parent / "data" / "ab_steps.json.gz"
ROUNDS = 150
TRIALS = 400
SETTINGS = replace(RunSettings(), measure_budget_s=2.0)
Times = list[float]


@dataclass(frozen=True)
class Row:
    """What one row would say of a series: its interval, whether it is in doubt, and what it took."""

    low: float | None
    high: float | None
    doubt: str
    samples: int
    seconds: float
    last: int


def run(times: Sequence[Times], settings: RunSettings = SETTINGS) -> Row:
    """The row of the first of ``times``, one per configuration, by the rule that ends sampling."""
    all_series = [Series(str(number), lambda: None) for number in range(len(times))]
    rounds, now, place = (
        Rounds(all_series, settings, SharedBudget(), 0.0, settings.measure_budget_s * len(times)),
        0.0,
        0,
    )
    for number in range(settings.max_blocks):
        if place >= len(times[0]):
            break
        for series, samples in zip(all_series, times, strict=True):
            if not series.stopped:
                series.wall.append(samples[place])
                series.rounds.append(number)
                now += max(samples[place], settings.min_block_s)
        place += 1
        if rounds.verdict(number + 1, now):
            break
        pause = rounds.rest(number + 1, now)
        if pause:
            rounds.rested(pause)
            now += pause
            place += round(pause / sum(samples[0] for samples in times))
    walls = all_series[0].wall
    latency = Measurement("latency", "s", tuple(walls), tuple(range(len(walls))))
    summary = summarise(latency, METRICS["latency"])
    return Row(summary.low, summary.high, doubts([latency], [summary], {}), len(walls), now, place)


def judged(draw: Callable[[], list[Times]], truth: Callable[[Row], float], trials: int) -> dict[str, object]:
    """How often the interval held the truth, how often the row was in doubt, and how often neither."""
    rows = [run(draw()) for _ in range(trials)]
    return shares([(row, truth(row)) for row in rows])


def shares(rows: Sequence[tuple[Row, float]]) -> dict[str, object]:
    """The figures of ``rows``, each with its truth."""
    held = [
        row.low is not None and row.high is not None and row.low <= truth <= row.high for row, truth in rows
    ]
    said = [bool(row.doubt) for row, _ in rows]
    sure = [hit for hit, doubt in zip(held, said, strict=True) if not doubt]
    none = mean(row.low is None for row, _ in rows)
    return {
        "held": round(mean(held), 3) if none < 1 else "no interval",
        "unsteady": round(mean(said), 3),
        "held or unsteady": round(mean(a or b for a, b in zip(held, said, strict=True)), 3),
        "held of those not unsteady": round(mean(sure), 3) if sure else "none",
        "samples": median(row.samples for row, _ in rows),
        "seconds": round(mean(row.seconds for row, _ in rows), 1),
    }


def correlated(step_s: float, spread: float, r: float, dice: random.Random) -> Callable[[], list[Times]]:
    """Two configurations whose logarithms are first-order autoregressive processes."""

    def one(length_s: float) -> Times:
        value, found = dice.gauss(0.0, spread), []
        for _ in range(_rounds(step_s)):
            value = r * value + dice.gauss(0.0, spread * math.sqrt(1.0 - r * r))
            found.append(length_s * math.exp(value))
        return found

    return lambda: [one(step_s), one(step_s / 2)]


def two_speeds(step_s: float, apart: float, stay: float, dice: random.Random) -> Callable[[], list[Times]]:
    """A machine that is as long fast as slow, for ``stay`` rounds in the mean; steps scatter by 1 %."""

    def draw() -> list[Times]:
        slow, found = dice.random() < 0.5, ([], [])
        for _ in range(_rounds(step_s)):
            slow ^= dice.random() < 1.0 / stay
            for times, length_s in zip(found, (step_s, step_s / 2), strict=True):
                times.append(length_s * (1.0 + (apart if slow else 0.0)) * math.exp(dice.gauss(0.0, 0.01)))
        return list(found)

    return draw


def drifting(step_s: float, per_s: float, dice: random.Random) -> Callable[[], list[Times]]:
    """A machine that becomes slower by ``per_s`` each second; steps scatter by 1 %."""

    def draw() -> list[Times]:
        each = per_s * step_s * 1.5
        return [
            [length_s * (1.0 + each * n) * math.exp(dice.gauss(0.0, 0.01)) for n in range(_rounds(step_s))]
            for length_s in (step_s, step_s / 2)
        ]

    return draw


def _rounds(step_s: float) -> int:
    """Rounds of both configurations that the longest sampling may look over, its pauses included."""
    return int(40 * SETTINGS.measure_budget_s / (1.5 * step_s)) + 40


def replay_processes(trials: int) -> dict[str, dict[str, object]]:
    """All processes; the truth is the median that the process has, or had while it was sampled."""
    dice, found = random.Random(0), {}
    for step_s in (0.02, 0.2):
        for r in (0.0, 0.6, 0.9):
            name = f"step {step_s:g} s, spread 1.5 %, correlation {r:g}"
            found[name] = judged(correlated(step_s, 0.015, r, dice), lambda _, s=step_s: s, trials)
    for step_s, name in ((1.8, "about 12 slow steps"), (30.0, "three steps of 30 s")):
        for r in (0.0, 0.9):
            found[f"{name}, spread 1.5 %, correlation {r:g}"] = judged(
                correlated(step_s, 0.015, r, dice), lambda _, s=step_s: s, trials
            )
    for step_s in (0.02, 0.2):
        for apart in (0.03, 0.1):
            name = f"step {step_s:g} s, two speeds {apart:.0%} apart that stay for 50 rounds"
            truth = step_s * (1.0 + apart / 2)
            found[name] = judged(two_speeds(step_s, apart, 50.0, dice), lambda _, t=truth: t, trials)
    for step_s in (0.02, 0.2):
        each = 0.01 * step_s * 1.5
        found[f"step {step_s:g} s, slower by 1 % each second"] = judged(
            drifting(step_s, 0.01, dice),
            lambda row, s=step_s, e=each: s * (1.0 + e * (row.last - 1) / 2),
            trials,
        )
    return found


def replay_recorded() -> dict[str, dict[str, object]]:
    """The base of every recorded comparison that ran alone, from its first step."""
    rows: dict[str, list[tuple[Row, float]]] = {}
    for each in json.loads(gzip.decompress(DATA.read_bytes()))["sequential"]:
        times = [us * 1e-6 for us in each["base_us"]]
        settings = replace(SETTINGS, measure_budget_s=sum(times) / 4, min_block_s=0.0)
        name = f"{each['model']}, {each['regime']}"
        rows.setdefault(name, []).append((run([times], settings), median(times)))
    return {name: {**shares(found), "recordings": len(found)} for name, found in sorted(rows.items())}


def replay_recording(file: Path, trials: int) -> dict[str, dict[str, object]]:
    """Recorded models, each from ``trials`` random places; "truth" is the median of the whole recording."""
    dice, found = random.Random(0), {}
    for model, all_series in json.loads(file.read_text(encoding="utf-8")).items():

        def draw(all_series: list[Times] = all_series) -> list[Times]:
            start = dice.randrange(len(all_series[0]))
            return [series[start:] + series[:start] for series in all_series]

        truth = median(all_series[0])
        found[model] = judged(draw, lambda _, truth=truth: truth, trials)
    return found


def record(file: Path, models: Sequence[str]) -> None:
    """Time eager and inductor of ``models`` in turns, on one thread; writes the seconds to ``file``."""
    from torchgauge.suites.torchvision_schemas import define_missing_schemas

    define_missing_schemas()
    import timm
    import torch

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    found: dict[str, list[Times]] = {}
    for name in models:
        torch._dynamo.reset()
        model = timm.create_model(name).eval()
        data = torch.randn(2, *model.default_cfg["input_size"])
        all_series = [model, torch.compile(model)]
        for series in all_series:
            for _ in range(5):
                series(data)
        times: list[Times] = [[], []]
        for _ in range(ROUNDS):
            for series, samples in zip(all_series, times, strict=True):
                began = time.perf_counter()
                series(data)
                samples.append(time.perf_counter() - began)
        found[name] = times
        file.write_text(json.dumps(found), encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    """Record, or replay and print."""
    if arguments[:1] == ["record"]:
        record(Path(arguments[1]), arguments[2:])
        return
    files = [Path(each) for each in arguments if each not in ("replay", "recorded")]
    if files:
        results = replay_recording(files[0], TRIALS)
    else:
        results = replay_recorded() if "recorded" in arguments else replay_processes(TRIALS)
    settings = {
        name: getattr(SETTINGS, name) for name in ("precision_target", "measure_budget_s", "min_blocks")
    }
    print(
        json.dumps(
            {"benchmark": "stopping_rule", "trials": TRIALS, "settings": settings, **results}, indent=1
        )
    )


if __name__ == "__main__":
    main(sys.argv[1:])

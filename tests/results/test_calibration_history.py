"""One history of a device's speed from two sources, and what it says of a new number."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from torchgauge.records import (
    METRICS,
    Calibration,
    Case,
    Configuration,
    DeviceTarget,
    Environment,
    Measurement,
    Workload,
)
from torchgauge.results.calibration_history import (
    FLOOR,
    Machine,
    Past,
    Series,
    Word,
    compare,
    read_history,
    spread,
)
from torchgauge.results.journal import End, Kind, RunState
from torchgauge.results.stats import summarise

GEMM = Series("gemm", "float32", "gemm_flops")
LAUNCH = Series("launch", "float32", "launch_s")
HERE = Environment(
    "fake",
    (
        ("cpu.model", "Some CPU"),
        ("cpu.cores_available", 2),
        ("torch.threads", 2),
        ("torch.version", "2.13.0"),
    ),
)
MACHINE = Machine.of(HERE)


def summary(metric: str, *samples: float):
    """The summary of samples of one metric of a calibration."""
    known = METRICS[metric]
    return summarise(Measurement(metric, known.unit, samples), known)


def write(store, build, run_id: str, *, environment=HERE, calibrations=(), rows=()) -> None:
    """A published run through the real journal; ``rows`` are (part, dtype, metric, samples)."""
    results = []
    for part, dtype, metric, samples in rows:
        workload = Workload("calibration", part, "check", dtype)
        case = Case(workload, Configuration("eager", "eager"), DeviceTarget(environment.device))
        known = METRICS[metric]
        measured = Measurement(metric, known.unit, tuple(samples))
        results.append(
            build.result(run_id, case=case, measurements=(measured,), summaries=(summarise(measured, known),))
        )
    results = results or [build.result(run_id)]
    tolerance = build.plan().groups[0].cases[0].tolerance
    cases = tuple(replace(build.plan().groups[0].cases[0], case=r.case, tolerance=tolerance) for r in results)
    group = replace(build.plan().groups[0], cases=cases)
    folder = store.begin(build.plan(run_id, groups=(group,)))
    with folder.open_journal() as journal:
        journal.append(Kind.ENVIRONMENT, [environment])
        if calibrations:
            journal.append(Kind.CALIBRATION, list(calibrations))
        journal.append(Kind.RESULT, results)
        journal.append(Kind.END, [End(RunState.COMPLETE, build.created_at + 60)])
    store.finish(run_id)


def test_runs_and_doctors_make_one_history(store, build) -> None:
    """The three numbers of a run stand in the same series as the rows of the suite; a run counts once."""
    both = [Calibration("fake", "start", 1e9, 2e9, 1e-6), Calibration("fake", "end", 3e9, 2e9, None, "lost")]
    write(store, build, "run-1", calibrations=both)
    rows = [("gemm", "float32", "gemm_flops", [4e9, 5e9, 6e9]), ("gemm", "bfloat16", "gemm_flops", [8e9])]
    write(store, build, "run-2", rows=rows)
    write(store, build, "run-3")  # it measured models and no calibration: no part of the history
    first, second = read_history(store, "fake")
    assert first.values[GEMM] == 2e9
    assert first.values[LAUNCH] == 1e-6
    assert second.values == {GEMM: 5e9, Series("gemm", "bfloat16", "gemm_flops"): 8e9}
    assert first.machine == second.machine == MACHINE
    assert read_history(store, "fake", without=["run-2"]) == [first]
    assert read_history(store, "another") == []


def history(values, machine=MACHINE, series=GEMM) -> list[Past]:
    """One past calibration for each value."""
    return [Past(f"run-{number}", machine, {series: value}) for number, value in enumerate(values)]


STEADY = (1.00e9, 1.01e9, 0.99e9, 1.02e9, 0.98e9, 1.00e9, 1.01e9)


@pytest.mark.parametrize(
    ("samples", "word"),
    [
        ([1.00e9, 1.01e9, 0.99e9] * 5, Word.AS_USUAL),
        ([0.97e9] * 15, Word.AS_USUAL),
        ([0.70e9, 0.71e9, 0.69e9] * 5, Word.SLOWER),
        ([1.40e9, 1.41e9, 1.39e9] * 5, Word.FASTER),
    ],
)
def test_a_rate_is_judged_by_the_noise_of_its_history(samples, word) -> None:
    """A change beyond the noise and the floor has its word; the interval holds the change."""
    found = compare(GEMM, summary("gemm_flops", *samples), MACHINE, history(STEADY))
    assert found.word is word
    assert found.n == len(STEADY)
    assert found.low < found.change < found.high
    assert found.usual == pytest.approx(1.0e9)


def test_a_longer_time_is_slower() -> None:
    """The direction is that of the metric."""
    past = history([1e-6, 1.01e-6, 0.99e-6, 1e-6], series=LAUNCH)
    found = compare(LAUNCH, summary("launch_s", *[2e-6] * 15), MACHINE, past)
    assert (found.word, round(found.change, 2)) == (Word.SLOWER, 1.0)
    assert compare(LAUNCH, summary("launch_s", *[0.5e-6] * 15), MACHINE, past).word is Word.FASTER


def test_a_history_of_equal_numbers_calls_nothing_below_the_floor() -> None:
    """Without any spread, the floor alone decides."""
    just_below = [1e9 * (1 - FLOOR) * 1.01] * 15
    just_above = [1e9 / (1 + FLOOR) * 0.99] * 15
    past = history([1e9] * 5)
    assert compare(GEMM, summary("gemm_flops", *just_below), MACHINE, past).word is Word.AS_USUAL
    assert compare(GEMM, summary("gemm_flops", *just_above), MACHINE, past).word is Word.SLOWER


def test_a_wild_history_says_that_it_cannot_tell() -> None:
    """Numbers that differ by factors call nothing usual and nothing slow."""
    past = history([1e9, 3e9, 0.5e9, 2e9])
    assert compare(GEMM, summary("gemm_flops", *[0.8e9] * 15), MACHINE, past).word is Word.TOO_NOISY


def test_two_calibrations_are_no_history() -> None:
    """Three are needed, of the same machine and number of threads."""
    now = summary("gemm_flops", *[1e9] * 15)
    found = compare(GEMM, now, MACHINE, history([1e9, 1e9]))
    assert (found.word, found.n) == (Word.NO_HISTORY, 2)
    for other in (replace(MACHINE, threads="1"), replace(MACHINE, runner_class="Other CPU")):
        assert compare(GEMM, now, MACHINE, history(STEADY, other)).word is Word.NO_HISTORY
    assert compare(LAUNCH, summary("launch_s", 1e-6), MACHINE, history(STEADY)).word is Word.NO_HISTORY


def test_another_torch_is_compared_and_said() -> None:
    """Too few calibrations of this torch: those of other versions stand in, marked."""
    other = history(STEADY, replace(MACHINE, torch="2.12.0"))
    now = summary("gemm_flops", *[0.5e9] * 15)
    found = compare(GEMM, now, MACHINE, other + history([0.5e9, 0.5e9]))
    assert (found.word, found.other_torch, found.n) == (Word.SLOWER, True, len(STEADY) + 2)
    own = compare(GEMM, now, MACHINE, other + history([0.5e9, 0.5e9, 0.5e9]))
    assert (own.word, own.other_torch) == (Word.AS_USUAL, False)


def test_what_is_absent_is_not_compared() -> None:
    """A reason is no number."""
    known = METRICS["gemm_flops"]
    absent = summarise(Measurement("gemm_flops", known.unit, absent="no product"), known)
    assert compare(GEMM, absent, MACHINE, history(STEADY)).word is Word.ABSENT


def test_false_alarms_are_rare_where_nothing_changed() -> None:
    """Of 2000 unchanged numbers beside histories of three to ten, at most 2 % are called slower."""
    import random

    draw = random.Random(7)
    alarms = trials = 0
    for number in range(2000):
        n = 3 + number % 8
        past = history([1e9 * math.exp(draw.gauss(0, 0.08)) for _ in range(n)])
        centre = 1e9 * math.exp(draw.gauss(0, 0.08))
        alarms += compare(GEMM, summary("gemm_flops", centre), MACHINE, past).word is Word.SLOWER
        trials += 1
    assert alarms / trials <= 0.02


def test_spread_estimates_the_standard_deviation() -> None:
    """On average over many small normal samples it is within a tenth of the truth, as the factors promise."""
    import random

    draw = random.Random(3)
    for n in (4, 6, 8, 11):
        mean = sum(spread([draw.gauss(0, 1) for _ in range(n)]) for _ in range(3000)) / 3000
        assert mean == pytest.approx(1.0, abs=0.1), n


def test_one_wild_value_does_not_hide_that_a_machine_became_slow() -> None:
    """With six values or more, a run beside other work is outvoted."""
    past = history([*STEADY, 0.2e9])
    assert compare(GEMM, summary("gemm_flops", *[0.7e9] * 15), MACHINE, past).word is Word.SLOWER

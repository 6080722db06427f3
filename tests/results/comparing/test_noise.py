"""The noise ledger over real A/B runs: spreads, false alarms, what history a judge gets, and suggestions."""

from __future__ import annotations

import math
import random
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[1]))

import stored_runs
from stored_runs import BEGIN, DAY, case, control_run, environment, launch, outcome, verdict

from torchgauge.records import Modifier
from torchgauge.records.comparison import Pair, Verdict
from torchgauge.results.comparing.noise import NoiseHistory, noise_history
from torchgauge.results.comparing.noise_ledger import AlarmRate, read_ledger
from torchgauge.results.comparing.noise_suggest import suggest, suggestions, tolerance
from torchgauge.results.comparing.policy import load_policy
from torchgauge.results.runner_class import runner_class

HERE = runner_class(environment())


def noise(seed: int, n: int, spread: float) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(0.0, spread) for _ in range(n)]


def test_the_spread_is_that_of_launches(store) -> None:
    """A/A ratios about 0, those of other pairs about their own mean; degrees of freedom are counted."""
    control_run(store, 0, [0.02, -0.02, 0.01])
    pair = Pair(case(), case())
    launches = [launch(pair, n, value) for n, value in enumerate((0.10, 0.12, 0.14))]
    stored_runs.comparison(store, "ab-x", launches, [verdict(pair, Verdict.REGRESSION)], [pair])
    (line,) = read_ledger(store, BEGIN).cases
    squares = 0.02**2 + 0.02**2 + 0.01**2 + 2 * 0.02**2
    latency, wall = line.spreads
    assert latency == ("latency", pytest.approx(math.sqrt(squares / 5)), 5)
    assert wall[0] == "latency_wall"
    assert (line.launches, line.controls, line.runner_class) == (3, 1, HERE)


@pytest.mark.parametrize("modifier", [Modifier.UNSTEADY, Modifier.DEGRADED, Modifier.OTHER_MODEL])
def test_a_launch_in_doubt_teaches_no_noise(store, modifier) -> None:
    """Its ratio is not that of the case."""
    pair = Pair(case(), case(), control=True)
    launches = [launch(pair, n, value) for n, value in enumerate((0.02, -0.02, 0.01))]
    launches.append(launch(pair, 3, 0.5, head=replace(outcome(pair.head), modifiers=(modifier,))))
    stored_runs.comparison(store, "ab-x", launches, [verdict(pair)], [pair])
    (line,) = read_ledger(store, BEGIN).cases
    assert line.spreads[0] == ("latency", pytest.approx(math.sqrt((2 * 0.02**2 + 0.01**2) / 3)), 3)


def test_history_is_a_prior_of_20_degrees_of_freedom_at_most(store) -> None:
    """What a judge gets: spread and worth of it, by case and metric, of its own class of runner."""
    for night in range(6):
        control_run(store, night, noise(night, 6, 0.02))
    pair = Pair(case(), case())
    history = noise_history(store, HERE, BEGIN + 6 * DAY)
    prior = history.prior(pair)
    assert prior is not None
    assert prior.spread == pytest.approx(0.02, rel=0.4)
    assert prior.df == 20.0
    assert history.prior(pair, "latency_wall") is not None
    assert history.prior(Pair(case("conv"), case("conv"))) is None
    assert noise_history(store, "another machine", BEGIN).prior(pair) is None
    assert NoiseHistory.empty().prior(pair) is None
    assert history.quarantined(pair) == ""


def test_memory_has_a_noise_of_its_own_in_history(store) -> None:
    """Peaks of head against head say how far equal code differs in memory."""
    control = Pair(case(), case(), control=True)
    peaks = [(112e6, 103e6), (103e6, 103e6), (112e6, 112e6), (103e6, 112e6), (112e6, 103e6), (103e6, 103e6)]
    launches = [
        launch(
            control,
            n,
            0.0,
            base=outcome(control.base, peak_memory=base),
            head=outcome(control.head, peak_memory=head),
        )
        for n, (base, head) in enumerate(peaks, 1)
    ]
    stored_runs.comparison(store, "ab-aa", launches, [verdict(control, Verdict.UNCHANGED)], [control])
    prior = noise_history(store, HERE, BEGIN + DAY).prior(control, "peak_memory")
    assert prior is not None
    assert prior.spread == pytest.approx(math.log(112 / 103) * math.sqrt(3 / 6))
    assert prior.df == 6


def test_classes_of_runner_are_kept_apart(store) -> None:
    """The same case on two machines has two lines."""
    fast = environment(cpu__model="Fast CPU")
    control_run(store, 0, [0.01, -0.01, 0.01])
    control_run(store, 1, [0.001, -0.001, 0.001], where=fast)
    classes = {line.runner_class: line.spread for line in read_ledger(store, BEGIN).cases}
    assert classes == {HERE: pytest.approx(0.01), runner_class(fast): pytest.approx(0.001)}


def test_packages_do_not_make_another_class(store) -> None:
    """A class is machine and device; torch and its libraries change every night."""
    assert runner_class(environment(torch="3.0", package__numpy="9")) == HERE
    assert runner_class(environment(cpu__cores_available=64)) != HERE
    assert "unknown" in runner_class(environment(cpu__model="", cpu__architecture=""))


def test_false_alarms_have_an_exact_interval(store) -> None:
    """Clopper and Pearson, over all time and over the last 30 days."""
    for night in range(40):
        alarm = night in (2, 38)
        control_run(store, night, [0.0, 0.001, -0.001], Verdict.REGRESSION if alarm else Verdict.UNCHANGED)
    control_run(store, 40, [0.0, 0.001, -0.001], Verdict.UNDECIDED)
    ledger = read_ledger(store, BEGIN + 41 * DAY)
    low, high = stats.beta.ppf(0.025, 2, 40), stats.beta.ppf(0.975, 3, 39)
    assert ledger.alarms == AlarmRate(
        2, 41, 40, pytest.approx(2 / 41), pytest.approx(low), pytest.approx(high)
    )
    assert (ledger.recent.alarms, ledger.recent.trials) == (1, 29)
    none = AlarmRate.of(0, 20, 20)
    assert (none.rate, none.low, none.high) == (0.0, 0.0, pytest.approx(1 - 0.025 ** (1 / 20)))


def test_any_change_on_unchanged_code_is_an_alarm_and_counts_once(store) -> None:
    """Improvements and broken statuses are alarms too; two metrics of one control are one trial."""
    head = case()
    pair = Pair(head, head, control=True)
    both = [
        verdict(pair, Verdict.IMPROVEMENT),
        verdict(pair, Verdict.REGRESSION, "peak_memory"),
        verdict(pair, Verdict.BROKEN, "status"),
    ]
    stored_runs.comparison(store, "ab-a", [launch(pair, 1, 0.0)], both, [pair])
    real = Pair(head, head)
    stored_runs.comparison(store, "ab-b", [launch(real, 1, 0.1)], [verdict(real, Verdict.REGRESSION)], [real])
    ledger = read_ledger(store, BEGIN)
    assert (ledger.alarms.alarms, ledger.alarms.trials) == (1, 1)
    assert ledger.comparisons == 2


def test_a_launch_without_an_estimate_says_nothing(store) -> None:
    """Too few ABBA blocks, or none at all, are no launch; the trial still counts."""
    head = case()
    pair = Pair(head, head, control=True)
    empty = [launch(pair, 1), launch(pair, 2, blocks=stored_runs.blocks(0.5, abba_blocks=1))]
    stored_runs.comparison(store, "ab-a", empty, [verdict(pair, Verdict.UNDECIDED)], [pair])
    (line,) = read_ledger(store, BEGIN).cases
    assert (line.spread, line.launches, line.controls) == (None, 0, 1)


def test_two_suspicions_that_do_not_repeat_put_a_case_into_quarantine(store) -> None:
    """They reach the judge as a reason."""
    pair = Pair(case(), case())
    for night in (0, 3):
        lone = verdict(pair, Verdict.UNDECIDED, confirmed=False)
        stored_runs.comparison(
            store, f"ab-{night}", [launch(pair, 1, 0.0)], [lone], [pair], at=BEGIN + night * DAY
        )
    history = noise_history(store, HERE, BEGIN + 4 * DAY)
    assert history.quarantined(pair) == "2 suspected changes within 30 days were not confirmed"
    (line,) = read_ledger(store, BEGIN + 4 * DAY).cases
    assert (line.contradicted, line.clean_nights) == (2, 0)


def test_quarantine_ends_by_itself(store) -> None:
    """A noisy case comes in, and is released after 14 clean nights, but not after 13."""
    for night in range(4):
        control_run(store, night, noise(night, 6, 0.15))
    pair = Pair(case(), case())
    assert "12 launches cannot detect a change of 5%" in noise_history(store, HERE, BEGIN).quarantined(pair)
    for night in range(4, 17):
        control_run(store, night, noise(night, 6, 0.004))
    (line,) = read_ledger(store, BEGIN).cases
    assert (bool(line.quarantine), line.clean_nights) == (True, 13)
    control_run(store, 17, noise(17, 6, 0.004))
    assert read_ledger(store, BEGIN).cases[0].quarantine == ""
    control_run(store, 18, noise(18, 6, 0.004))
    assert noise_history(store, HERE, BEGIN).quarantined(pair) == ""


def test_suggestions_are_a_policy_that_loads(store, tmp_path) -> None:
    """Only cases with ten launches of A/A, only tolerances above the default, each with its reason."""
    for night in range(2):
        control_run(store, night, noise(night, 6, 0.06))
        control_run(store, night, noise(night, 6, 0.002), of=case("conv"))
    control_run(store, 5, noise(9, 6, 0.3), of=case("few"))
    now = BEGIN + 9 * DAY
    ledger = read_ledger(store, now)
    path = tmp_path / "policy.yaml"
    path.write_text(suggest(ledger, now), encoding="utf-8")
    policy = load_policy(path, date(2026, 11, 21))
    noisy = next(line for line in ledger.cases if line.case_id == case().id)
    rule = policy.rule_of("toy", case().id)
    assert rule.tolerance == pytest.approx(3 * noisy.spread / 2, abs=1e-4)
    assert rule.tolerance >= 3 * noisy.spread / 2
    assert "12 launches on Test CPU" in rule.reason
    assert policy.rule_of("toy", case("conv").id).tolerance == 0.03
    assert policy.rule_of("toy", case("few").id).tolerance == 0.03
    assert "1 case has fewer than 10" in path.read_text(encoding="utf-8")
    assert [each["case_id"] for each in suggestions(ledger)] == sorted([case().id, case("conv").id])


def test_a_tolerance_is_three_standard_errors_and_never_below_the_default() -> None:
    """max(3 %, 3 * spread / sqrt(launches))."""
    assert tolerance(0.01) == 0.03
    assert tolerance(0.04, 4) == pytest.approx(0.06)
    assert tolerance(0.04, 9) == pytest.approx(0.04)


def test_a_suggestion_of_nothing_is_a_policy_too(store, tmp_path) -> None:
    """A quiet store gives a file that says so, and that loads."""
    path = tmp_path / "policy.yaml"
    path.write_text(suggest(read_ledger(store, BEGIN), BEGIN), encoding="utf-8")
    assert load_policy(path, date(2026, 11, 21)).layers == ()


def test_a_damaged_table_is_told(store) -> None:
    """A file that is no Parquet is no reason for a ledger that looks clean."""
    from torchgauge.errors import TorchgaugeError

    run = control_run(store, 0, [0.01, -0.01, 0.0])
    store.table_path("verdicts", run).write_bytes(b"PAR1 and nothing else")
    with pytest.raises(TorchgaugeError, match="cannot be read"):
        read_ledger(store, BEGIN)

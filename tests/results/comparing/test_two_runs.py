"""Comparing stored runs: one thing may differ, history makes the interval, and everything else is refused."""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from stored_runs import BEGIN, DAY, case, control_run, environment, result, run

from torchgauge.errors import UsageError
from torchgauge.records import Cause, Modifier, Realised, Status
from torchgauge.records.comparison import Verdict
from torchgauge.results.comparing.gate import gate
from torchgauge.results.comparing.noise import NoiseHistory, Prior
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.comparing.run_pairs import Difference, RunSide
from torchgauge.results.comparing.two_runs import compare_sides, history_of
from torchgauge.results.journal import RunState

NONE = NoiseHistory.empty()
SIDES = RunSide("a"), RunSide("b")
OLD, NEW = environment(torch="2.9.0"), environment(torch="2.10.0")


def history(spread: float = 0.005, df: float = 20.0, *cases) -> NoiseHistory:
    """A history that knows ``cases``, or the toy case."""
    known = cases or (case(),)
    return NoiseHistory({(each.id, "latency"): Prior(spread, df) for each in known})


def latency(verdicts, name: str = ""):
    """The one verdict on a step time, of the pair that holds ``name``."""
    (found,) = [each for each in verdicts if each.metric == "latency" and name in each.pair_id]
    return found


def two(store, base, head, **options):
    """Verdicts on two runs with one result or a list of them each."""
    as_list = [each if isinstance(each, list) else [each] for each in (base, head)]
    if options.pop("hours", "history" in options):  # what differs from hour to hour is known, and small
        for number, step in enumerate((-0.0005, 0.0, 0.0005)):
            steps = [result(each.case, 1e-3 * math.exp(step)) for each in as_list[0]]
            run(store, f"earlier{number}", steps, options.get("old", OLD), at=BEGIN - DAY)
    run(store, "a", as_list[0], options.pop("old", OLD))
    run(store, "b", as_list[1], options.pop("new", NEW), at=BEGIN + DAY)
    return compare_sides(store, *SIDES, Policy.default(), options.pop("history", NONE)).verdicts


def test_without_history_nothing_is_decided(store) -> None:
    """A ratio of two runs has the hour in it; its interval is shown for what it is."""
    found = latency(two(store, result(case(), 1e-3), result(case(), 2e-3)))
    assert found.verdict is Verdict.UNDECIDED
    assert found.ratio == pytest.approx(2.0)
    assert found.low < 2 < found.high
    assert (found.p, found.prior_spread) == (None, None)
    assert "no noise history of this case on this class of runner" in found.reason


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        (1.10, Verdict.REGRESSION),
        (0.90, Verdict.IMPROVEMENT),
        (1.00, Verdict.UNCHANGED),
        (1.03, Verdict.REGRESSION),
        (1.0125, Verdict.UNCHANGED),
    ],
)
def test_history_decides(store, ratio, said) -> None:
    """With a history of 0.5 % a change is told from none, and the verdict says what it rests on."""
    found = latency(two(store, result(case(), 1e-3), result(case(), ratio * 1e-3), history=history()))
    assert found.verdict is said
    assert found.ratio == pytest.approx(ratio)
    assert found.low < found.ratio < found.high
    assert (found.prior_spread, found.prior_df) == (0.005, 20.0)
    assert found.p_adjusted == pytest.approx(found.p)


def test_launches_of_one_hour_decide_nothing_between_two(store) -> None:
    """A/A launches alternate: a machine that was busy during one run is not in their spread."""
    sides = result(case(), 1e-3), result(case(), 3e-3)
    found = latency(two(store, *sides, history=history(), hours=False))
    assert found.verdict is Verdict.UNDECIDED
    assert "variation between hours" in found.reason
    assert found.low > 2.9


def test_a_wide_history_leaves_it_undecided(store) -> None:
    """The interval is that of Student's t on the history's degrees of freedom, and at least as wide."""
    found = latency(two(store, result(case(), 1e-3), result(case(), 1.1e-3), history=history(0.1, 5.0)))
    assert found.verdict is Verdict.UNDECIDED
    assert math.log(found.high / found.ratio) == pytest.approx(2.5706 * 0.1, rel=0.01)
    assert "the interval contains 1" in found.reason
    assert found.detectable > 0.3


def test_the_history_of_the_store_is_found(store) -> None:
    """Launches of A/A on this class of runner, and earlier runs of the same case; the wider one counts."""
    for night in range(4):
        control_run(store, night, [0.001, -0.001, 0.001])
    rng = random.Random(3)
    for number in range(8):
        run(store, f"n{number}", [result(case(), 1e-3 * math.exp(rng.gauss(0, 0.02)))], NEW)
    run(store, "a", [result(case(), 1e-3)], OLD)
    run(store, "b", [result(case(), 1.2e-3)], NEW, at=BEGIN + DAY)
    known = history_of(store, RunSide("b"), BEGIN + 5 * DAY)
    found = latency(compare_sides(store, *SIDES, Policy.default(), known).verdicts)
    assert found.prior_spread == pytest.approx(0.02 * math.sqrt(2), rel=0.6)
    assert found.prior_df == 7
    assert "earlier runs" in found.reason
    assert found.verdict is Verdict.REGRESSION


def test_the_runs_themselves_are_no_history(store) -> None:
    """A regression does not widen the interval that it is judged by."""
    found = two(store, result(case(), 1e-3), result(case(), 2e-3), old=NEW)
    assert latency(found).prior_spread is None


def test_many_cases_are_adjusted_together(store) -> None:
    """A p that is small alone is not among twenty: Benjamini and Hochberg over the run."""
    models = [f"m{number:02d}" for number in range(20)]
    base = [result(case(model), 1e-3) for model in models]
    head = [result(case(model), 1.0125e-3 if model == "m00" else 1e-3) for model in models]
    known = history(0.0055, 20.0, *map(case, models))
    found = latency(two(store, base, head, history=known), "m00")
    assert found.p < 0.05 < found.p_adjusted


def test_the_suite_has_a_geometric_mean_over_the_common_set(store) -> None:
    """It lists what dropped out, and has an interval where every case has a history."""
    models = ("a1", "b1", "c1", "d1")
    base = [result(case(model), 1e-3) for model in models]
    head = [result(case(model), 1.2e-3) for model in models[:2]]
    head.append(result(case("c1"), status=Status.ERROR))
    run(store, "a", base, OLD)
    run(store, "b", head, NEW)
    known = history(0.005, 20.0, *map(case, models))
    found = compare_sides(store, RunSide("a"), RunSide("b"), Policy.default(), known)
    suite = found.verdicts[-1]
    assert (suite.metric, suite.pair_key) == ("suite", "")
    assert suite.ratio == pytest.approx(1.2)
    assert suite.verdict is Verdict.REGRESSION
    assert suite.low < 1.2 < suite.high
    assert [name.partition(":")[0] for name in found.dropped] == ["toy/c1", "toy/d1"]
    without = compare_sides(store, *SIDES, Policy.default(), NONE).verdicts[-1]
    assert (without.verdict, without.low) == (Verdict.UNDECIDED, None)
    assert "no interval: 2 cases have no noise history" in without.reason


def test_a_case_that_one_side_lacks_has_a_row(store) -> None:
    """Nothing disappears: what is only on one side is not comparable, and says on which."""
    found = two(store, [result(case()), result(case("gone"))], [result(case()), result(case("new"))])
    gone, new = latency(found, "gone"), latency(found, "new")
    assert (gone.verdict, gone.head_case) == (Verdict.NOT_COMPARABLE, "")
    assert "second side does not have" in gone.reason
    assert (new.verdict, new.base_case, new.ratio) == (Verdict.NOT_COMPARABLE, "", None)
    assert "first side does not have" in new.reason


def test_unequal_workloads_are_refused(store) -> None:
    """Another batch is another workload: the reason names it, and there is no ratio."""
    found = latency(two(store, result(case(batch=8)), result(case(batch=16)), history=history()))
    assert (found.verdict, found.ratio) == (Verdict.NOT_COMPARABLE, None)
    assert found.reason == "the workloads differ: batch 8 and 16"


def test_unequal_realised_hashes_are_refused(store) -> None:
    """What was declared alike and built differently did not compute the same."""
    other = Realised("ffff0000ffff0000", 73, 0, "float32[1]")
    found = latency(two(store, result(case()), result(case(), realised=other), history=history()))
    assert (found.verdict, found.ratio) == (Verdict.NOT_COMPARABLE, None)
    assert "built different models: hashes 00ff00ff00ff00ff and ffff0000ffff0000" in found.reason


def test_a_status_that_changed_is_broken_whatever_the_timing_says(store) -> None:
    """And what fails on both sides is compared with nothing."""
    base = [
        result(case("broke")),
        result(case("dead"), status=Status.ERROR),
        result(case("back"), status=Status.OOM),
    ]
    head = [
        result(case("broke"), status=Status.CRASH, cause=Cause.SIGNAL, reason="signal 11"),
        result(case("dead"), status=Status.ERROR),
        result(case("back")),
    ]
    found = {(each.pair_id.split(":")[0], each.metric): each for each in two(store, base, head)}
    assert found["toy/broke", "status"].verdict is Verdict.BROKEN
    assert "crash (signal)" in found["toy/broke", "status"].reason
    assert found["toy/broke", "latency"].verdict is Verdict.NOT_COMPARABLE
    assert found["toy/back", "status"].verdict is Verdict.FIXED
    assert found["toy/dead", "latency"].reason.startswith("both fail")
    assert ("toy/dead", "status") not in found


def test_what_passed_and_is_skipped_now_is_broken(store) -> None:
    """A package that went away fails the gate; a declared skip, and one that stays, are not comparable."""
    gone, declared = (
        {"status": Status.SKIPPED, "cause": each} for each in (Cause.MISSING_PACKAGE, Cause.DECLARED)
    )
    base = [result(case("gone")), result(case("declared")), result(case("never"), **gone)]
    head = [
        result(case("gone"), reason="package 'x' is not installed", **gone),
        result(case("declared"), **declared),
        result(case("never"), **gone),
    ]
    verdicts = two(store, base, head)
    found = {(each.pair_id.split(":")[0], each.metric): each for each in verdicts}
    assert found["toy/gone", "status"].verdict is Verdict.BROKEN
    assert "skipped (missing_package)" in found["toy/gone", "status"].reason
    assert "package 'x' is not installed" in found["toy/gone", "status"].reason
    for name in ("toy/declared", "toy/never"):
        assert found[name, "latency"].verdict is Verdict.NOT_COMPARABLE
        assert (name, "status") not in found
    assert gate(verdicts).exit_code == 1


def test_a_missing_number_has_its_reason(store) -> None:
    """A clock that did not tick gives no zero and no ratio."""
    found = latency(two(store, result(case()), result(case(), None), history=history()))
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert found.reason == "no latency on the second side: the clock stood still"


def test_a_median_of_zero_has_no_ratio(store) -> None:
    """Zero seconds are no measurement."""
    found = latency(two(store, result(case()), result(case(), [0.0] * 10), history=history()))
    assert (found.verdict, found.ratio) == (Verdict.NOT_COMPARABLE, None)
    assert "have no ratio" in found.reason


def test_one_sample_has_no_interval(store) -> None:
    """It is shown as a ratio, and decides nothing even with history."""
    found = latency(two(store, result(case(), [1e-3]), result(case(), [2e-3]), history=history()))
    assert (found.verdict, found.low) == (Verdict.UNDECIDED, None)
    assert found.ratio == pytest.approx(2.0)


def test_other_metrics_are_compared_between_runs(store) -> None:
    """Graphs by their own rule; one run is one launch, which is too little for compile time and memory."""
    base = result(case(), metrics={"peak_memory": 1e9, "graph_breaks": 1.0, "compile_cold": 10.0})
    head = result(case(), metrics={"peak_memory": 2e9, "graph_breaks": 2.0, "compile_cold": 20.0})
    found = {each.metric: each.verdict for each in two(store, base, head)}
    assert found["peak_memory"] is Verdict.UNDECIDED
    assert found["graph_breaks"] is Verdict.REGRESSION
    assert found["compile_cold"] is Verdict.UNDECIDED


def test_devices_of_one_run_are_compared(store) -> None:
    """The same workload on two devices has a ratio with an interval, and the facts that differ are listed."""
    devices = [environment("cpu", torch="2.9.0+cpu"), environment("npu", torch="2.9.0")]
    results = [
        result(case(device="cpu"), 4e-3),
        result(case(device="npu"), 1e-3),
        result(case("x", device="npu")),
    ]
    run(store, "r", results, devices)
    sides = RunSide("r", device="cpu"), RunSide("r", device="npu")
    known = history(0.005, 20.0, case(device="cpu"), case(device="npu"))
    found = compare_sides(store, *sides, Policy.default(), known)
    pair = latency(found.verdicts, "linear")
    assert found.differs is Difference.DEVICE
    assert pair.ratio == pytest.approx(0.25)
    assert pair.verdict is Verdict.IMPROVEMENT
    assert found.facts["device.model"] == ("cpu", "npu")
    assert {each.metric for each in found.verdicts} == {"latency", "status"}
    assert latency(found.verdicts, "x:").verdict is Verdict.NOT_COMPARABLE


def test_device_and_torch_must_not_both_differ(store) -> None:
    """A ratio would not say which of them made it."""
    run(store, "r", [result(case(device="cpu"))], environment("cpu", torch="2.9.0"))
    run(store, "s", [result(case(device="npu"))], environment("npu", torch="2.10.0"))
    sides = RunSide("r", device="cpu"), RunSide("s", device="npu")
    (pair,) = compare_sides(store, *sides, Policy.default(), history()).verdicts
    assert (pair.verdict, pair.ratio) == (Verdict.NOT_COMPARABLE, None)
    assert "device and torch (2.9.0 and 2.10.0) both differ" in pair.reason


def test_machine_and_torch_must_not_both_differ(store) -> None:
    """Another machine alone is said; with another torch on top there is no ratio."""
    elsewhere = environment(torch="2.10.0", cpu__model="Other CPU")
    found = latency(two(store, result(case()), result(case()), new=elsewhere, history=history()))
    assert "machine and torch (2.9.0 and 2.10.0) both differ" in found.reason
    run(store, "c", [result(case())], environment(torch="2.9.0", cpu__model="Other CPU"))
    alone = compare_sides(store, RunSide("a"), RunSide("c"), Policy.default(), history())
    assert latency(alone.verdicts).ratio == pytest.approx(1.0)
    assert alone.facts == {"cpu.model": ("Test CPU", "Other CPU")}


def test_configurations_of_one_run_are_paired_by_round(store) -> None:
    """A machine that slows down during the run does so for both, and is not in the ratio."""
    slowing = [1e-3 * (1 + 0.1 * n) for n in range(10)]
    results = [result(case(), slowing), result(case(configuration="fast"), [each / 2 for each in slowing])]
    run(store, "r", results, OLD)
    sides = RunSide("r", configuration="eager"), RunSide("r", configuration="fast")
    found = latency(compare_sides(store, *sides, Policy.default(), NONE).verdicts)
    assert found.ratio == pytest.approx(0.5)
    assert found.high - found.low < 1e-6
    assert found.verdict is Verdict.UNDECIDED
    rng = random.Random(5)
    for number in range(6):
        factor = 0.5 * math.exp(rng.gauss(0, 0.01))
        results = [result(case(), 1e-3), result(case(configuration="fast"), 1e-3 * factor)]
        run(store, f"h{number}", results, OLD)
    known = latency(compare_sides(store, *sides, Policy.default(), NONE).verdicts)
    assert known.verdict is Verdict.IMPROVEMENT
    assert (known.prior_df, "earlier runs" in known.reason) == (5, True)


def test_what_a_configuration_cannot_do_is_not_broken(store) -> None:
    """Unsupported or skipped beside a pass has a row and no ratio; an error beside a pass is broken."""
    results = [result(case(model)) for model in ("none", "one", "two")]
    results += [
        result(case("none", "fast"), status=Status.SKIPPED, cause=Cause.MISSING_PACKAGE),
        result(case("one", "fast"), status=Status.UNSUPPORTED),
        result(case("two", "fast"), status=Status.ERROR),
    ]
    run(store, "r", results, OLD)
    sides = RunSide("r", configuration="eager"), RunSide("r", configuration="fast")
    found = compare_sides(store, *sides, Policy.default(), NONE).verdicts
    assert [(each.pair_id[:7], each.metric, each.verdict) for each in found] == [
        ("toy/non", "latency", Verdict.NOT_COMPARABLE),
        ("toy/one", "latency", Verdict.NOT_COMPARABLE),
        ("toy/two", "latency", Verdict.NOT_COMPARABLE),
        ("toy/two", "status", Verdict.BROKEN),
    ]
    assert found[0].pair_id.endswith(":fast@fake against eager")


def test_configuration_and_environment_must_not_both_differ(store) -> None:
    """Configurations of two runs are comparable where everything else is equal."""
    run(store, "a", [result(case())], OLD)
    run(store, "b", [result(case(configuration="fast"))], NEW)
    run(store, "c", [result(case(configuration="fast"))], OLD)
    sides = RunSide("a", configuration="eager"), RunSide("b", configuration="fast")
    (refused,) = compare_sides(store, *sides, Policy.default(), NONE).verdicts
    assert refused.reason == "configuration and environment both differ: torch.version"
    sides = sides[0], RunSide("c", configuration="fast")
    assert latency(compare_sides(store, *sides, Policy.default(), NONE).verdicts).ratio is not None


def test_a_configuration_that_changed_its_meaning_is_refused(store) -> None:
    """One name for two things is two differences."""
    from dataclasses import replace

    of = case(configuration="mine")
    other = replace(of, configuration=replace(of.configuration, threads=1))
    found = latency(two(store, result(of), result(other), history=history()))
    assert "the two sides define configuration mine differently" in found.reason


def test_quarantine_is_shown_and_triples_the_tolerance(store) -> None:
    """It still gates."""
    known = history()
    known.quarantine = {case().id: "noisy"}
    found = latency(two(store, result(case(), 1e-3), result(case(), 1.04e-3), history=known))
    assert (found.quarantined, found.tolerance) == (True, pytest.approx(0.09))
    assert found.verdict is Verdict.UNCHANGED


@pytest.mark.parametrize(
    ("sides", "words"),
    [
        ((RunSide("a"), RunSide("a")), "compared with itself"),
        ((RunSide("a", device="fake"), RunSide("b")), "--device-b is missing"),
        ((RunSide("a"), RunSide("b", configuration="eager")), "--config-a is missing"),
        ((RunSide("a", "cpu", "eager"), RunSide("b", "npu", "fast")), "device and configuration both differ"),
    ],
)
def test_nothing_or_two_things_that_differ_are_refused(store, sides, words) -> None:
    """Exactly one of workload, configuration and environment."""
    with pytest.raises(UsageError, match=words):
        compare_sides(store, *sides, Policy.default(), NONE)


def test_what_an_incomplete_run_did_not_measure_has_a_row(store) -> None:
    """A budget that ended says nothing of the model: not comparable, with the reason."""
    run(store, "a", [result(case()), result(case("conv"))], OLD)
    late = result(case("conv"), status=Status.NOT_RUN, cause=Cause.BUDGET, reason="the budget is spent")
    run(store, "b", [result(case()), late], NEW, state=RunState.OUT_OF_BUDGET)
    found = latency(compare_sides(store, *SIDES, Policy.default(), NONE).verdicts, "conv")
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert "not_run (budget)" in found.reason


def marked(seconds, *modifiers, of=None, **metrics):
    """A result of ``seconds`` with ``modifiers``, each with its reason."""
    facts = tuple((each.value, "so it says") for each in modifiers)
    return result(of or case(), seconds, modifiers=modifiers, facts=facts, metrics=metrics)


@pytest.mark.parametrize("modifier", [Modifier.OTHER_MODEL, Modifier.UNCHECKED, Modifier.UNSTEADY])
@pytest.mark.parametrize("side", [0, 1])
def test_what_is_in_doubt_has_no_ratio(store, modifier, side) -> None:
    """Of either side, however much faster the second is; the reason says which side and why."""
    sides = [result(case(), 2e-3), result(case(), 1e-3)]
    sides[side] = marked((2e-3, 1e-3)[side], modifier)
    found = latency(two(store, *sides, history=history()))
    assert (found.verdict, found.ratio) == (Verdict.NOT_COMPARABLE, None)
    name = ("base", "head")[side]
    assert found.reason == f"{name} is {modifier.value.replace('_', ' ')}: so it says"


def test_a_run_that_stopped_compiling_is_broken(store) -> None:
    """Fewer graphs and less time by another path are no improvement."""
    head = marked(1e-3, Modifier.DEGRADED, graph_count=0.0)
    found = two(store, result(case(), 2e-3, metrics={"graph_count": 3.0}), head, history=history())
    said = {each.metric: each.verdict for each in found if each.pair_key}
    assert said == {"latency": Verdict.NOT_COMPARABLE, "status": Verdict.BROKEN}


def test_a_degraded_configuration_has_no_speed_up(store) -> None:
    """It was never broken, and it is no speed-up of the configuration of that name."""
    eager, other = case(), case(configuration="inductor")
    run(store, "a", [result(eager, 2e-3), marked(1e-3, Modifier.DEGRADED, of=other)], OLD)
    sides = RunSide("a", configuration="eager"), RunSide("a", configuration="inductor")
    (found,) = compare_sides(store, *sides, Policy.default(), NONE).verdicts
    assert (found.verdict, found.ratio) == (Verdict.NOT_COMPARABLE, None)
    assert found.reason == "head is degraded: so it says"


def test_a_model_that_the_second_run_lacks_is_named_and_holds_up_the_gate(store) -> None:
    """It does not vanish: a row with the reason, and exit code 3."""
    both = [result(case()), result(case("conv"))]
    found = two(store, both, result(case()), history=history(0.005, 20.0, case(), case("conv")))
    gone = latency(found, "conv")
    assert (gone.verdict, gone.reason) == (Verdict.NOT_COMPARABLE, "the second side does not have the case")
    assert gate(found).exit_code == 3
    assert gate([each for each in found if each.pair_id != gone.pair_id]).exit_code == 0

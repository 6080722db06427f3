"""Claims over synthetic stores whose answers are known beforehand."""

from __future__ import annotations

import math
import random
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the runner imports test files by path

import claim_store as made
import stored_runs as stored

from torchgauge.errors import UsageError
from torchgauge.records import Cause, Modifier, Phase, Realised, Status
from torchgauge.results.claims.answer import Verdict, judge
from torchgauge.results.claims.answering import answer_claim
from torchgauge.results.claims.claim import Aggregation, Expect, Over, Select, Side
from torchgauge.results.claims.member import Number, quotient
from torchgauge.results.stats import Estimate, mean, wilson
from torchgauge.results.store import Store

FASTER = {f"m{number:02d}": 1.2 for number in range(40)}
SLOWER = {f"s{number:02d}": 0.8 for number in range(10)}


def ask(claim, path, lister=made.whatever_is_stored):
    """The one answer to ``claim``."""
    (answer,) = answer_claim(claim, [str(path)], lister).answers
    return answer


def where(torch="2.9.0", system="Linux"):
    """The environment of one side."""
    return stored.environment(torch=torch, host__system=system)


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_the_interval_of_a_share_is_wilsons(count, total, low, high):
    """The interval agrees with published values to their four digits."""
    assert wilson(count, total) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))


@pytest.mark.parametrize(
    ("threshold", "expect", "verdict"),
    [
        (0.5, Expect.AT_LEAST, Verdict.SUPPORTED),
        (0.975, Expect.AT_LEAST, Verdict.REFUTED),
        (0.8, Expect.AT_LEAST, Verdict.UNDECIDED),
        (0.975, Expect.AT_MOST, Verdict.SUPPORTED),
        (0.5, Expect.AT_MOST, Verdict.REFUTED),
    ],
)
def test_a_share_is_judged_by_its_whole_interval(tmp_path, threshold, expect, verdict):
    """40 of 50 models are faster: [0.670, 0.888] lies on one side of the threshold, or has it in it."""
    path = made.store_of(tmp_path / "store", made.speedups(FASTER | SLOWER))
    answer = ask(made.claim(threshold=threshold, expect=expect), path)
    assert answer.verdict is verdict
    assert (answer.estimate, answer.n) == (0.8, 50)
    assert (answer.low, answer.high) == pytest.approx(wilson(40, 50))


def test_undecided_models_widen_the_interval_and_are_counted(tmp_path):
    """A model whose interval has the threshold in it is open; its median enters the estimate."""
    edges = {f"e{number}": made.STRADDLING for number in range(10)}
    path = made.store_of(tmp_path / "store", made.speedups(FASTER | edges))
    answer = ask(made.claim(), path)
    assert answer.counts == {"yes": 40, "undecided": 10}
    assert answer.estimate == 1.0
    assert (answer.low, answer.high) == pytest.approx((wilson(40, 50)[0], wilson(50, 50)[1]))


def test_a_single_sample_decides_only_what_repeats_exactly(tmp_path):
    """One speed-up has no interval and leaves its model open; one count of graph breaks says it all."""
    one = [made.row(made.case("one"), {"speedup": [1.5], "graph_breaks": [0.0]})]
    path = made.store_of(tmp_path / "store", one)
    assert ask(made.claim(), path).counts == {"undecided": 1}
    assert ask(made.claim(condition="graph_breaks <= 0"), path).counts == {"yes": 1}


@pytest.mark.parametrize(("rounds", "state"), [(5, "undecided"), (6, "yes")])
def test_fewer_than_six_rounds_leave_their_model_open(tmp_path, rounds, state):
    """Three rounds of the slowest models once decided, with intervals that hold the truth in 73 %."""
    rows = [made.row(made.case("slow"), {"speedup": [1.5 + 0.01 * each for each in range(rounds)]})]
    answer = ask(made.claim(), made.store_of(tmp_path / "store", rows))
    assert answer.counts == {state: 1}
    assert [each.reason for each in answer.members] == (
        ["fewer than six samples have no interval"] if rounds < 6 else [""]
    )


def test_fewer_models_than_the_minimum_decide_nothing_and_it_is_said(tmp_path):
    """Fifty clear models are no answer where a hundred are asked for."""
    path = made.store_of(tmp_path / "store", made.speedups(FASTER | SLOWER))
    answer = ask(made.claim(minimum=100), path)
    assert answer.verdict is Verdict.UNDECIDED
    assert answer.why == (
        "50 of the 100 models that the claim requires; these models alone would give the verdict supported"
    )


def test_counts_sum_to_what_is_counted_whatever_the_models_did(tmp_path):
    """Each model has one state, in stores of random endings, for every aggregation."""
    rng = random.Random(8)
    endings = list(Status)
    for trial in range(6):
        rows = []
        for number in range(rng.randint(1, 30)):
            status = rng.choice(endings)
            value = rng.choice([1.2, 0.8, made.STRADDLING, None])
            degraded = (Modifier.DEGRADED,) if rng.random() < 0.2 else ()
            phase = Phase.DONE if status is Status.PASS else Phase.BUILD
            case = made.case(f"m{number}")
            rows.append(made.row(case, {"speedup": value}, status=status, phase=phase, modifiers=degraded))
        path = made.store_of(tmp_path / f"store{trial}", rows)
        names = [f"m{number}" for number in range(35)]
        for aggregation in (
            Aggregation.SHARE,
            Aggregation.PASS_RATE,
            Aggregation.GEOMEAN,
            Aggregation.MEDIAN,
        ):
            answer = ask(made.claim(aggregation), path, made.listing(*names))
            assert sum(answer.counts.values()) == answer.planned == 35
            clear = sum(answer.counts.get(name, 0) for name in ("yes", "no", "undecided", "measured"))
            assert answer.n == clear
            assert all(each.reason for each in answer.members if each.value is None and each.state != "yes")


def test_a_poser_does_not_choose_the_size(tmp_path):
    """The size in which most models passed is told by models that are what their names say."""
    marks = {"modifiers": (Modifier.OTHER_MODEL,), "facts": (("other_model", "36 built, 1,000 declared"),)}
    rows = [made.row(made.case("real", size="small"), {"speedup": 1.2})]
    rows += [made.row(made.case(name, size="full"), {"speedup": 9.9}, **marks) for name in ("real", "posing")]
    path = made.store_of(tmp_path / "store", rows)
    answer = ask(made.claim(Aggregation.PASS_RATE), path, made.listing("real", "posing"))
    assert answer.counts == {"yes": 1, "not measured": 1}


def test_another_model_than_the_named_one_is_not_counted(tmp_path):
    """A row whose model is not as its suite declares says nothing of the named one, passed or failed."""
    marks = {"modifiers": (Modifier.OTHER_MODEL,), "facts": (("other_model", "36 built, 1,000 declared"),)}
    rows = [
        made.row(made.case("real"), {"speedup": 1.2}),
        made.row(made.case("small"), {"speedup": 9.9}, **marks),
        made.row(made.case("broken"), status=Status.ERROR, reason="no kernel", **marks),
    ]
    path = made.store_of(tmp_path / "store", rows)
    lister = made.listing("real", "small", "broken")
    for claim in (made.claim(), made.claim(Aggregation.PASS_RATE)):
        answer = ask(claim, path, lister)
        assert answer.counts == {"yes": 1, "not comparable": 2}
        assert answer.n == 1
        reasons = {each.model: each.reason for each in answer.members}
        said = "the built model is not the named one: 36 built, 1,000 declared"
        assert (reasons["small"], reasons["broken"]) == (said, said)


def test_failures_are_counted_apart_with_their_reasons(tmp_path):
    """What failed, what was refused and what was never measured are three things, none of them slow."""
    rows = [
        made.row(made.case("fast"), {"speedup": 1.2}),
        made.row(made.case("boom"), status=Status.ERROR, reason="no kernel"),
        made.row(made.case("fallen"), {"speedup": 1.2}, modifiers=(Modifier.DEGRADED,)),
        made.row(
            made.case("bare"), status=Status.SKIPPED, cause=Cause.MISSING_PACKAGE, reason="pip install it"
        ),
        made.row(made.case("late"), status=Status.NOT_RUN, cause=Cause.BUDGET, reason="the budget is spent"),
        made.row(made.case("mute"), {"speedup": None}),
    ]
    path = made.store_of(tmp_path / "store", rows)
    lister = made.listing("fast", "boom", "fallen", "bare", "late", "mute", "never")
    answer = ask(made.claim(), path, lister)
    assert answer.counts == {"yes": 1, "failed": 2, "refused": 1, "not measured": 3}
    reasons = {each.model: each.reason for each in answer.members}
    assert reasons["boom"] == "error: no kernel"
    assert reasons["fallen"].startswith("degraded: ")
    assert reasons["bare"] == "skipped (missing_package): pip install it"
    assert reasons["late"] == "not_run (budget): the budget is spent"
    assert reasons["mute"] == "the clock stood still"
    assert reasons["never"] == "no row in the store"
    (command,) = answer.commands
    assert "--models zoo/late,zoo/never" in command
    assert "--config eager,inductor" in command


def test_a_pass_rate_divides_by_what_was_attempted_or_by_all(tmp_path):
    """Eight of ten attempted is 80 %, and 8 of 12 counted is two thirds."""
    rows = [made.row(made.case(f"m{number}"), {"speedup": 1.0}) for number in range(8)]
    rows += [made.row(made.case(f"b{number}"), status=Status.CRASH, reason="SIGSEGV") for number in range(2)]
    rows += [made.row(made.case("x"), status=Status.UNSUPPORTED, reason="no compiler")]
    path = made.store_of(tmp_path / "store", rows)
    lister = made.listing(*(f"m{n}" for n in range(8)), "b0", "b1", "x", "never")
    attempted = ask(made.claim(Aggregation.PASS_RATE), path, lister)
    assert (attempted.estimate, attempted.n) == (0.8, 10)
    assert attempted.counts == {"yes": 8, "no": 2, "refused": 1, "not measured": 1}
    planned = ask(made.claim(Aggregation.PASS_RATE, over=Over.PLANNED), path, lister)
    assert (planned.estimate, planned.n) == (pytest.approx(8 / 12), 12)


def test_a_geometric_mean_is_over_models_that_have_a_number(tmp_path):
    """The square root of 2 x 0.5 is 1; a failure is not a zero."""
    rows = made.speedups({"double": 2.0, "half": 0.5})
    rows.append(made.row(made.case("boom"), status=Status.ERROR, reason="no kernel"))
    path = made.store_of(tmp_path / "store", rows)
    answer = ask(made.claim(Aggregation.GEOMEAN), path)
    assert answer.estimate == pytest.approx(1.0)
    assert answer.n == 2
    assert answer.low < 1 < answer.high


def test_mean_and_median_of_compile_time_are_two_numbers(tmp_path):
    """Nine quick compilations and a slow one: the mean is 10.9 s and the median 1 s."""
    rows = [made.row(made.case(f"m{n}"), {"compile_cold": [1.0]}) for n in range(9)]
    rows.append(made.row(made.case("slow"), {"compile_cold": [100.0]}))
    path = made.store_of(tmp_path / "store", rows)
    asked = {"measure": "compile_cold", "expect": Expect.AT_MOST, "threshold": 120.0}
    found = ask(made.claim(Aggregation.MEAN, **asked), path)
    assert (found.estimate, found.verdict) == (pytest.approx(10.9), Verdict.SUPPORTED)
    assert found.low == 1.0
    assert ask(made.claim(Aggregation.MEDIAN, **asked), path).estimate == 1.0


def test_the_interval_of_a_mean_covers_it_about_as_often_as_it_says():
    """Over 60 sets of 40 draws the interval has the true mean in it for at least 80 %."""
    rng = random.Random(3)
    hits = 0
    for _ in range(60):
        found = mean([rng.expovariate(1.0) for _ in range(40)])
        hits += found.low <= 1.0 <= found.high
    assert 48 <= hits < 60


def test_memory_compression_is_eager_over_this_configuration(tmp_path):
    """Eager's peak of 300 over 200 bytes is 1.5; without eager there is no number, and it is said."""
    rows = [
        made.row(made.case("both", "eager"), {"peak_memory": [300.0]}),
        made.row(made.case("both"), {"peak_memory": [200.0]}),
        made.row(made.case("alone"), {"peak_memory": [200.0]}),
        made.row(made.case("sick", "eager"), status=Status.OOM, reason="full"),
        made.row(made.case("sick"), {"peak_memory": [200.0]}),
    ]
    path = made.store_of(tmp_path / "store", rows)
    answer = ask(made.claim(Aggregation.GEOMEAN, measure="memory_compression"), path)
    assert (answer.estimate, answer.n) == (pytest.approx(1.5), 1)
    reasons = {each.model: each.reason for each in answer.members}
    assert reasons["alone"] == "eager was not measured in the same run or environment"
    assert reasons["sick"] == "eager: oom"


def test_the_newest_row_counts_and_silence_does_not_replace_it(tmp_path):
    """A later number wins; a later row that says nothing leaves the earlier one in place."""
    path = tmp_path / "store"
    made.store_of(path, made.speedups({"a": 0.8, "b": 0.8}), run_id="run-1")
    made.store_of(path, made.speedups({"a": 1.2}), run_id="run-2", at=stored.BEGIN + stored.DAY)
    lost = made.row(made.case("b"), status=Status.INFRA, cause=Cause.KILLED, reason="killed")
    made.store_of(path, [lost], run_id="run-3", at=stored.BEGIN + 2 * stored.DAY)
    answer = ask(made.claim(), path)
    assert {each.model: each.state.value for each in answer.members} == {"a": "yes", "b": "no"}
    later = made.claim(select=Select(suites=("zoo",), since=stored.BEGIN + stored.DAY / 2))
    assert ask(later, path).counts == {"yes": 1, "not measured": 1}


def test_one_version_of_torch_answers_and_the_others_are_named(tmp_path):
    """The version measured last is asked; a glob asks another one, with or without its build."""
    path = tmp_path / "store"
    made.store_of(path, made.speedups({"a": 0.8, "b": 0.8}), where("2.8.0+cpu"), run_id="run-1")
    made.store_of(path, made.speedups({"a": 1.2}), where("2.9.0"), run_id="run-2", at=stored.BEGIN + 1)
    answer = ask(made.claim(), path, made.listing("a", "b"))
    assert answer.counts == {"yes": 1, "not measured": 1}
    assert answer.where[0].torch == ("2.9.0",)
    assert (
        "torch 2.9.0 was measured last and is used; also measured: 2.8.0+cpu. Try: --torch VERSION"
        in answer.notes
    )
    here = made.claim(select=Select(suites=("zoo",), system="Linux"))
    assert ask(here, path, made.listing("a", "b")).counts == {"yes": 1, "not measured": 1}
    older = made.claim(select=Select(suites=("zoo",), torch="2.8.0"))
    assert ask(older, path, made.listing("a", "b")).counts == {"no": 2}


def two_versions(path, base, head, **workload):
    """A store in which every model of ``base`` and ``head`` has a throughput with an older or newer torch."""
    for number, (torch, values) in enumerate((("2.8.0", base), ("2.9.0", head))):
        rows = [
            made.row(made.case(model, **workload), {"throughput": value}) for model, value in values.items()
        ]
        made.store_of(path, rows, where(torch), run_id=f"run-{number}", at=stored.BEGIN + number)
    return str(path)


def test_a_night_without_the_device_does_not_hide_the_nights_before(tmp_path):
    """A later version of torch of which every row says nothing is not the one that answers."""
    path = tmp_path / "store"
    made.store_of(path, made.speedups({"a": 1.2}), where("2.9.0"), run_id="run-1")
    lost = made.row(made.case("a"), status=Status.INFRA, cause=Cause.NO_DEVICE, reason="lost")
    made.store_of(path, [lost], where("2.10.0"), run_id="run-2", at=stored.BEGIN + 1)
    answer = ask(made.claim(), path)
    assert (answer.counts, answer.where[0].torch) == ({"yes": 1}, ("2.9.0",))
    silent = made.claim(select=Select(suites=("zoo",), torch="2.10*"))
    (member,) = ask(silent, path).members
    assert member.reason == "infra (no_device): lost"


def test_a_row_without_an_environment_has_that_of_its_run(tmp_path):
    """A case that never started belongs to the version of torch that its run had."""
    path = tmp_path / "store"
    store = Store.open(path, create=True)
    rows = [*made.speedups({"a": 1.2}), made.row(made.case("b"), status=Status.UNSUPPORTED, reason="no")]
    stored.run(store, "run-1", rows, where("2.9.0"))
    table = pq.read_table(store.table_path("results", "run-1"))
    for name in ("environment_id", "torch_version"):
        kept = pc.if_else(pc.equal(table["model"], "a"), table[name], None)
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), kept)
    pq.write_table(table, store.table_path("results", "run-1"))
    answer = ask(made.claim(select=Select(suites=("zoo",), torch="2.9*", system="Linux")), path)
    assert answer.counts == {"yes": 1, "refused": 1}


VERSIONS = {"base": Side(torch="previous"), "head": Side(torch="newest"), "measure": "throughput"}


def test_two_versions_are_compared_case_by_case(tmp_path):
    """Everything is 10 % faster with the newer torch, and the facts that differ are named."""
    base = {f"m{number}": 10.0 + number for number in range(12)}
    path = two_versions(tmp_path / "store", base, {name: 1.1 * value for name, value in base.items()})
    answer = ask(made.claim(Aggregation.RATIO, 1.0, **VERSIONS), path)
    assert answer.estimate == pytest.approx(1.1)
    assert answer.verdict is Verdict.SUPPORTED
    assert ("torch.version", "2.8.0", "2.9.0") in answer.differs
    assert [side.torch for side in answer.where] == [("2.8.0",), ("2.9.0",)]


def test_a_ratio_is_over_the_common_set_only(tmp_path):
    """Each shared model is 10 % slower, and the newer side has quick models more: the ratio is still 0.9.

    Means over each side's own models would say that it is faster (Simpson's paradox).
    """
    base = {"slow": 1.0, "slower": 2.0}
    head = {"slow": 0.9, "slower": 1.8, "quick": 1000.0, "quicker": 2000.0}
    own = [math.exp(sum(map(math.log, side.values())) / len(side)) for side in (base, head)]
    assert own[1] > own[0]
    path = two_versions(tmp_path / "store", base, head)
    answer = ask(made.claim(Aggregation.RATIO, 1.0, **VERSIONS), path)
    assert (answer.estimate, answer.n) == (pytest.approx(0.9), 2)
    assert answer.verdict is Verdict.REFUTED
    reasons = {each.model: each.reason for each in answer.members if each.reason}
    assert reasons == dict.fromkeys(
        ("quick", "quicker"), "base has no row of this model with the workload of head"
    )
    (command,) = answer.commands
    assert "--models zoo/quick,zoo/quicker" in command
    assert command.endswith("--python PYTHON_WITH_TORCH_2.8.0")


def test_other_workloads_and_other_models_under_one_name_are_no_pair(tmp_path):
    """Batch 1 against batch 8 has no ratio, and neither have two models that were built differently."""
    path = tmp_path / "store"
    for number, (torch, batch, built) in enumerate((("2.8.0", 1, "aa"), ("2.9.0", 8, "bb"))):
        same = made.row(made.case("batch", batch=batch), {"throughput": 1.0})
        other = made.row(made.case("built"), {"throughput": 1.0})
        other = replace(other, realised=Realised(built * 8, 72, 0, "float32[1]"))
        made.store_of(path, [same, other], where(torch), run_id=f"run-{number}", at=stored.BEGIN + number)
    answer = ask(made.claim(Aggregation.RATIO, 1.0, **VERSIONS), path)
    assert answer.verdict is Verdict.NOT_MEASURED
    assert answer.counts == {"not comparable": 1, "not measured": 1}


def test_two_systems_with_one_torch_are_two_sides(tmp_path):
    """The same case on another system has the same key and is still another side."""
    path = tmp_path / "store"
    for number, (system, value) in enumerate((("Linux", 2.0), ("Windows", 1.0))):
        rows = [made.row(made.case(f"m{n}"), {"throughput": value * (n + 1)}) for n in range(5)]
        made.store_of(path, rows, where(system=system), run_id=f"run-{number}", at=stored.BEGIN + number)
    sides = {"base": Side(system="Linux"), "head": Side(system="Windows"), "measure": "throughput"}
    answer = ask(made.claim(Aggregation.RATIO, 0.9, **sides), path)
    assert (answer.estimate, answer.verdict) == (pytest.approx(0.5), Verdict.REFUTED)
    assert [side.systems for side in answer.where] == [("Linux",), ("Windows",)]
    shared = {**sides, "head": Side(system="L*")}
    with pytest.raises(UsageError, match="select the same rows"):
        ask(made.claim(Aggregation.RATIO, 0.9, **shared), path)


def test_two_systems_are_compared_in_the_newest_torch_that_both_have(tmp_path):
    """A newer torch on one of them is no part of the ratio, whatever build it is; it is named."""
    path = tmp_path / "store"
    rows = (("Linux", "2.12.0+cpu", 2.0), ("Windows", "2.12.0", 1.0), ("Linux", "2.13.0+cpu", 8.0))
    for number, (system, torch, value) in enumerate(rows):
        found = [made.row(made.case(f"m{n}"), {"throughput": value * (n + 1)}) for n in range(5)]
        there = where(torch, system=system)
        made.store_of(path, found, there, run_id=f"run-{number}", at=stored.BEGIN + number)
    sides = {"base": Side(system="Linux"), "head": Side(system="Windows"), "measure": "throughput"}
    answer = ask(made.claim(Aggregation.RATIO, 0.9, **sides), path)
    assert answer.estimate == pytest.approx(0.5)
    assert [side.torch for side in answer.where] == [("2.12.0+cpu",), ("2.12.0",)]
    assert any("torch 2.12.0 is the newest that base and head share" in note for note in answer.notes)


def test_two_systems_without_a_torch_in_common_say_so(tmp_path):
    """The ratio then has both differences in it."""
    path = tmp_path / "store"
    for number, (system, torch) in enumerate((("Linux", "2.13.0"), ("Windows", "2.12.0"))):
        found = [made.row(made.case(f"m{n}"), {"throughput": 1.0 + n}) for n in range(5)]
        there = where(torch, system=system)
        made.store_of(path, found, there, run_id=f"run-{number}", at=stored.BEGIN + number)
    sides = {"base": Side(system="Linux"), "head": Side(system="Windows"), "measure": "throughput"}
    answer = ask(made.claim(Aggregation.RATIO, 0.9, **sides), path)
    assert "base and head have no version of torch in common" in answer.notes


def test_two_configurations_are_two_sides(tmp_path):
    """A configuration against another one, within one environment."""
    rows = []
    for number in range(5):
        rows.append(made.row(made.case(f"m{number}", "inductor"), {"latency": 1.0}))
        rows.append(made.row(made.case(f"m{number}", "eager"), {"latency": 2.0}))
    path = made.store_of(tmp_path / "store", rows)
    sides = {"base": Side(configuration="eager"), "head": Side(configuration="inductor")}
    answer = ask(made.claim(Aggregation.RATIO, 0.6, measure="latency", expect=Expect.AT_MOST, **sides), path)
    assert (answer.estimate, answer.verdict) == (pytest.approx(0.5), Verdict.SUPPORTED)
    share = ask(made.claim(condition="latency < 1", threshold=0.5, **sides), path)
    assert share.counts == {"yes": 5}


def test_devices_have_answers_of_their_own_and_one_over_what_they_share(tmp_path):
    """Device b measured the easy half only: its own mean is not comparable, the common one is."""
    rows = made.speedups({"easy": 2.0, "hard": 0.5}, device="a") + made.speedups({"easy": 2.0}, device="b")
    path = made.store_of(tmp_path / "store", rows, [stored.environment("a"), stored.environment("b")])
    found = answer_claim(made.claim(Aggregation.GEOMEAN), [path], made.whatever_is_stored).answers
    assert [(each.device, each.n) for each in found] == [("a", 2), ("b", 1)]
    assert [each.estimate for each in found] == [pytest.approx(1.0), pytest.approx(2.0)]
    assert [(each.common.estimate, each.common.n) for each in found] == [(pytest.approx(2.0), 1)] * 2


def test_a_device_that_was_never_measured_is_answered_too(tmp_path):
    """A device that is asked for and has no row is not measured, beside one that is."""
    path = made.store_of(tmp_path / "store", made.speedups({"a": 1.2}))
    claim = made.claim(select=Select(suites=("zoo",), devices=("fake", "other")))
    found = answer_claim(claim, [path], made.whatever_is_stored)
    assert {each.device: each.verdict.value for each in found.answers} == {
        "fake": "undecided",
        "other": "not measured",
    }
    assert found.exit_code == 3


def test_small_models_do_not_pose_as_full_ones(tmp_path):
    """One size counts: the one that is asked for, or that most models passed in; the other is named."""
    rows = made.speedups({"a": 1.2, "b": 1.2}) + made.speedups({"a": 0.8}, size="full")
    path = made.store_of(tmp_path / "store", rows)
    answer = ask(made.claim(), path)
    assert answer.counts == {"yes": 2}
    assert "1 model has rows of size full, which are not counted. Try: --size full" in answer.notes
    full = ask(made.claim(select=Select(suites=("zoo",), size="full")), path, made.listing("a", "b"))
    assert full.counts == {"no": 1, "not measured": 1}
    assert "--size full" in full.commands[0]


def test_a_run_that_cannot_be_read_is_named(tmp_path):
    """A damaged table leaves its run out, and the answer says so."""
    path = tmp_path / "store"
    made.store_of(path, made.speedups({"a": 1.2}))
    made.store_of(path, made.speedups({"b": 1.2}), run_id="run-2", at=stored.BEGIN + 1)
    Store.open(path).table_path("results", "run-2").write_bytes(b"no parquet")
    found = answer_claim(made.claim(), [str(path)], made.listing("a", "b"))
    assert found.answers[0].counts == {"yes": 1, "not measured": 1}
    assert any("run-2" in note for note in found.notes)


@pytest.mark.parametrize(
    ("above", "below", "ratio"),
    [
        (Number(2.0, 1.9, 2.1), Number(1.0, 0.9, 1.1), (2.0, 1.795, 2.246)),
        (Number(2.0, None, None), Number(1.0, 0.9, 1.1), (2.0, None, None)),
    ],
)
def test_a_quotient_has_the_interval_of_both(above, below, ratio):
    """Halves that face each other add in squares on logarithms; a side without one leaves none."""
    found = quotient(above, below)
    assert found.median == ratio[0]
    assert found.low == (ratio[1] and pytest.approx(ratio[1], abs=0.001))
    assert found.high == (ratio[2] and pytest.approx(ratio[2], abs=0.001))


def test_what_is_not_positive_has_no_quotient():
    """A zero is a reason, never an infinite ratio."""
    assert quotient(Number(1.0, None, None), Number(0.0, None, None)).median is None


def test_one_model_has_no_interval_and_decides_nothing():
    """An estimate alone is undecided even far from the threshold."""
    verdict, why = judge(
        Estimate(9.0, None, None, 1, 0.95, "too-few"), made.claim(Aggregation.GEOMEAN).question
    )
    assert (verdict, why) == (Verdict.UNDECIDED, "an interval requires more than one model")

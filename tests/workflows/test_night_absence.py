"""A night that measured less than the one before it is not green, and one that measured nothing never is."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import stored_runs
from stored_runs import BEGIN, DAY, case, result

from torchgauge import registry
from torchgauge.records import Cause, Modifier, Result, Status
from torchgauge.results.comparing.policy import Policy, load_policy
from torchgauge.results.store import Store
from torchgauge.results.trends.trend_findings import read_findings
from torchgauge.workflows.campaign import CampaignPlan
from torchgauge.workflows.gate import NightlyGate, nightly_gate
from torchgauge.workflows.gate_verdict import GateVerdict
from torchgauge.workflows.issues import Do, plan_issues, wanted_issues
from torchgauge.workflows.night_absence import UNSEEN_NIGHTS
from torchgauge.workflows.night_findings import NightOf, keep_changes, night_findings
from torchgauge.workflows.open_suspicions import open_in
from torchgauge.workflows.planned_nights import keep_plan

MODELS = ("linear", "conv", "norm", "attention")
ENDINGS = {
    "skipped": {
        "status": Status.SKIPPED,
        "cause": Cause.MISSING_PACKAGE,
        "reason": "no timm",
    },
    "unsupported": {"status": Status.UNSUPPORTED, "reason": "no float64 on this device"},
    "degraded": {"modifiers": (Modifier.DEGRADED,), "facts": (("degraded", "nothing was captured"),)},
    "unchecked": {"modifiers": (Modifier.UNCHECKED,), "facts": (("unchecked", "--no-accuracy"),)},
}
UNSTEADY = {"modifiers": (Modifier.UNSTEADY,), "facts": (("unsteady", "its interval is 90% wide"),)}


def row(model: str, ended: str = "", **changes) -> Result:
    """A row of ``model`` that passed, or ended as :data:`ENDINGS` says."""
    told = {**ENDINGS.get(ended, {}), **changes}
    return result(case(model), None if "status" in told else 1e-3, **told)


def gated_pools(
    store: Store, number: int, pools: dict[str, Sequence[Result]], left_out: Sequence[str] = ()
) -> NightlyGate:
    """The gate over a night in which each pool of a campaign has rows."""
    at, night = BEGIN + number * DAY, f"nightly-{number}"
    runs = [f"{night}-{pool}" for pool in pools]
    for run, (pool, rows) in zip(runs, pools.items(), strict=True):
        stored_runs.run(store, run, rows, at=at)
        said = {"pool": pool, "campaign_id": night}
        (store.run(run).path / "provenance.json").write_text(json.dumps(said))
    planned = {pool: frozenset(row.case_id for row in rows) for pool, rows in pools.items()}
    of = NightOf(night, "2026-05-28", at - 60, planned, tuple(left_out))
    return nightly_gate(night_findings(store, runs, of))


def gated(
    store: Store,
    number: int,
    rows: Sequence[Result],
    policy: Policy | None = None,
    skipped: Sequence[str] = (),
) -> NightlyGate:
    """The gate over a night that has ``rows``; its suites declare not to run the models ``skipped``."""
    run, at = f"night-{number}", BEGIN + number * DAY
    stored_runs.run(store, run, rows, at=at)
    of = NightOf(run, "2026-05-28", at - 60, {}, skipped=frozenset(case(model).id for model in skipped))
    return nightly_gate(night_findings(store, [run], of, (), policy), policy)


@pytest.fixture
def store(tmp_path) -> Store:
    """A store whose first night measured four cases."""
    found = Store.open(tmp_path / "store", create=True)
    assert gated(found, 0, [row(model) for model in MODELS]).verdict is GateVerdict.PASS
    return found


@pytest.mark.parametrize("ended", ENDINGS)
def test_a_night_without_a_single_measured_case_is_never_green(tmp_path, store, ended) -> None:
    """Neither the first night of a pool, nor one after a night that measured everything."""
    rows = [row(model, ended) for model in MODELS]
    first = gated(Store.open(tmp_path / "new", create=True), 0, rows)
    assert (first.verdict, first.exit_code) == (GateVerdict.INCOMPLETE, 3)
    assert first.reasons == (f"incomplete: none of 4 cases was measured (4 {ended})",)
    later = gated(store, 1, rows)
    assert later.exit_code == (1 if ended == "degraded" else 3)
    assert f"measured before, {ended} now: 4 cases" in later.reasons


@pytest.mark.parametrize("ended", ENDINGS)
def test_what_was_measured_before_and_is_not_is_a_finding_until_it_is(store, ended) -> None:
    """Every night, with an issue of its own, which is closed by the night that measures it again."""
    rows = [row("linear", ended), *map(row, MODELS[1:])]
    for number in (1, 2, 3):
        found = gated(store, number, rows)
        assert found.exit_code == (1 if ended == "degraded" else 3)
        assert found.reasons == (f"measured before, {ended} now: 1 case",)
    (wanted,) = wanted_issues(found.findings)
    assert wanted.title.startswith(f"{ended} in 1 case: measured before, {ended} now")
    assert [step.do for step in plan_issues(found.findings, []).steps] == [Do.OPEN]
    assert case("linear").key not in found.findings.passed
    assert gated(store, 4, [row(model) for model in MODELS]).verdict is GateVerdict.PASS


def test_half_of_the_cases_of_the_night_before(store) -> None:
    """Cases that no campaign plans any more are a finding of the night that drops them."""
    half = [row(model) for model in MODELS[:2]]
    found = gated(store, 1, half)
    assert (found.verdict, found.exit_code) == (GateVerdict.INCOMPLETE, 3)
    assert found.reasons == ("measured before, not planned now: 2 cases",)
    assert {each.case_id for each in found.findings.lost[0].cases} == {case(m).id for m in MODELS[2:]}
    assert gated(store, 2, half).verdict is GateVerdict.PASS


def test_a_planned_case_without_a_row_is_a_gap_and_not_unplanned(store) -> None:
    """A shard that did not come is said once, by the collection."""
    stored_runs.run(store, "night-1", [row(model) for model in MODELS[:2]], at=BEGIN + DAY)
    planned = {"": frozenset(case(model).id for model in MODELS)}
    of = NightOf("night-1", "2026-05-28", BEGIN + DAY - 60, planned)
    found = nightly_gate(night_findings(store, ["night-1"], of, ["shard 2: no valid result set"]))
    assert found.reasons == ("incomplete: shard 2: no valid result set",)


def test_what_a_data_file_declares_is_no_finding(store) -> None:
    """An expectation, or a skip that the suite's own file declares."""
    declared = {"status": Status.SKIPPED, "cause": Cause.DECLARED, "reason": "needs 80 GB"}
    rows = [
        row("linear", "unsupported", expected=Status.UNSUPPORTED),
        result(case("conv"), None, **declared),
        row("norm"),
        row("attention"),
    ]
    assert gated(store, 1, rows, skipped=["conv"]).verdict is GateVerdict.PASS


def test_a_cause_of_its_own_excuses_no_row(store) -> None:
    """That a data file declares the skip is the campaign's to say."""
    declared = {"status": Status.SKIPPED, "cause": Cause.DECLARED, "reason": "needs 80 GB"}
    rows = [result(case("conv"), None, **declared), *map(row, ("linear", "norm", "attention"))]
    assert gated(store, 1, rows).reasons == ("measured before, skipped now: 1 case",)


@pytest.mark.parametrize("action", ["ignore", "report"])
def test_the_policy_acknowledges_what_is_missing(tmp_path, store, action) -> None:
    """It is shown, and not red."""
    policy = tmp_path / "policy.yaml"
    entry = f"{{metrics: {{status: {{action: {action}}}}}, reason: its package is being rebuilt}}"
    policy.write_text(f"patterns:\n  toy/linear:*: {entry}\n")
    rows = [row("linear", "skipped"), *map(row, MODELS[1:])]
    found = gated(store, 1, rows, load_policy(policy, date(2026, 5, 28)))
    assert (found.verdict, len(found.findings.lost)) == (GateVerdict.PASS, 1)


def test_a_case_of_another_key_and_the_same_id_is_missed(store) -> None:
    """A suite that changed its data is no way for a case to leave unseen."""
    skipped = row("linear", "skipped")
    other = replace(skipped, case=replace(skipped.case, workload=replace(skipped.case.workload, seed=7)))
    assert (other.case_id, other.case.key == skipped.case.key) == (skipped.case_id, False)
    found = gated(store, 1, [other, *map(row, MODELS[1:])])
    assert (found.verdict, found.reasons) == (
        GateVerdict.INCOMPLETE,
        ("measured before, skipped now: 1 case",),
    )


def test_a_pass_without_the_step_times_that_it_had_is_a_gap(store) -> None:
    """It was checked and not timed: nobody would see it become slower."""
    found = gated(store, 1, [result(case("linear"), None), *map(row, MODELS[1:])])
    assert found.verdict is GateVerdict.INCOMPLETE
    (reason,) = found.reasons
    assert reason.startswith("incomplete: 1 passing case has no latency")


def test_a_case_that_never_was_measured_is_not_missed(store) -> None:
    """What a device has never supported stays as green as it was."""
    rows = [*map(row, MODELS), result(case("sum"), None, status=Status.UNSUPPORTED)]
    assert gated(store, 1, rows).verdict is GateVerdict.PASS
    assert gated(store, 2, rows).verdict is GateVerdict.PASS


def test_a_night_of_unsteady_step_times_alone_compared_nothing_and_is_not_green(store) -> None:
    """Every such night, until one step time can be compared again; a row without one is no such time."""
    rows = [row(model, **UNSTEADY) for model in MODELS]
    other = result(case("sum"), None)
    for number in (1, 2):
        found = gated(store, number, [*rows, other])
        assert (found.verdict, found.exit_code) == (GateVerdict.INCOMPLETE, 3)
        told = "incomplete: no step time was compared: all 4 are `unsteady`, 4 were steady before"
        assert found.reasons == (told,)
    assert gated(store, 3, [*rows[:3], row(MODELS[3]), other]).verdict is GateVerdict.PASS


@pytest.fixture
def _words(tmp_path, monkeypatch) -> Iterator[None]:
    """A package with a scenario that is measured for its throughput and has no latency."""
    (tmp_path / "words.py").write_text(
        "from torchgauge.harness.scenarios.scenario import ScenarioDescriptor\n"
        "WORDS = ScenarioDescriptor('words', 'for tests only', 'words', ('forward',), 'throughput')\n"
    )
    (tmp_path / "words-1.0.dist-info").mkdir()
    for name, text in {
        "METADATA": "Metadata-Version: 2.1\nName: words\nVersion: 1.0\n",
        "entry_points.txt": "[torchgauge.scenarios]\nwords = words:WORDS\n",
    }.items():
        (tmp_path / "words-1.0.dist-info" / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    registry._installed.cache_clear()
    yield
    registry._installed.cache_clear()


@pytest.mark.usefixtures("_words")
def test_a_scenario_that_is_measured_for_another_metric_is_looked_for_by_that(tmp_path) -> None:
    """Its cases have no latency: a night in which nothing of it could be compared is not green for that."""
    fresh = Store.open(tmp_path / "store", create=True)

    def rows(**changes) -> list[Result]:
        said = [case(model, mode="words") for model in MODELS]
        return [result(each, None, metrics={"throughput": 9.0}, **changes) for each in said]

    assert gated(fresh, 0, rows()).verdict is GateVerdict.PASS
    found = gated(fresh, 1, rows(**UNSTEADY))
    told = "incomplete: no step time was compared: all 4 are `unsteady`, 4 were steady before"
    assert (found.verdict, found.reasons) == (GateVerdict.INCOMPLETE, (told,))


def words_row(model: str, throughput: float | None, mode: str = "words") -> Result:
    """A pass of ``model`` without a latency; with a throughput, or without one too."""
    found = {} if throughput is None else {"throughput": throughput}
    return result(case(model, mode=mode), None, metrics=found)


@pytest.mark.usefixtures("_words")
def test_a_pass_without_what_its_scenario_is_measured_for_is_no_green_night(tmp_path) -> None:
    """Where a night before had it; what another scenario has beside its latency is not asked for."""
    fresh = Store.open(tmp_path / "store", create=True)
    beside = [result(case(model), 1e-3, metrics={"throughput": 9.0}) for model in MODELS]
    had = [words_row(model, 9.0) for model in MODELS]
    assert gated(fresh, 0, [*had, *beside]).verdict is GateVerdict.PASS
    lost = [words_row(MODELS[0], None), *had[1:]]
    found = gated(fresh, 1, [*lost, *(result(case(model), 1e-3) for model in MODELS)])
    told = "incomplete: 1 passing case has no throughput, unlike earlier: "
    assert (found.verdict, found.reasons) == (GateVerdict.INCOMPLETE, (told + lost[0].case_id,))


@pytest.mark.usefixtures("_words")
def test_a_night_sees_a_change_of_what_a_scenario_is_measured_for(tmp_path) -> None:
    """Of that scenario alone; it is measured again, and the dashboard is told of it and of no other one."""
    fresh = Store.open(tmp_path / "store", create=True)
    for number in range(20):
        level = (9.0 if number < 14 else 7.0) * (1 + 0.003 * (number % 3))
        rows = [words_row("linear", level), words_row("conv", level, mode="inference")]
        if number < 19:
            stored_runs.run(fresh, f"night-{number}", rows, at=BEGIN + number * DAY)
        else:
            found = gated(fresh, number, rows)
    (change,) = found.findings.changes
    names = [each.case_id for each in change.cases]
    assert (found.verdict, change.metric, names) == (GateVerdict.UNDECIDED, "throughput", [rows[0].case_id])
    assert [each.series.case_id for each in open_in(fresh, Policy.default())] == names
    keep_changes(fresh, BEGIN)
    kept = read_findings(fresh)
    assert kept is not None
    assert {(each.metric, each.case_id) for each in kept.standing()} == {("throughput", names[0])}


def test_unsteady_step_times_are_no_finding_where_none_was_ever_compared(tmp_path) -> None:
    """The first night of a pool has nothing that it could compare."""
    fresh = Store.open(tmp_path / "new", create=True)
    rows = [row(model, **UNSTEADY) for model in MODELS]
    assert [gated(fresh, number, rows).verdict for number in (0, 1)] == [GateVerdict.PASS] * 2


def test_a_case_that_is_unsteady_night_after_night_is_a_finding(store) -> None:
    """Chance marks a case five nights in a row once in thousands; one steady time ends it."""
    shaky = [row(MODELS[0], **UNSTEADY), *map(row, MODELS[1:])]
    for number in range(1, UNSEEN_NIGHTS):
        assert gated(store, number, shaky).verdict is GateVerdict.PASS
    for number in (UNSEEN_NIGHTS, UNSEEN_NIGHTS + 1):
        found = gated(store, number, shaky)
        assert (found.verdict, found.exit_code) == (GateVerdict.UNDECIDED, 3)
        assert found.reasons == ("measured before, unsteady now: 1 case",)
        assert "in doubt in at least the last 5 nightly runs" in found.findings.lost[0].title
    assert gated(store, UNSEEN_NIGHTS + 2, [row(model) for model in MODELS]).verdict is GateVerdict.PASS
    assert gated(store, UNSEEN_NIGHTS + 3, shaky).verdict is GateVerdict.PASS


def test_a_pool_that_was_empty_before_it_went_is_missed(tmp_path) -> None:
    """A night that planned nothing for it told of it: the next one, without it, is the first to lack it."""
    found = Store.open(tmp_path / "pools", create=True)
    rows = [row(model) for model in MODELS]
    gated_pools(found, 0, {"cpu": rows, "npu": rows[:3]})
    gated_pools(found, 1, {"cpu": rows})
    keep_plan(found, CampaignPlan("nightly-1", 1.0, "2026-05-29", "o/n", "a" * 40, "", "", (), (), ("npu",)))
    gone = gated_pools(found, 2, {"cpu": rows})
    assert gone.reasons == ("measured before, not planned now: 3 cases",)
    assert gated_pools(found, 3, {"cpu": rows}).verdict is GateVerdict.PASS


def test_a_pool_that_is_gone_takes_none_of_its_cases_along_unseen(tmp_path) -> None:
    """Dropped or renamed: a finding of one night. A night that is started for one pool asks for no other."""
    found = Store.open(tmp_path / "pools", create=True)
    rows = [row(model) for model in MODELS]
    assert gated_pools(found, 0, {"cpu": rows, "npu": rows[:3]}).verdict is GateVerdict.PASS
    assert gated_pools(found, 1, {"cpu": rows}, left_out=["npu"]).verdict is GateVerdict.PASS
    assert gated_pools(found, 2, {"cpu": rows, "npu": rows[:3]}).verdict is GateVerdict.PASS
    gone = gated_pools(found, 3, {"cpu": rows, "ascend": rows[:3]})
    assert (gone.verdict, gone.exit_code) == (GateVerdict.INCOMPLETE, 3)
    assert gone.reasons == ("measured before, not planned now: 3 cases",)
    assert {each.run_id for each in gone.findings.lost[0].cases} == {"nightly-2-npu"}
    assert gated_pools(found, 4, {"cpu": rows, "ascend": rows[:3]}).verdict is GateVerdict.PASS

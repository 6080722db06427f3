"""The nightly gate and its issues over real stores: red, green, gaps, suspicions; opened, updated, closed."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import nightly_store
import stored_runs
from github_server import BOT, TOKEN, GitHub, serving
from stored_runs import BEGIN, DAY, case, result

from torchgauge.cli.main import cli
from torchgauge.errors import DataFileError
from torchgauge.records import Cause, Failure, Modifier, Status, to_json
from torchgauge.results.comparing.gate_verdict import GateVerdict
from torchgauge.results.comparing.policy import load_policy
from torchgauge.results.store import Store
from torchgauge.results.trends.trend import trend
from torchgauge.results.trends.trend_findings import TrendFilter
from torchgauge.results.trends.trend_outcomes import TrendOutcome, TrendState, append_outcome
from torchgauge.workflows.campaign import CampaignPlan, PoolPlan, ShardPlan, campaign_json
from torchgauge.workflows.collect import Collection, MissingShard
from torchgauge.workflows.gate import gate_summary, nightly_gate
from torchgauge.workflows.github_api import GitHubApi
from torchgauge.workflows.ingest.intake import Taken
from torchgauge.workflows.issues import apply_steps, known_issues, plan_issues
from torchgauge.workflows.night_clusters import clusters
from torchgauge.workflows.night_findings import NightFindings, NightOf, night_findings

BROKEN = {"status": Status.ERROR, "failure": Failure("TypeError", "no such op", fingerprint="f" * 16)}


def store_of(tmp_path: Path, *rows, run_id: str = "night-1", at: float = BEGIN) -> Store:
    store = Store.open(tmp_path / "store", create=True)
    stored_runs.run(store, run_id, rows, at=at)
    return store


def found_in(store: Store, *gaps: str, runs: tuple[str, ...] = ("night-1",), **more) -> NightFindings:
    told = {"campaign_id": "c-1", "night": "2026-05-28", "since": BEGIN - 60, "planned": {}, **more}
    return night_findings(store, runs, NightOf(**told), gaps)


def test_a_night_as_expected_is_green(tmp_path) -> None:
    """Also where what is expected is a failure, or a case that the device does not support."""
    rows = [
        result(case()),
        result(case("conv"), None, **BROKEN, expected=Status.ERROR),
        result(case("norm"), None, status=Status.UNSUPPORTED),
    ]
    found = nightly_gate(found_in(store_of(tmp_path, *rows)))
    assert (found.verdict, found.exit_code, found.reasons) == (GateVerdict.PASS, 0, ())


def test_an_unexpected_failure_is_red(tmp_path) -> None:
    """One cluster for all cases that fail alike, wherever they ran."""
    rows = [result(case(name), None, **BROKEN) for name in ("linear", "conv", "norm")]
    found = nightly_gate(found_in(store_of(tmp_path, result(case("attention")), *rows)))
    assert (found.verdict, found.exit_code) == (GateVerdict.REGRESSION, 1)
    assert found.reasons == ("error where pass is expected: 3 cases",)
    (cluster,) = found.findings.failures
    assert (cluster.title, len(cluster.cases)) == ("TypeError: no such op", 3)


def test_an_expected_failure_by_another_cause_is_red(tmp_path) -> None:
    """The finding says so, and the case is not among those that pass."""
    other = {"modifiers": (Modifier.OTHER_CAUSE,), "facts": (("other_cause", "aten::addmm is missing"),)}
    rows = [result(case()), result(case("conv"), None, **BROKEN, **other, expected=Status.ERROR)]
    found = nightly_gate(found_in(store_of(tmp_path, *rows)))
    assert (found.verdict, found.exit_code) == (GateVerdict.REGRESSION, 1)
    assert found.reasons == ("error of another cause where error is expected: 1 case",)
    assert found.findings.passed == {case().key}


def test_the_policy_says_which_failures_gate(tmp_path) -> None:
    """An ignored case is shown and is not red."""
    store = store_of(tmp_path, result(case()), result(case("conv"), None, **BROKEN))
    policy = tmp_path / "policy.yaml"
    policy.write_text("suites:\n  toy: {metrics: {status: {action: ignore}}, reason: under repair}\n")
    found = nightly_gate(found_in(store), load_policy(policy, date(2026, 5, 28)))
    assert (found.verdict, len(found.findings.failures)) == (GateVerdict.PASS, 1)


@pytest.mark.parametrize("undecided", ["neutral", "success", "failure"])
def test_what_is_missing_is_never_green(tmp_path, undecided) -> None:
    """A gap, a case that was not measured, no case at all: whatever the policy says of suspicions."""
    fine = store_of(tmp_path / "a", result(case()))
    cut = store_of(
        tmp_path / "b", result(case()), result(case("conv"), None, status=Status.INFRA, cause=Cause.NO_DEVICE)
    )
    for found in (found_in(fine, "pool npu sent nothing"), found_in(cut), found_in(fine, runs=())):
        said = nightly_gate(found, undecided=undecided)
        assert (said.verdict, said.exit_code) == (GateVerdict.INCOMPLETE, 3)
    assert "pool npu sent nothing" in gate_summary(nightly_gate(found_in(fine, "pool npu sent nothing")))


def test_a_gap_does_not_hide_a_regression(tmp_path) -> None:
    """Red, and both are said."""
    store = store_of(tmp_path, result(case()), result(case("conv"), None, **BROKEN))
    found = nightly_gate(found_in(store, "a gap"))
    assert (found.exit_code, found.reasons[-1]) == (1, "incomplete: a gap")


def test_a_summary_stays_below_its_limit(tmp_path) -> None:
    """Thousands of clusters are cut, and a line says so."""
    rows = [result(case("conv", seed=number), None, status=Status.ERROR,
                   failure=Failure("E", f"m{number} " + "x" * 300, fingerprint=f"{number:016x}"))
            for number in range(150)]  # fmt: skip
    found = nightly_gate(replace(found_in(store_of(tmp_path, rows[0])), failures=clusters(rows)))
    text = gate_summary(found, 20_000)
    assert len(text.encode()) <= 20_000
    assert text.rstrip().endswith("`torchgauge ci gate --json` prints everything.")
    assert len(gate_summary(found).encode()) <= 1 << 20


# --- changes of level --------------------------------------------------------------------------


def values(count: int, level: float, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [level * (1.0 + rng.gauss(0.0, 0.004)) for _ in range(count)]


SLOWER = [*values(14, 1e-3, 1), *values(6, 1.2e-3, 2)]
LAST = "night-019"


@pytest.fixture(scope="module")
def slowed(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Twenty nights of a case that becomes 20 % slower at night 14."""
    path = tmp_path_factory.mktemp("night") / "store"
    nightly_store.history(path, SLOWER)
    return Store.open(path)


def test_a_suspicion_is_undecided_until_it_was_measured_and_red_once_confirmed(slowed) -> None:
    """The policy says whether undecided is red; what is confirmed always is, in every later night too."""
    (suspicion,) = trend(slowed, TrendFilter()).suspicions
    noticed = suspicion.series.nights[suspicion.change.noticed]
    told = {"since": noticed.at - 60, "runs": (noticed.run_id,)}
    found = found_in(slowed, **told)
    assert [(each.confirmed, len(each.cases)) for each in found.changes] == [(False, 1)]
    codes = {
        word: nightly_gate(found, undecided=word).exit_code for word in ("neutral", "success", "failure")
    }
    assert codes == {"neutral": 0, "success": 0, "failure": 3}
    assert nightly_gate(found).verdict is GateVerdict.UNDECIDED
    open_still = nightly_gate(found_in(slowed, since=noticed.at + 30 * DAY, runs=(LAST,)))
    assert (open_still.verdict, open_still.exit_code) == (GateVerdict.UNDECIDED, 3)
    series = suspicion.series
    append_outcome(
        slowed,
        TrendOutcome(
            series.case_key, series.case_id, series.metric, series.machine, suspicion.good.run_id,
            suspicion.suspect.run_id, TrendState.CONFIRMED, "measured again", noticed.at, 1.2, 1.19, 1.21,
        ),
    )  # fmt: skip
    confirmed = nightly_gate(found_in(slowed, **told))
    assert (confirmed.verdict, confirmed.exit_code) == (GateVerdict.REGRESSION, 1)
    assert "confirmed tonight" in confirmed.reasons[0]
    later = nightly_gate(found_in(slowed, since=noticed.at + 30 * DAY, runs=(LAST,)))
    assert (later.verdict, later.exit_code) == (GateVerdict.REGRESSION, 1)
    assert "confirmed and not recovered" in later.reasons[0]


def test_a_change_that_was_taken_back_is_none(tmp_path) -> None:
    """Its series is calm again, which lets an issue be closed."""
    path = tmp_path / "store"
    nightly_store.history(path, [*SLOWER, *values(8, 1e-3, 3)])
    found = found_in(Store.open(path), runs=("night-027",), since=0.0)
    assert (found.changes, len(found.calm)) == ((), 1)


# --- the command -------------------------------------------------------------------------------


def files(tmp_path: Path, store: Store, *missing: MissingShard, run_id: str = "night-1") -> list[str]:
    """Options of the command for a campaign of one shard."""
    shard = ShardPlan(1, 1, (case().id,), 1.0, "0" * 16)
    pool = PoolPlan("cpu", "fake", ("ubuntu-latest",), "", 1.0, (shard,))
    plan = CampaignPlan(
        "2026-05-28-x-y", BEGIN - 60, "2026-05-28", "owner/project", "a" * 40, "2", "d", (pool,)
    )
    gaps = tuple(
        f"pool {each.pool}, shard {each.shard} of {each.of}: no valid result set" for each in missing
    )
    taken = Taken(run_id, "results-x", "cpu", 1, 1, "complete", {"pass": 1}, ())
    collected = Collection(plan.campaign_id, plan.digest, "incomplete" if gaps else "complete", 1, 1, {"pass": 1},  # noqa: E501
                           (taken,), missing, (), (), gaps)  # fmt: skip
    (tmp_path / "campaign.json").write_text(campaign_json(plan))
    (tmp_path / "collect.json").write_text(to_json(collected))
    named = {"--campaign": tmp_path / "campaign.json", "--collected": tmp_path / "collect.json"}
    options = [word for name, path in named.items() for word in (name, str(path))]
    return [*options, "--store", str(store.path)]


def invoke(*words: str):
    return CliRunner().invoke(cli, ["ci", *words])


def test_the_command_ends_as_the_gate_says(tmp_path, monkeypatch) -> None:
    """0, 1 and 3, with a summary and JSON."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    monkeypatch.chdir(tmp_path)
    fine = store_of(tmp_path / "fine", result(case()))
    bad = store_of(tmp_path / "bad", result(case(), None, **BROKEN))
    assert invoke("gate", *files(tmp_path, fine)).exit_code == 0
    assert invoke("gate", *files(tmp_path, fine, MissingShard("npu", 1, 1, 3))).exit_code == 3
    red = invoke("gate", *files(tmp_path, bad), "--json")
    told = json.loads(red.output)
    assert (red.exit_code, told["verdict"], len(told["failures"])) == (1, "regression", 1)
    summary = (tmp_path / "summary.md").read_text()
    assert all(word in summary for word in (": Pass", "Incomplete: this is not a pass", ": Regression"))


def test_an_override_that_applies_to_nothing_is_a_warning(tmp_path, monkeypatch) -> None:
    """At the top of the run on GitHub, on stderr elsewhere; the verdict stays, and the JSON is whole."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    policy = tmp_path / "policy.yml"
    policy.write_text("suites:\n  toi: {tolerance: 0.01}\n  timm: {tolerance: 0.01}\n")
    words = ("gate", *files(tmp_path, store_of(tmp_path, result(case()))), "--policy", str(policy))
    told = invoke(*words, "--json")
    line = f"{policy}: suites.toi applies to none of the judged cases (1): did you mean toy?"
    assert told.stderr.splitlines() == [f"note: {line}"]
    assert (told.exit_code, json.loads(told.stdout)["verdict"]) == (0, "pass")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert f"::warning::{line}" in invoke(*words).stderr.splitlines()


def test_files_of_two_campaigns_do_not_fit(tmp_path, monkeypatch) -> None:
    """Nor does a file that is none."""
    monkeypatch.chdir(tmp_path)
    options = files(tmp_path, store_of(tmp_path, result(case())))
    collected = json.loads((tmp_path / "collect.json").read_text())
    (tmp_path / "collect.json").write_text(json.dumps({**collected, "campaign_digest": "0" * 16}))
    assert isinstance(invoke("gate", *options).exception, DataFileError)
    (tmp_path / "collect.json").write_text('{"campaign_id": ')
    assert "collect.json: the file is not JSON" in str(invoke("gate", *options).exception)


# --- issues ------------------------------------------------------------------------------------


@pytest.fixture
def github(monkeypatch) -> Iterator[GitHub]:
    """A server without issues."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(GitHub()) as github:
        yield github


def keep(github: GitHub, found: NightFindings, **more):
    """One night's issues, written to the server."""
    api = GitHubApi(github.base, TOKEN)
    planned = plan_issues(found, known_issues(api, "owner/project"), **more)
    apply_steps(api, "owner/project", planned.steps)
    return planned


def failing(tmp_path: Path, *models: str, **failure) -> NightFindings:
    told = Failure(**{"type": "TypeError", "message": "no such op", "fingerprint": "f" * 16, **failure})
    rows = [result(case(name), None, status=Status.ERROR, failure=told) for name in models]
    return replace(found_in(store_of(tmp_path, result(case("noop")))), failures=clusters(rows))


def passing(tmp_path: Path, *models: str) -> NightFindings:
    found = failing(tmp_path)
    return replace(found, passed=frozenset(case(name).key for name in models))


def test_an_issue_is_opened_updated_and_closed(tmp_path, github) -> None:
    """Twice the same night writes nothing; half a recovery closes nothing."""
    keep(github, failing(tmp_path / "1", "linear", "conv"))
    assert [(each["state"], each["title"]) for each in github.issues] == [
        ("open", "error in 2 cases: TypeError: no such op")
    ]
    assert keep(github, failing(tmp_path / "2", "linear", "conv")).steps == ()
    keep(github, failing(tmp_path / "3", "linear", "conv", "norm"))
    assert (len(github.issues), "in 3 cases" in github.issues[0]["title"]) == (1, True)
    keep(github, passing(tmp_path / "4", "linear", "conv"))
    assert github.issues[0]["state"] == "open"
    keep(github, passing(tmp_path / "5", "linear", "conv", "norm"))
    assert (github.issues[0]["state"], len(github.comments)) == ("closed", 1)
    keep(github, failing(tmp_path / "6", "linear", "conv", "norm"))
    assert (github.issues[0]["state"], len(github.issues)) == ("open", 1)


def test_what_a_person_closed_stays_closed(tmp_path, github) -> None:
    """It is counted."""
    keep(github, failing(tmp_path / "1", "linear"))
    github.issues[0]["state"] = "closed"
    planned = keep(github, failing(tmp_path / "2", "linear"))
    assert (planned.steps, planned.left, github.issues[0]["state"]) == ((), 1, "closed")


def test_a_new_message_of_the_same_cases_is_the_same_issue(tmp_path, github) -> None:
    """And two failures at once are two."""
    keep(github, failing(tmp_path / "1", "linear"))
    keep(github, failing(tmp_path / "2", "linear", message="no such operator", fingerprint="e" * 16))
    assert [each["title"] for each in github.issues] == ["error in 1 case: TypeError: no such operator"]
    both = failing(tmp_path / "3", "linear", message="no such operator", fingerprint="e" * 16)
    other = failing(tmp_path / "4", "conv", message="another", fingerprint="d" * 16)
    keep(github, replace(both, failures=(*both.failures, *other.failures)))
    assert len(github.issues) == 2


def test_a_night_opens_only_so_many(tmp_path, github) -> None:
    """The rest is counted, and comes on later nights."""
    found = [
        failing(tmp_path / str(n), name, fingerprint=f"{n:016x}")
        for n, name in enumerate(("linear", "conv", "norm"))
    ]
    night = replace(found[0], failures=tuple(each.failures[0] for each in found))
    assert keep(github, night, most_new=2).held_back == 1
    assert len(github.issues) == 2
    keep(github, night, most_new=2)
    assert len(github.issues) == 3


def test_a_change_has_one_issue_with_all_its_cases(slowed, github) -> None:
    """It is closed once its series are calm."""
    (suspicion,) = trend(slowed, TrendFilter()).suspicions
    night = suspicion.suspect.date
    found = found_in(slowed, runs=(LAST,), since=0.0, night=night)
    keep(github, found)
    (issue,) = github.issues
    assert re.match(r"(Confirmed|Suspected): latency \+\d\d\.\d% time on fake since", issue["title"])
    assert keep(github, found).steps == ()
    calm = frozenset(found.changes[0].members)
    keep(github, replace(found, changes=(), calm=calm))
    assert issue["state"] == "closed"
    old = replace(found, night="2030-01-01")
    assert [step.do for step in plan_issues(old, []).steps] == []


def test_an_issue_that_only_looks_like_ours_is_left_alone(tmp_path, github) -> None:
    """Another author's, a pull request, and a body without our first line."""
    keep(github, failing(tmp_path / "1", "linear"))
    body, labels = github.issues[0]["body"], [{"name": "torchgauge"}]
    github.issues = [
        {"number": 1, "state": "open", "user": {"login": "stranger"}, "body": body, "title": "", "labels": labels},  # noqa: E501
        {"number": 2, "state": "open", "user": {"login": BOT}, "body": body, "title": "", "labels": labels,
         "pull_request": {}},
        {"number": 3, "state": "open", "user": {"login": BOT}, "body": "x\n" + body, "title": "", "labels": labels},  # noqa: E501
    ]  # fmt: skip
    keep(github, passing(tmp_path / "2", "linear"))
    assert {each["state"] for each in github.issues} == {"open"}


def test_a_dry_run_prints_and_writes_nothing(tmp_path, monkeypatch) -> None:
    """It needs no token."""
    monkeypatch.delenv("GITHUB_TOKEN", raising=False)
    monkeypatch.delenv("GH_TOKEN", raising=False)
    options = files(tmp_path, store_of(tmp_path, result(case(), None, **BROKEN)))
    done = invoke("issues", *options, "--dry-run")
    assert (done.exit_code, "open: error in 1 case: TypeError: no such op" in done.output) == (0, True)
    assert "GITHUB_TOKEN" in str(invoke("issues", *options, "--repository", "owner/project").exception)

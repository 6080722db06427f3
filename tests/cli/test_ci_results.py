"""``torchgauge ci`` from a shard's run to the published site, through the command line."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchgauge import registry
from torchgauge.devices.discover import GROUP as DEVICES
from torchgauge.harness.derived_series import ONE_ALONE
from torchgauge.harness.planning.plan import load_suites, select_groups
from torchgauge.harness.planning.selection import Selection
from torchgauge.results.journal import results
from torchgauge.results.store import Store
from torchgauge.workflows.campaign import (
    CampaignPlan,
    PoolPlan,
    ShardPlan,
    campaign_json,
    read_campaign,
    terms_of,
)
from torchgauge.workflows.collect import collect
from torchgauge.workflows.ingest.container import read_container
from torchgauge.workflows.ingest.validator import Expected, validate

NOOP = "toy/noop:inference:float32:b1:eager@fake"
SUM = "toy/sum:inference:float32:b1:eager@fake"
MLP = "toy/mlp:inference:float32:b32:eager@fake"
QUICK = ("--measure-seconds", "0.05", "--no-calibration", "--no-memory-probe")
CAMPAIGN = "2026-05-28-torch-2.9.0-aabbccdd"


def write_campaign(folder: Path, *shards: tuple[str, ...], device: str = "fake") -> Path:
    """A campaign of one pool that was planned a minute ago."""
    devices = {name: registry.load(DEVICES, name) for name in ("fake", "cpu")}
    toy = Selection(("toy",), tuple(devices), tier="full", configurations=("eager", "aot_eager"))
    groups = select_groups(toy, devices, load_suites(("toy",)))
    known = {each.case.id: each for group in groups for each in group.cases}
    held = [{case: known[case] for case in cases if case in known} for cases in shards]
    parts = tuple(
        ShardPlan(number, len(shards), cases, 1.0, terms_of(terms))
        for number, (cases, terms) in enumerate(zip(shards, held, strict=True), start=1)
    )
    pool = PoolPlan("pool", device, ("ubuntu-latest",), "", 2.0, parts)
    plan = CampaignPlan(CAMPAIGN, time.time() - 60, "2026-05-28", "o/n", "a" * 40, "", "0" * 16, (pool,))
    path = folder / "campaign.json"
    path.write_text(campaign_json(plan))
    return path


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory, process: Callable[..., Any]) -> Path:
    """A folder with a campaign of two shards and the artifacts of both jobs."""
    folder = tmp_path_factory.mktemp("night")
    campaign = write_campaign(folder, (NOOP,), (SUM, MLP))
    for shard in ("1", "2"):
        out = folder / "artifacts" / f"results-{CAMPAIGN}-pool-{shard}-1"
        words = ("--campaign", str(campaign), "--pool", "pool", "--shard", shard, "--out", str(out))
        done = process("ci", "run", *words, *QUICK, "--store", str(folder / f"work-{shard}"))
        assert done.returncode == 0, done.stderr
        said = json.loads(done.stdout)
        assert (said["artifact"], said["state"]) == (out.name, "complete")
    return folder


def test_a_job_runs_exactly_the_cases_of_its_shard(night: Path) -> None:
    """No eager case is added beside a listed one, and one that the device cannot run has its row."""
    plan = json.loads((night / "artifacts" / f"results-{CAMPAIGN}-pool-2-1" / "plan.json").read_text())
    models = [case["case"]["workload"]["model"] for group in plan["groups"] for case in group["cases"]]
    assert models == ["sum", "mlp"]
    assert plan["shard"] == "2/2"


def test_a_night_is_collected_and_published(
    night: Path, tmp_path: Path, invoke: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both shards come into the store, and the site and the history file show them."""
    monkeypatch.chdir(tmp_path)
    campaign, store = str(night / "campaign.json"), str(tmp_path / "store")
    collected = invoke("ci", "collect", str(night / "artifacts"), "--campaign", campaign, "--store", store)
    assert collected.exit_code == 0, collected.output
    said = json.loads((tmp_path / "collect.json").read_text())
    assert (said["state"], said["counts"]) == ("complete", {"pass": 2, "unsupported": 1})
    published = invoke("dashboard", "publish", "--store", store, "--site", str(tmp_path / "site"))
    assert published.exit_code == 0, published.output
    assert (tmp_path / "site" / "index.html").is_file()
    assert json.loads((tmp_path / "store" / "history.json").read_text())["runs"]
    again = invoke(
        "dashboard", "publish", "--store", store, "--site", str(tmp_path / "site"), "--expect-history"
    )
    assert again.exit_code == 0, again.output


@pytest.mark.torch
def test_what_a_real_job_says_of_its_steps_follows_from_its_times(
    tmp_path: Path, process: Callable[..., Any]
) -> None:
    """Throughput, rate and speed-up of real measurements pass the door, which makes the same ones of them."""
    compiled = MLP.replace("eager@fake", "aot_eager@cpu")
    campaign = write_campaign(tmp_path, (MLP.replace("fake", "cpu"), compiled), device="cpu")
    words = ("--campaign", str(campaign), "--pool", "pool", "--out", str(tmp_path / "set"))
    done = process("ci", "run", *words, *QUICK, "--store", str(tmp_path / "work"))
    assert done.returncode == 0, done.stderr
    store = Store.open(tmp_path / "store", create=True)
    found = collect(tmp_path / "set", Expected(read_campaign(campaign), time.time()), store)
    assert found.complete
    (row,) = [
        each for each in results(store.run(found.runs[0].run_id).journal_path) if each.case_id == compiled
    ]
    counts = {each.metric: len(each.samples) for each in row.measurements}
    assert counts["throughput"] == counts["flops_rate"] == counts["latency"] > 1
    assert counts["speedup"] > 1 or [
        each.absent for each in row.measurements if each.metric == "speedup"
    ] == [ONE_ALONE]  # beside busy neighbours


def test_a_missing_shard_and_a_refused_one_end_with_three(
    night: Path, tmp_path: Path, invoke: Callable[..., Any]
) -> None:
    """The gap and the reason are printed, and collect.json has both."""
    artifacts = tmp_path / "artifacts"
    name = f"results-{CAMPAIGN}-pool-2-1"
    shutil.copytree(night / "artifacts" / name, artifacts / name)
    with (artifacts / name / "journal.jsonl").open("ab") as journal:
        journal.write(b"\n")
    found = invoke(
        *("ci", "collect", str(artifacts), "--campaign", str(night / "campaign.json")),
        *("--store", str(tmp_path / "store"), "--out", str(tmp_path / "collect.json")),
    )
    assert found.exit_code == 3
    assert f"rejected {name}: hash" in found.output
    said = json.loads((tmp_path / "collect.json").read_text())
    assert [each["shard"] for each in said["missing"]] == [1, 2]
    assert [each["reason"] for each in said["rejected"]] == ["hash"]


def test_a_plan_that_another_job_put_in_place_is_refused(
    night: Path, tmp_path: Path, invoke: Callable[..., Any]
) -> None:
    """The digest that the plan's own job handed on decides, however whole the file is."""
    other = write_campaign(tmp_path, (NOOP,))
    digest = json.loads((night / "campaign.json").read_text())["digest"]
    words = (
        str(night / "artifacts"),
        "--store",
        str(tmp_path / "store"),
        "--out",
        str(tmp_path / "out.json"),
    )
    forged = invoke("ci", "collect", *words, "--campaign", str(other), "--campaign-digest", digest)
    assert "another job" in str(forged.exception.hint)
    assert not (tmp_path / "store").exists()
    found = invoke(
        *("ci", "collect", *words, "--campaign", str(night / "campaign.json"), "--campaign-digest", digest)
    )
    assert found.exit_code == 0, found.output


def test_an_attempt_that_the_git_host_never_made_is_refused(
    night: Path, tmp_path: Path, invoke: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Git host says how often it ran the workflow; a set of a later attempt is of nobody."""
    artifacts = tmp_path / "artifacts"
    shutil.copytree(night / "artifacts", artifacts)
    second = artifacts / f"results-{CAMPAIGN}-pool-1-2"
    (artifacts / f"results-{CAMPAIGN}-pool-1-1").rename(second)
    manifest = second / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"attempt": 1', '"attempt": 2'))
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "1")
    found = invoke(
        *("ci", "collect", str(artifacts), "--campaign", str(night / "campaign.json")),
        *("--store", str(tmp_path / "store"), "--out", str(tmp_path / "collect.json")),
    )
    assert found.exit_code == 3
    assert f"rejected {second.name}: foreign_identity: attempt 2" in found.output


def test_a_removed_run_leaves_its_reason_and_stays_out(
    night: Path, tmp_path: Path, invoke: Callable[..., Any]
) -> None:
    """Its set, of this commit, is refused the next time."""
    store = tmp_path / "store"
    artifact = str(night / "artifacts" / f"results-{CAMPAIGN}-pool-1-1")
    words = ("collect", artifact, "--campaign", str(night / "campaign.json"), "--store", str(store))
    words = ("ci", *words, "--out", str(tmp_path / "collect.json"))
    foreign = invoke(*words, "--sha", "b" * 40)
    assert (foreign.exit_code, "foreign_sha" in foreign.output) == (3, True)
    assert "rejected" not in invoke(*words).output
    run = next((store / "runs").iterdir())
    removed = invoke("results", "remove", run.name, "--store", str(store), "--reason", "wrong clock")
    assert removed.exit_code == 0, removed.output
    assert not run.exists()
    assert ": removed: run" in invoke(*words).output


def test_a_job_that_runs_out_of_time_hands_in_what_it_has(
    tmp_path: Path, process: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the job's deadline the run is stopped; its set, its words and its page say what was not run."""
    campaign = write_campaign(tmp_path, (NOOP, SUM, MLP))  # 4 s each, and 7 s are left for them
    words = ("--campaign", str(campaign), "--pool", "pool", "--out", str(tmp_path / "set"))
    slow = ("--measure-seconds", "60", "--precision", "0.0001", "--no-calibration", "--deadline", "12s")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    done = process("ci", "run", *words, *slow, "--store", str(tmp_path / "work"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["state"] in ("interrupted", "out_of_budget")
    assert "order: " in done.stderr
    (left,) = [line for line in done.stderr.splitlines() if line.startswith("left: ")]
    assert re.match(r"left: \d+ cases? in \d+ group", left)
    assert left in (tmp_path / "summary.md").read_text()
    expected = Expected(read_campaign(campaign), time.time())
    assert validate(read_container(tmp_path / "set"), expected).counts["not_run"] >= 1


@pytest.mark.parametrize(
    ("cases", "device", "words", "problem"),
    [
        ((NOOP,), "fake", ("--pool", "pol"), "did you mean pool"),
        ((NOOP,), "fake", ("--pool", "pool", "--shard", "2"), "has no shard 2"),
        ((NOOP.replace("noop", "nop"),), "fake", ("--pool", "pool"), "unknown model 'nop'"),
        ((NOOP,), "other", ("--pool", "pool"), "pool 'pool' has other"),
        ((), "fake", ("--pool", "pool"), "the shard has no cases"),
    ],
)
def test_a_shard_that_cannot_be_run_says_so_and_writes_nothing(  # noqa: PLR0917
    cases: tuple[str, ...],
    device: str,
    words: tuple[str, ...],
    problem: str,
    tmp_path: Path,
    invoke: Callable[..., Any],
) -> None:
    """A mistake in the plan or in the job's words ends before anything is measured."""
    campaign = write_campaign(tmp_path, cases, device=device)
    out, store = tmp_path / "set", tmp_path / "work"
    done = invoke("ci", "run", "--campaign", str(campaign), *words, "--out", str(out), "--store", str(store))
    assert problem in str(done.exception)
    assert not out.exists()
    assert not store.exists()


def test_an_edited_campaign_is_refused(night: Path, tmp_path: Path, invoke: Callable[..., Any]) -> None:
    """A campaign whose digest does not fit is no plan to hold anything against."""
    edited = tmp_path / "campaign.json"
    edited.write_text((night / "campaign.json").read_text().replace('"o/n"', '"o/m"'))
    found = invoke("ci", "collect", str(night), "--campaign", str(edited), "--store", str(tmp_path / "store"))
    assert "digest" in str(found.exception)

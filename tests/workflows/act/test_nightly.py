"""The nightly workflow under the real act: what is green, what is red, what is published and said."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

import pytest
from act_runner import ActRun, GitHost
from click.testing import CliRunner
from github_server import TOKEN, GitHub, serving
from replayed_nights import Nights, measured, times

from torchgauge.cli.main import cli
from torchgauge.results.store import Store
from torchgauge.workflows.campaign import CampaignPlan
from torchgauge.workflows.config import read_config
from torchgauge.workflows.planning import kept_code, torch_of

pytestmark = pytest.mark.torch

CONFIG = """\
version: 1
campaign: {{suites: [toy], models: [{models}], configs: [eager], budget: 15m}}
pools:
{pools}
"""
CPU = "  - {name: cpu, device: cpu, runs-on: ubuntu-24.04, shards: 2, trust: anyone}\n"
SIM = "  - {name: sim, device: npusim, runs-on: [self-hosted, tg-sim], shards: 2}\n"
ONE = "  - {name: cpu, device: cpu, runs-on: ubuntu-24.04, trust: anyone}\n"
SHARDS = ["cpu 1 of 2-1", "cpu 2 of 2-2", "sim 1 of 2-3", "sim 2 of 2-4"]  # act numbers the legs
NIGHT = datetime.now(timezone.utc).date().isoformat()
"""The date of every night here: midnight may lie between two of them."""
PUBLISHED = {(name, "success") for name in ("publish", "dashboard/publish", "dashboard/deploy")}


@dataclass
class Night:
    """A Git host, the GitHub that it talks to, and the first night on it."""

    git_host: GitHost
    github: GitHub
    first: ActRun

    def dispatch(self, workflow: str, run: int, **environment: str) -> ActRun:
        return dispatch(self.git_host, self.github, workflow, run, **environment)

    def history(self) -> str:
        return self.git_host.git("rev-parse", "results")


def dispatch(git_host: GitHost, github: GitHub, workflow: str, run: int = 1, **environment: str) -> ActRun:
    """Start ``workflow`` by hand, with a token and without a network."""
    github.night_jobs = git_host.jobs
    labels = environment.pop("labels", "ubuntu-24.04 self-hosted").split()
    names = {"GITHUB_API_URL": github.base, "OMP_NUM_THREADS": "1", "TORCHGAUGE_NIGHT": NIGHT, **environment}
    return git_host.act(
        "workflow_dispatch",
        workflow,
        secrets={"GITHUB_TOKEN": TOKEN},
        environment=names,
        labels=labels,
        run=run,
    )


def make_git_host(folder: Path, pools: str, models: str = "noop, mlp") -> GitHost:
    git_host = GitHost(folder, "owner/project")
    git_host.add_workflows()
    git_host.commit({"torchgauge.yml": CONFIG.format(models=models, pools=pools)})
    return git_host


@pytest.fixture(scope="module")
def github() -> Iterator[GitHub]:
    with serving(GitHub()) as found:
        yield found


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory, github: GitHub) -> Night:
    """Two pools with two shards each, from the plan to the site.

    Something of the run has put its own files under the names that later jobs use for theirs.
    """
    git_host = make_git_host(tmp_path_factory.mktemp("nightly"), CPU + SIM)
    (git_host.artifacts / "1").mkdir()
    for name in ("campaign-1", "collected-1"):
        with zipfile.ZipFile(git_host.artifacts / "1" / f"{name}.zip", "w") as archive:
            archive.writestr("collect.json", "{}")
    return Night(git_host, github, dispatch(git_host, github, "nightly.yml"))


def test_a_whole_night_is_planned_measured_judged_and_published(night):
    """Every job of every pool and shard succeeds, and nothing else ran."""
    expected = {(name, "success") for name in ("plan", *SHARDS, "collect", "gate", "issues")} | PUBLISHED
    assert night.first.jobs == expected, night.first.log[-6000:]
    assert ("gate", "Judge the night", "success") in night.first.steps
    assert not [step for step in night.first.steps if step[2] != "success"]
    assert night.first.exit_code == 0


def test_each_shard_hands_in_one_artifact_and_the_store_has_all_cases(night):
    """Names carry campaign, pool, shard and attempt; a set is exactly three files."""
    names = night.git_host.artifact_names()
    sets = sorted(name for name in names if name.startswith("results-"))
    assert names - set(sets) == {"campaign-1", "collected-1", "github-pages"}
    assert [name.rsplit("-", 3)[1:] for name in sets] == [
        ["cpu", "1", "1"],
        ["cpu", "2", "1"],
        ["sim", "1", "1"],
        ["sim", "2", "1"],
    ]
    with night.git_host.artifact(sets[0]) as archive:
        assert sorted(archive.namelist()) == ["journal.jsonl", "manifest.json", "plan.json"]
    with night.git_host.artifact("collected-1") as archive:
        collected = json.loads(archive.read("collect.json"))
    assert (collected["state"], collected["planned"], collected["recorded"]) == ("complete", 4, 4)
    assert collected["counts"] == {"pass": 4}


def test_the_site_is_deployed_and_the_history_is_on_its_branch(night):
    """Pages gets one tar with the site; the branch has a commit with the runs of the night."""
    assert (night.git_host.pages / "index.html").is_file()
    with night.git_host.artifact("github-pages") as archive:
        site = io.BytesIO(archive.read("artifact.tar"))
    with tarfile.open(fileobj=site) as tar:
        assert "./index.html" in tar.getnames()
    files = night.git_host.git("ls-tree", "-r", "--name-only", "results").splitlines()
    assert sum(name.endswith("/provenance.json") for name in files) == 4
    assert "history.json" in files


def test_the_page_of_the_run_shows_the_plan_and_the_verdict(night):
    """A person who opens the run sees what was planned and how it ended."""
    assert "| `sim` | `npusim` | 2 | 2 |" in night.first.summary
    assert "Pass" in night.first.summary


def test_the_token_is_in_no_output_and_no_artifact(night):
    """What publishes has a token; what it leaves behind has none."""
    assert TOKEN not in night.first.log
    for path in night.git_host.artifacts.rglob("*.zip"):
        assert TOKEN.encode() not in path.read_bytes()
    assert TOKEN not in (night.git_host.repository / ".git" / "config").read_text()


def test_a_night_that_somebody_starts_by_hand_uses_no_cache_of_the_git_host(night):
    """It may be of any branch: it neither reads nor writes what the nights of the default branch trust."""
    assert not list(night.git_host.caches.iterdir())
    assert not [step for step in night.first.steps if "compiled code" in step[1]]


@pytest.mark.full  # three nights
def test_a_night_that_begins_by_itself_hands_compiled_code_to_the_next(tmp_path, github):
    """A fresh machine gets what the night before kept, the run uses it, and the next night gets both."""
    git_host = make_git_host(tmp_path, ONE, "noop")
    config = read_config(git_host.repository / "torchgauge.yml")
    pool = config.pools[0]
    name = f"{kept_code(plan_of_torch(torch_of(config.pools)), pool, config)}-1of1"
    before = git_host.home / ".cache" / "torchgauge" / "compile" / "of-the-night-before"
    with tarfile.open(git_host.caches / f"{name}-7-1.tar", "w") as tar:
        tar.addfile(folder_in_tar(before.parent))
        tar.addfile(tarfile.TarInfo(str(before).lstrip("/")))
    run = git_host.act(
        "repository_dispatch",
        "nightly.yml",
        payload={"action": "torchgauge-nightly", "client_payload": {}},
        secrets={"GITHUB_TOKEN": TOKEN},
        environment={"GITHUB_API_URL": github.base, "OMP_NUM_THREADS": "1"},
        run=8,
    )
    assert ("cpu 1 of 1", "success") in run.jobs, run.log[-6000:]
    assert f"Cache restored from key: {name}-7-1" in run.output
    with tarfile.open(git_host.caches / f"{name}-8-1.tar") as tar:
        kept = tar.getnames()
    assert str(before).lstrip("/") in kept
    assert [each for each in kept if each.endswith("/about.json")], kept


def plan_of_torch(torch: str) -> CampaignPlan:
    """As much of a plan as the name of kept code is made of."""
    return CampaignPlan("", 0.0, "", "", "", torch, "", ())


def folder_in_tar(path: Path) -> tarfile.TarInfo:
    """A folder that its owner alone may write to."""
    found = tarfile.TarInfo(str(path).lstrip("/"))
    found.type, found.mode = tarfile.DIRTYPE, 0o700
    return found


# What pip fetches for the real script comes from an index, which a test without a network does not have: that
# the pages build is `tests/docs/test_site.py`. Here a script of one line stands for it.
SITE_DOCS = 'mkdir -p "$1" && echo "how to" >"$1/index.html"\n'


def begin_history(git_host: GitHost, folder: Path) -> None:
    """Put a history without a run onto its branch, as the first night would."""
    put_history(git_host, Store.open(folder / "history", create=True).path, folder)


def put_history(git_host: GitHost, history: Path, folder: Path) -> None:
    """Put the store ``history`` onto its branch; ``folder`` is for the files on the way."""
    words = ("dashboard", "publish", "--store", str(history), "--site", str(folder / "site"))
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0, done.output
    branch = folder / "branch"
    git_host.git("worktree", "add", "-q", "--detach", str(branch))
    git_host.git("checkout", "-q", "--orphan", "results", where=branch)
    git_host.git("rm", "-rfq", ".", where=branch)
    shutil.copytree(history, branch, dirs_exist_ok=True)
    git_host.git("add", "-A", where=branch)
    git_host.git("commit", "-q", "-m", "first", where=branch)
    git_host.git("worktree", "remove", "--force", str(branch))


@pytest.mark.parametrize(("fetched", "result"), [("", "failure"), ("yes", "success")])
def test_the_documentation_stands_beside_the_site(tmp_path, github, fetched, result):
    """Where the repository asks for it; pages that cannot be built keep no site from being deployed."""
    git_host = make_git_host(tmp_path, ONE)
    git_host.commit({"scripts/site-docs.sh": SITE_DOCS})
    begin_history(git_host, tmp_path / "first")
    run = git_host.act(
        "workflow_dispatch",
        "dashboard.yml",
        variables={"TORCHGAUGE_DOCS": "yes"},
        secrets={"GITHUB_TOKEN": TOKEN},
        environment={"GITHUB_API_URL": github.base, "ACT_FETCHED_PYTHON": fetched},
    )
    assert run.jobs == {("docs", result), ("publish", "success"), ("deploy", "success")}, run.log[-4000:]
    assert (git_host.pages / "index.html").is_file()
    assert (git_host.pages / "docs" / "index.html").is_file() is bool(fetched)


def test_publishing_the_same_history_again_changes_nothing(night):
    """The dashboard can be built anew by hand; the branch stays as it is."""
    before = night.history()
    again = night.dispatch("dashboard.yml", 2)
    assert again.jobs == {("publish", "success"), ("deploy", "success")}, again.log[-4000:]
    assert night.history() == before


def test_a_second_timer_finds_the_night_whole_and_plans_nothing(night):
    """A dispatch from outside is harmless after the schedule: no device is asked."""
    second = night.git_host.act(
        "repository_dispatch",
        "nightly.yml",
        payload={"action": "torchgauge-nightly", "client_payload": {}},
        secrets={"GITHUB_TOKEN": TOKEN},
        environment={"GITHUB_API_URL": night.github.base, "TORCHGAUGE_NIGHT": NIGHT},
        run=4,
    )
    assert second.jobs == {("plan", "success")}, second.log[-4000:]
    assert night.git_host.artifact_names(4) == set()


def rewrite_history(git_host: GitHost, folder: Path, change) -> str:
    """Commit what ``change`` does to a checkout of the history, and return that commit."""
    checkout = folder / "history"
    git_host.git("worktree", "add", "-q", str(checkout), "results")
    change(checkout)
    git_host.git("add", "-A", where=checkout)
    git_host.git("commit", "-q", "-m", "damage", where=checkout)
    git_host.git("worktree", "remove", "--force", str(checkout))
    return git_host.git("rev-parse", "results")


def cut_off(history: Path) -> None:
    """Leave half of the file that guards the history."""
    guard = history / "history.json"
    guard.write_bytes(guard.read_bytes()[: guard.stat().st_size // 2])


def lose_a_run(history: Path) -> None:
    """Take one run out without a tombstone."""
    run = min((history / "runs").iterdir())
    shutil.rmtree(run)
    for table in (history / "tables").rglob(f"*{run.name}*"):
        shutil.rmtree(table) if table.is_dir() else table.unlink()


def lose_the_guard(history: Path) -> None:
    """Delete the file that guards the history."""
    (history / "history.json").unlink()


@pytest.mark.parametrize(
    ("damage", "words"),
    [(cut_off, "is not JSON"), (lose_a_run, "shrink"), (lose_the_guard, "is missing")],
)
def test_a_damaged_history_is_not_published(night, tmp_path, damage, words):
    """Publish is red, nothing is deployed, and the branch keeps what it has."""
    good = night.history()
    shown = (night.git_host.pages / "index.html").read_bytes()
    damaged = rewrite_history(night.git_host, tmp_path, damage)
    try:
        run = night.dispatch("dashboard.yml", 3)
        assert run.jobs == {("publish", "failure")}, run.log[-4000:]
        assert words in run.output
        assert night.history() == damaged
        assert (night.git_host.pages / "index.html").read_bytes() == shown
    finally:
        night.git_host.git("branch", "--force", "results", good)
        shutil.rmtree(night.git_host.artifacts / "3", ignore_errors=True)


def test_a_lost_shard_makes_the_night_red_and_what_came_is_published(tmp_path, github):
    """The campaign is incomplete: the gap is named, an incomplete night is never green."""
    git_host = make_git_host(
        tmp_path, "  - {name: cpu, device: cpu, runs-on: ubuntu-24.04, shards: 2}\n", "noop, sum"
    )
    run = dispatch(git_host, github, "nightly.yml", ACT_LOSE="results-*-cpu-2-1")
    expected = {(name, "success") for name in ("plan", *SHARDS[:2], "collect", "issues")}
    assert run.jobs == expected | PUBLISHED | {("gate", "failure")}, run.log[-6000:]
    assert "pool cpu, shard 2 of 2: no valid result set" in run.output
    assert "Incomplete" in run.summary
    with git_host.artifact("collected-1") as archive:
        missing = json.loads(archive.read("collect.json"))["missing"]
    assert [(each["pool"], each["shard"]) for each in missing] == [("cpu", 2)]
    assert [each["title"] for each in github.issues] == ["Missing results of pool cpu"]
    files = git_host.git("ls-tree", "-r", "--name-only", "results").splitlines()
    assert sum(name.endswith("/provenance.json") for name in files) == 1


@pytest.mark.full
def test_a_pool_without_a_runner_is_a_gap(tmp_path, github):
    """Its job never starts; what the other pool measured is published, and the night is red."""
    git_host = make_git_host(tmp_path, ONE + SIM, "noop")
    run = dispatch(git_host, github, "nightly.yml", labels="ubuntu-24.04")
    expected = {(name, "success") for name in ("plan", "cpu 1 of 1-1", "collect", "issues")}
    assert run.jobs == expected | PUBLISHED | {("gate", "failure")}, run.log[-6000:]
    assert "pool sim, shard 1 of 1: no valid result set" in run.output


def test_an_empty_plan_is_red_and_starts_no_device(tmp_path, github):
    """Nothing to run is no success, and no leg of an empty matrix runs."""
    git_host = make_git_host(tmp_path, ONE, "noop")
    empty = CONFIG.format(models="noop", pools=ONE).replace("configs:", "modes: [training], configs:")
    git_host.commit({"torchgauge.yml": empty})
    run = dispatch(git_host, github, "nightly.yml")
    assert run.jobs == {("plan", "failure")}, run.log[-4000:]
    assert git_host.artifact_names() == set()


BUILD = "python -c 'import sys; print(sys.prefix)' # build {number}\n"


@pytest.mark.full  # minutes; test_nights_confirm.py goes the same way by its commands
def test_a_suspicion_is_measured_again_by_a_job_of_the_night(tmp_path, github):
    """On the pool, with the builds of both commits; the answer is kept, and then the night is judged."""
    git_host = GitHost(tmp_path / "git_host", "owner/project")
    git_host.add_workflows()
    good = git_host.commit({"build.sh": BUILD.format(number=1)})
    nights = Nights(tmp_path / "nights", good, git_host.commit({"build.sh": BUILD.format(number=2)}))
    nights.folder.mkdir()
    nights.configure("sum", suite="toy")
    git_host.commit({"torchgauge.yml": (nights.folder / "torchgauge.yml").read_text()})
    slower = times(20.0)
    codes = [measured(nights).night(slower).exit_code, nights.night(slower).exit_code]
    assert codes == [0, 3]
    put_history(git_host, nights.folder / "history", tmp_path)
    tonight = {"TORCHGAUGE_NIGHT": "2026-07-01"}
    run = dispatch(git_host, github, "nightly.yml", labels="ubuntu-24.04 self-hosted", **tonight)
    names = ("plan", "bench 1 of 1", "collect", "confirm bench 1", "settle", "publish-answers", "issues")
    # tonight is measured for real: beside other work its one step time may be unsteady, which is no pass
    gate = "failure" if "no step time was compared" in run.output else "success"
    assert run.jobs == {(name, "success") for name in names} | {("gate", gate)} | PUBLISHED, run.log[-6000:]
    (answers,) = [name for name in git_host.artifact_names() if name.startswith("confirmed-")]
    with git_host.artifact(answers) as archive:
        told = json.loads(archive.read("outcomes.json"))["outcomes"]
    assert [each["state"] in ("not_reproduced", "environment") for each in told] == [True], told
    kept = git_host.git("show", "results:trend/outcomes.jsonl").splitlines()
    assert [json.loads(line)["suspect_run"] for line in kept] == [told[0]["suspect_run"]]


@pytest.mark.full
def test_an_unexpected_failure_is_red_and_opens_one_issue(tmp_path):
    """The device refuses to compute: the gate is red, the night is published, an issue says why."""
    with serving(GitHub()) as github:
        git_host = make_git_host(tmp_path, SIM.replace("2}", "1}"), "mlp")
        run = dispatch(git_host, github, "nightly.yml", TORCHGAUGE_NPUSIM_MISSING_OPS="aten::addmm")
        expected = {(name, "success") for name in ("plan", "sim 1 of 1", "collect", "issues")}
        assert run.jobs == expected | PUBLISHED | {("gate", "failure")}, run.log[-6000:]
        assert len(github.issues) == 1

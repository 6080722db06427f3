"""What ``ci init`` writes, under the real act: a night from plan to site, and a pull request's comment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from act_runner import PROJECT, ActRun, GitHost
from gate_parts import event as run_ended
from gate_parts import gate_set, of, pull, report, zipped
from github_server import TOKEN, GitHub, serving
from small_wheels import PROJECT_FILES, wheel
from test_pr_gate import OWN, pull_request

import torchgauge
from torchgauge.records.comparison import Verdict
from torchgauge.workflows.init import LOCKED

pytestmark = pytest.mark.torch

PAGE = PROJECT / "docs/how-to/set-up-nightly.md"
OTHERWISE = {
    "suites: [timm, huggingface]": "suites: [toy]\n  models: [noop, mlp]",
    "configs: [eager, inductor]": "configs: [eager]",
    "pip install torch==2.13.0 timm transformers": "pip install machine",
}
"""What a test without a network has in the place of words of the page: all others stand as they are."""
SHARDS = {("hosted 1 of 2-1", "success"), ("hosted 2 of 2-2", "success")}  # act numbers the legs of a matrix
SITE = {("dashboard/Build", "success"), ("dashboard/Deploy", "success")}


def documented() -> str:
    """The file of the page on nightly campaigns."""
    text = PAGE.read_text().partition("```yaml\n")[2].partition("```")[0]
    for words, others in OTHERWISE.items():
        assert text.count(words) == 1, words
        text = text.replace(words, others)
    return text


class Written:
    """A fresh repository with the documented file, and what ``ci init`` makes of it.

    A wheel stands for the release, another for the torch of the machine, and there is an interpreter.
    """

    def __init__(self, folder: Path) -> None:
        self.git_host = GitHost(folder / "git_host", "owner/project")
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        seen = [str(Path(torchgauge.__file__).parents[1]), sysconfig.get_path("purelib")]
        command = "[console_scripts]\ntorchgauge = torchgauge.cli.start:main\n"
        more = {"torchgauge_here.pth": "\n".join(seen) + "\n", "ABOUT/entry_points.txt": command}
        wheel(self.wheels, "torchgauge", more=more, version=torchgauge.__version__)
        wheel(self.wheels, "machine", more={"machine.pth": sysconfig.get_path("purelib") + "\n"})
        self.python = self.fresh_python(folder)
        self.pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": self.wheels.as_uri()}
        (self.git_host.repository / "torchgauge.yml").write_text(documented())
        done = subprocess.run(
            [sys.executable, "-m", "torchgauge", "ci", "init"],
            cwd=self.git_host.repository,
            env={**os.environ, **self.pip},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        self.lacks = done.stderr
        # The release brings all that it needs here: wheels of the others need a network.
        (self.git_host.repository / LOCKED).write_text("-r torchgauge.txt\n")
        self.git_host.commit({})

    @staticmethod
    def fresh_python(folder: Path) -> Path:
        """The commands of an interpreter that has nothing but pip, as a runner fetches one."""
        subprocess.run([sys.executable, "-m", "venv", str(folder / "python")], check=True)
        return folder / "python" / "bin"

    def run(
        self, event: str, workflow: str, github: GitHub, *, run: int = 1, payload=None, **more: str
    ) -> ActRun:
        names = {
            "ACT_FETCHED_PYTHON": str(self.python),
            "GITHUB_API_URL": github.base,
            "OMP_NUM_THREADS": "1",
            **self.pip,
            **more,
        }
        return self.git_host.act(
            event, workflow, payload=payload, secrets={"GITHUB_TOKEN": TOKEN}, environment=names, run=run
        )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(tmp_path_factory.mktemp("fresh"))


def test_a_written_night_is_measured_published_and_judged(written: Written) -> None:
    """What parses the sets has no token that writes; what writes takes files over; the site is deployed."""
    with serving(GitHub(night_jobs=written.git_host.jobs)) as github:
        run = written.run("workflow_dispatch", "torchgauge-nightly.yml", github)
    names = ("plan", "collect", "publish", "gate", "issues")
    assert run.jobs == {(name, "success") for name in names} | SHARDS | SITE, run.log[-6000:]
    git_host = written.git_host
    files = git_host.git("ls-tree", "-r", "--name-only", "results").splitlines()
    assert sum(name.endswith("/provenance.json") for name in files) == 2
    assert sum(name.startswith("campaigns/") for name in files) == 1
    assert (git_host.pages / "index.html").is_file()
    (collected,) = (name for name in git_host.artifact_names() if name.startswith("collected-"))
    with git_host.artifact(collected) as archive:
        assert json.loads(archive.read("collect.json"))["state"] == "complete"
    assert TOKEN not in run.log


def test_a_release_that_was_replaced_is_installed_nowhere(written: Written, tmp_path: Path) -> None:
    """Its hash is not the one that was written down: the plan is red, and nothing else begins."""
    spoilt = {"torchgauge_here.pth": "import os; os.abort()\n"}
    other = wheel(tmp_path, "torchgauge", more=spoilt, version=torchgauge.__version__)
    with serving(GitHub()) as github:
        fresh = written.fresh_python(tmp_path)
        run = written.run(
            "workflow_dispatch",
            "torchgauge-nightly.yml",
            github,
            run=2,
            PIP_FIND_LINKS=str(other.parent),
            ACT_FETCHED_PYTHON=str(fresh),
        )
    assert run.jobs == {("plan", "failure")}, run.log[-4000:]
    assert "DO NOT MATCH THE HASHES" in run.log


def test_the_written_comment_job_misses_a_pool(written: Written, tmp_path: Path) -> None:
    """The pools are those of torchgauge.yml on the default branch, and the words say which sent nothing."""
    told = run_ended(path=".github/workflows/torchgauge-pr-gate.yml", name="torchgauge pull request")
    with serving(GitHub(pulls=[pull()], runs={77: told["workflow_run"]})) as github:
        data = zipped(gate_set(tmp_path, report(of(Verdict.UNCHANGED)), "gpu"))
        github.zips[1] = data
        github.artifacts = [{"id": 1, "name": "pr-gate-v1-gpu", "size_in_bytes": len(data), "expired": False}]
        run = written.run("workflow_run", "torchgauge-pr-comment.yml", github, payload=told, run=78)
    assert run.jobs == {("Comment", "success")}, run.log[-4000:]
    body = github.comments[0]["body"]
    assert "| `hosted` | Incomplete: this is not a pass | `no result set was submitted` |" in body
    assert "this pool is not in the plan" in body
    assert [each["conclusion"] for each in github.check_runs] == ["action_required"]


@pytest.mark.full  # a whole night
def test_a_night_whose_jobs_nobody_can_ask_after_is_red(written: Written) -> None:
    """The API is away from collect on: that job is red, with the reason, and no later one is green."""
    with serving(GitHub()) as github:
        pass
    run = written.run("workflow_dispatch", "torchgauge-nightly.yml", github, run=3)
    assert run.jobs >= {("plan", "success"), ("collect", "failure")} | SHARDS, run.log[-6000:]
    later = {name for name, result in run.jobs if result == "success"} - {name for name, _ in SHARDS}
    assert later <= {"plan"}, run.jobs
    assert ("collect", "Check and import what came", "failure") in run.steps
    assert "Connection refused" in run.output
    assert "is not a store" not in run.output


@pytest.mark.full  # minutes; test_pr_gate.py runs the same jobs
def test_a_pull_request_of_a_fresh_repository_passes_when_nothing_is_lacking(written: Written) -> None:
    """`ci init` says that it lacks a project; without one no side can be made, with one both are measured.

    From the untrusted job, which plans by the file of the base, to the one comment about its cases.
    """
    git_host = written.git_host
    git_host.git("config", "uploadpack.allowAnySHA1InWant", "true")
    assert "missing in the repository: a project that pip can install" in written.lacks
    quick = documented().replace("budget: 30m", "budget: 30s").replace("[noop, mlp]", "[noop]")
    git_host.commit({"torchgauge.yml": quick})
    body = gated(written, 77)
    assert "could not be installed" in body
    git_host.commit(PROJECT_FILES)
    body = gated(written, 79)
    assert "| `hosted` | " in body
    for words in (
        "are missing",
        "rejected",
        "not known here",
        "no result set was submitted",
        "could not be installed",
    ):
        assert words not in body


def gated(written: Written, number: int) -> str:
    """The comment on a pull request that the run ``number`` has measured."""
    git_host = written.git_host
    payload, head = pull_request(git_host, OWN)
    with serving(GitHub()) as github:
        run = written.run("pull_request", "torchgauge-pr-gate.yml", github, payload=payload, run=number)
    assert run.jobs == {("Plan", "success"), ("hosted", "success")}, run.log[-6000:]
    assert git_host.artifact_names(number) == {"pr-gate-v1-hosted"}
    assert TOKEN not in run.log
    told = run_ended(
        id=number,
        path=".github/workflows/torchgauge-pr-gate.yml",
        name="torchgauge pull request",
        head_sha=head,
    )
    with serving(GitHub(pulls=[pull(sha=head)], runs={number: told["workflow_run"]})) as github:
        data = (git_host.artifacts / str(number) / "pr-gate-v1-hosted.zip").read_bytes()
        github.zips[1] = data
        name = "pr-gate-v1-hosted"
        github.artifacts = [{"id": 1, "name": name, "size_in_bytes": len(data), "expired": False}]
        run = written.run("workflow_run", "torchgauge-pr-comment.yml", github, payload=told, run=number + 1)
    assert run.jobs == {("Comment", "success")}, run.log[-4000:]
    body: str = github.comments[0]["body"]
    return body

"""What ``ci init`` writes, under the real act: a night from plan to site, and a pull request's comment."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from act_runner import ActRun, GitHost
from gate_parts import event as run_ended
from gate_parts import gate_set, of, pull, report, zipped
from github_server import TOKEN, GitHub, serving
from small_wheels import wheel
from test_pr_gate import OWN, pull_request

import torchgauge
from torchgauge.records.comparison import Verdict
from torchgauge.workflows.config import read_config
from torchgauge.workflows.init import LOCKED, workflow_files, write_workflows

pytestmark = pytest.mark.torch

CONFIG = """\
version: 1
campaign: {suites: [toy], models: [noop, mlp], configs: [eager], budget: 15m}
pools:
  - {name: cpu, device: cpu, runs-on: ubuntu-24.04, shards: 2, trust: anyone}
"""
GATED = """\
version: 1
campaign: {{suites: [toy], models: [noop], configs: [eager]}}
pools:
  - {{name: cpu, device: cpu, runs-on: ubuntu-24.04, budget: 30s, trust: anyone, base: "{0}", head: "{0}"}}
"""
SHARDS = {("cpu 1 of 2-1", "success"), ("cpu 2 of 2-2", "success")}  # act numbers the legs of a matrix
SITE = {("Dashboard/Build", "success"), ("Dashboard/Deploy", "success")}


class Written:
    """A repository with the files of ``ci init``, a wheel that stands for the release, and an interpreter."""

    def __init__(self, folder: Path) -> None:
        self.git_host = GitHost(folder / "git_host", "owner/project")
        self.wheels = folder / "wheels"
        self.wheels.mkdir()
        seen = [str(Path(torchgauge.__file__).parents[1]), sysconfig.get_path("purelib")]
        command = "[console_scripts]\ntorchgauge = torchgauge.cli.start:main\n"
        more = {"torchgauge_here.pth": "\n".join(seen) + "\n", "ABOUT/entry_points.txt": command}
        made = wheel(self.wheels, "torchgauge", more=more)
        digest = hashlib.sha256(made.read_bytes()).hexdigest()
        self.python = self.fresh_python(folder)
        (self.git_host.repository / "torchgauge.yml").write_text(CONFIG)
        config = read_config(self.git_host.repository / "torchgauge.yml")
        pinned = f"torchgauge==1.0 --hash=sha256:{digest}"
        write_workflows(workflow_files(config, self.git_host.repository, package=pinned))
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
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.wheels),
            **more,
        }
        return self.git_host.act(
            event, workflow, payload=payload, secrets={"GITHUB_TOKEN": TOKEN}, environment=names, run=run
        )


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(tmp_path_factory.mktemp("written"))


def test_a_written_night_is_measured_published_and_judged(written: Written) -> None:
    """What parses the sets has no token that writes; what writes takes files over; the site is deployed."""
    with serving(GitHub(night_jobs=written.git_host.jobs)) as github:
        run = written.run("workflow_dispatch", "torchgauge-nightly.yml", github)
    names = ("Plan", "Collect", "Publish", "Red or green", "Issues")
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
    other = wheel(tmp_path, "torchgauge", more={"torchgauge_here.pth": "import os; os.abort()\n"})
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
    assert run.jobs == {("Plan", "failure")}, run.log[-4000:]
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
    assert "| `cpu` | Incomplete: this is not a pass | `no result set came` |" in body
    assert "nobody planned this pool" in body
    assert [each["conclusion"] for each in github.check_runs] == ["action_required"]


@pytest.mark.full  # minutes; test_pr_gate.py runs the same jobs
def test_a_written_pull_request_is_measured_and_commented(written: Written, tmp_path: Path) -> None:
    """From the untrusted job, which plans by the file of the base, to the one comment about its cases."""
    git_host = written.git_host
    git_host.git("config", "uploadpack.allowAnySHA1InWant", "true")
    sides = wheel(tmp_path, "sides", more={"sides.pth": sysconfig.get_path("purelib") + "\n"})
    git_host.commit({"torchgauge.yml": GATED.format(sides)})
    payload, head = pull_request(git_host, OWN)
    with serving(GitHub()) as github:
        run = written.run("pull_request", "torchgauge-pr-gate.yml", github, payload=payload, run=77)
    assert run.jobs == {("Plan", "success"), ("cpu", "success")}, run.log[-6000:]
    assert git_host.artifact_names(77) == {"pr-gate-v1-cpu"}
    assert TOKEN not in run.log
    told = run_ended(
        path=".github/workflows/torchgauge-pr-gate.yml", name="torchgauge pull request", head_sha=head
    )
    with serving(GitHub(pulls=[pull(sha=head)], runs={77: told["workflow_run"]})) as github:
        data = (git_host.artifacts / "77" / "pr-gate-v1-cpu.zip").read_bytes()
        github.zips[1] = data
        github.artifacts = [{"id": 1, "name": "pr-gate-v1-cpu", "size_in_bytes": len(data), "expired": False}]
        run = written.run("workflow_run", "torchgauge-pr-comment.yml", github, payload=told, run=79)
    assert run.jobs == {("Comment", "success")}, run.log[-4000:]
    body = github.comments[0]["body"]
    assert "| `cpu` | " in body
    for words in ("are missing", "rejected", "not known here", "no result set came"):
        assert words not in body

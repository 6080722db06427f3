"""The gate of a pull request under the real act: the untrusted job measures, the trusted one comments."""

from __future__ import annotations

import io
import json
import sysconfig
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from act_runner import PROJECT, ActRun, GitHost
from gate_parts import config_of, of, pull, report
from gate_parts import event as run_ended
from github_server import TOKEN, GitHub, serving

from torchgauge.records.comparison import Verdict
from torchgauge.results.comparing.gate_verdict import GateVerdict
from torchgauge.workflows.gate_set import Origin, read_gate_set, write_gate_set

CONFIG = """\
version: 1
campaign: {{suites: [toy], models: [noop], configs: [eager]}}
pools:
  - {{name: cpu, device: cpu, runs-on: ubuntu-24.04, budget: 30s, trust: anyone, base: {base}, head: {head}}}
  - {{name: sim, device: npusim, runs-on: [self-hosted, tg-sim], budget: 30s, base: {base}, head: {head}}}
"""
EVIL_TITLE = '${{ github.token }} `id` $(touch pwned) "; touch pwned; @everyone'
OWN, FORK = "owner/project", "stranger/project"
SECRET = "ghs_a-secret-that-no-pull-request-sees"


def wheel(folder: Path, name: str, *lines: str) -> Path:
    """A wheel that pip installs without a network; it makes what this interpreter has importable."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    information = f"{name}-1.0.dist-info"
    files = {
        f"{name}.pth": "\n".join([sysconfig.get_path("purelib"), *lines]) + "\n",
        f"{information}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in [*files, f"{information}/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in {**files, f"{information}/RECORD": record}.items():
            archive.writestr(file, text)
    return path


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., GitHost]:
    """Return a function that makes a repository whose pools compare what is named."""

    def make(base: str, head: str) -> GitHost:
        git_host = GitHost(tmp_path / "git_host", OWN)
        git_host.git("config", "uploadpack.allowAnySHA1InWant", "true")
        git_host.add_workflows()
        git_host.commit({"torchgauge.yml": CONFIG.format(base=json.dumps(base), head=json.dumps(head))})
        return git_host

    return make


def pull_request(git_host: GitHost, home: str, **fields: object) -> tuple[dict[str, object], str]:
    """The event of a pull request with one commit on top of main, from the repository ``home``."""
    base = git_host.git("rev-parse", "HEAD")
    git_host.git("checkout", "-q", "-B", "topic")
    head = git_host.commit({"change.txt": "change"}, EVIL_TITLE)
    git_host.git("update-ref", "refs/pull/5/head", head)
    git_host.git("checkout", "-q", "main")
    request = {
        "number": 5,
        "title": EVIL_TITLE,
        "head": {"sha": head, "ref": "topic", "repo": {"full_name": home, "fork": home != OWN}},
        "base": {"sha": base, "ref": "main", "repo": {"full_name": OWN}},
    }
    repository = {"full_name": OWN, "name": "project", "owner": {"login": "owner"}}
    told = {"action": "synchronize", "number": 5, "pull_request": request, "repository": repository}
    return {**told, **fields}, head


def gate(git_host: GitHost, payload: dict[str, object]) -> ActRun:
    return git_host.act(
        "pull_request",
        "pr-gate.yml",
        payload=payload,
        secrets={"HUB_TOKEN": SECRET},
        environment={"OMP_NUM_THREADS": "1", "PIP_NO_INDEX": "1"},
        run=77,
    )


def submitted(git_host: GitHost, folder: Path, head: str, pool: str = "cpu"):
    """The set that the pool submitted, read as the trusted job reads it."""
    path = folder / f"pr-gate-v1-{pool}.zip"
    path.write_bytes((git_host.artifacts / "77" / path.name).read_bytes())
    return read_gate_set(path, Origin(OWN, head, 77, 1), pool)


@pytest.mark.torch
def test_a_branch_of_this_repository_is_measured_against_its_base(project, tmp_path):
    """Base and head are installed and compared in one job of each pool that anyone may use."""
    same = str(wheel(tmp_path, "sides"))
    git_host = project(same, same)
    payload, head = pull_request(git_host, OWN)
    run = gate(git_host, payload)
    assert run.jobs == {("plan", "success"), ("cpu", "success")}, run.log[-6000:]
    assert git_host.artifact_names(77) == {"pr-gate-v1-cpu"}
    found = submitted(git_host, tmp_path, head)
    assert found.manifest.trouble == ""
    assert found.report.counts.planned == 1
    assert found.manifest.base == found.manifest.head == same
    assert not list(git_host.folder.rglob("pwned"))


@pytest.mark.torch
def test_a_fork_whose_build_is_broken_hands_in_a_set_that_says_so(project, tmp_path):
    """No secret is there to see, the title is text, and a build that fails is no silence."""
    git_host = project(str(wheel(tmp_path, "sides")), "no-such-package-at-all==1.0")
    payload, head = pull_request(git_host, FORK)
    run = gate(git_host, payload)
    assert run.jobs == {("plan", "success"), ("cpu", "success")}, run.log[-6000:]
    found = submitted(git_host, tmp_path, head)
    assert "could not be installed" in found.manifest.trouble
    assert found.verdict is GateVerdict.INCOMPLETE
    assert SECRET not in run.log
    assert not list(git_host.folder.rglob("pwned"))


def test_a_label_lets_no_fork_on_to_machines_of_ones_own(project, tmp_path):
    """A label counts for branches of this repository alone: nothing runs, and nothing is submitted."""
    same = str(wheel(tmp_path, "sides"))
    git_host = project(same, same)
    payload, _ = pull_request(git_host, FORK, action="labeled", label={"name": "torchgauge-run:sim"})
    run = gate(git_host, payload)
    assert run.jobs == set()
    assert git_host.artifact_names(77) == set()


@pytest.mark.parametrize(("name", "problem"), [("simm", "unknown pool 'simm'"), ("", "no pool was given")])
def test_a_label_for_a_pool_that_is_not_there_is_an_error(project, tmp_path, name, problem):
    """The plan says which pools there are; a label without a name is none for all of them."""
    same = str(wheel(tmp_path, "sides"))
    git_host = project(same, same)
    payload, _ = pull_request(git_host, OWN, action="labeled", label={"name": f"torchgauge-run:{name}"})
    run = gate(git_host, payload)
    assert run.jobs == {("plan", "failure")}
    assert problem in run.output


@pytest.mark.torch
@pytest.mark.full
def test_a_head_that_breaks_is_a_regression_in_the_set_and_no_red_job(project, tmp_path):
    """The job that measures is green with a valid set; red is what the check run will be."""
    sabotage = "import random; random.Random.choices = None"
    git_host = project(str(wheel(tmp_path, "sides")), str(wheel(tmp_path, "broken", sabotage)))
    config = CONFIG.replace("models: [noop]", "models: [sum]")
    base, head = (json.dumps(str(tmp_path / f"{name}-1.0-py3-none-any.whl")) for name in ("sides", "broken"))
    git_host.commit({"torchgauge.yml": config.format(base=base, head=head)})
    payload, sha = pull_request(git_host, OWN)
    run = gate(git_host, payload)
    assert run.jobs == {("plan", "success"), ("cpu", "success")}, run.log[-6000:]
    assert submitted(git_host, tmp_path, sha).verdict is GateVerdict.REGRESSION


@pytest.fixture(scope="module")
def commenter(tmp_path_factory: pytest.TempPathFactory) -> GitHost:
    """A repository on whose default branch the comment job runs."""
    git_host = GitHost(tmp_path_factory.mktemp("comment"), OWN)
    git_host.add_workflows()
    policy = (PROJECT / "policy.yml").read_text()
    git_host.commit({"policy.yml": policy, "torchgauge.yml": config_of("cpu", own=("sim",))})
    return git_host


@pytest.fixture
def github() -> Iterator[GitHub]:
    """GitHub with one pull request from a fork, whose gate has ended."""
    told = run_ended()["workflow_run"]
    with serving(GitHub(pulls=[pull()], runs={77: told})) as found:
        yield found


def artifact(github: GitHub, data: bytes, name: str = "pr-gate-v1-cpu") -> None:
    """Let the run have the artifact ``name``."""
    number = len(github.artifacts) + 1
    github.artifacts.append({"id": number, "name": name, "size_in_bytes": len(data), "expired": False})
    github.zips[number] = data


def packed(files: dict[str, bytes | str]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def good_set(folder: Path, **fields: str) -> dict[str, bytes]:
    """The files of a set with one regression; ``fields`` are another origin."""
    origin = {"repository": OWN, "head_sha": "a" * 40, "run_id": 77, "attempt": 1, **fields}
    out = folder / "set"
    made = report(of(Verdict.REGRESSION), of(Verdict.UNCHANGED, "conv"))
    write_gate_set(out, Origin(**origin), "cpu", ("torch==2.12.0", "torch==2.13.0"), made)
    return {path.name: path.read_bytes() for path in out.iterdir()}


def comment(git_host: GitHost, github: GitHub, payload: dict[str, object] | None = None) -> ActRun:
    return git_host.act(
        "workflow_run",
        "pr-comment.yml",
        payload=payload or run_ended(),
        secrets={"GITHUB_TOKEN": TOKEN},
        environment={"GITHUB_API_URL": github.base},
        run=78,
    )


def test_a_good_artifact_becomes_one_comment_and_a_check_run(commenter, github, tmp_path):
    """Its second run edits the comment in place; the pull request is the one that the API names."""
    artifact(github, packed(good_set(tmp_path)))
    for _ in range(2):
        run = comment(commenter, github)
        assert run.jobs == {("comment", "success")}, run.log[-4000:]
    assert len(github.comments) == 1
    assert github.comments[0]["on"] == 5
    assert "Regression" in github.comments[0]["body"]
    assert [(each["conclusion"], each["head_sha"]) for each in github.check_runs] == [("failure", "a" * 40)]
    assert TOKEN not in run.log


def slip(files):
    return {**files, "../../pwned": b"x"}


def more(files):
    return {**files, "comment.md": b"# Pass @everyone"}


def not_a_number(files):
    return {**files, "report.json": files["report.json"].replace(b"1.1,", b"NaN,", 1)}


def no_zip(_files):
    return None


@pytest.mark.parametrize("poison", [slip, more, not_a_number, no_zip])
def test_a_poisoned_artifact_is_named_and_nothing_of_it_is_said(commenter, github, tmp_path, poison):
    """The check is not green, the comment says why, and no word of the artifact's stands in it."""
    files = poison(good_set(tmp_path))
    artifact(github, packed(files) if files is not None else b"PK\x03\x04 and then nothing @everyone")
    run = comment(commenter, github)
    assert run.jobs == {("comment", "success")}, run.log[-4000:]
    body = github.comments[0]["body"]
    assert "rejected" in body
    assert "@everyone" not in body
    assert "torch==2.13.0" not in body
    assert [each["conclusion"] for each in github.check_runs] == ["action_required"]
    assert not list(commenter.folder.rglob("pwned"))


def test_an_artifact_of_another_commit_is_rejected(commenter, github, tmp_path):
    """What the manifest says of itself is compared with what GitHub says, and never used."""
    artifact(github, packed(good_set(tmp_path, head_sha="b" * 40)))
    run = comment(commenter, github)
    assert run.jobs == {("comment", "success")}, run.log[-4000:]
    assert "foreign" in github.comments[0]["body"]
    assert [each["head_sha"] for each in github.check_runs] == ["a" * 40]


def test_a_run_that_has_no_pull_request_gets_no_comment(commenter, github, tmp_path):
    """The head has moved on: the newer run will tell, and the summary says so."""
    artifact(github, packed(good_set(tmp_path)))
    github.pulls[0]["head"]["sha"] = "b" * 40
    run = comment(commenter, github)
    assert run.jobs == {("comment", "success")}, run.log[-4000:]
    assert github.writes() == []
    assert "newer commit" in run.summary


def test_a_run_for_another_event_starts_no_comment_job(commenter, github):
    """A push that is called like the gate comments on nothing."""
    run = comment(commenter, github, run_ended(event="push"))
    assert run.jobs == set()
    assert github.requests == []


def test_an_api_that_refuses_is_red_and_not_silent(commenter, github, tmp_path):
    """A token that may not write ends the job in red."""
    artifact(github, packed(good_set(tmp_path)))
    run = commenter.act(
        "workflow_run",
        "pr-comment.yml",
        payload=run_ended(),
        secrets={"GITHUB_TOKEN": "ghs_a-token-of-somebody-else"},
        environment={"GITHUB_API_URL": github.base},
        run=78,
    )
    assert run.jobs == {("comment", "failure")}
    assert github.comments == []


def ask(git_host: GitHost, by: str, sha: str, pool: str = "sim") -> ActRun:
    """Let ``by`` write the command for the commit ``sha`` under pull request 5, whose head is on its way."""
    head = git_host.git("rev-parse", "refs/pull/5/head")
    told = pull(sha=head)
    with serving(GitHub(pulls=[told], roles={"reviewer": "write", "stranger": "read"})) as github:
        return git_host.act(
            "issue_comment",
            "pr-command.yml",
            payload={
                "action": "created",
                "repository": {"full_name": OWN},
                "issue": {"number": 5, "pull_request": {"url": "x"}},
                "comment": {
                    "id": 9,
                    "user": {"login": by, "type": "User"},
                    "body": f"/torchgauge run {pool} {sha}",
                },
            },
            secrets={"GITHUB_TOKEN": TOKEN},
            environment={"GITHUB_API_URL": github.base, "OMP_NUM_THREADS": "1", "PIP_NO_INDEX": "1"},
            run=77,
        )


@pytest.mark.parametrize(("by", "pool"), [("stranger", "sim"), ("stranger", "cpu"), ("reviewer", "sim")])
def test_a_command_of_a_stranger_or_for_another_commit_starts_nothing(project, tmp_path, by, pool):
    """Neither a machine of one's own nor the pool that anyone may use; the page of the run says why."""
    same = str(wheel(tmp_path, "sides"))
    git_host = project(same, same)
    _, head = pull_request(git_host, FORK)
    run = ask(git_host, by, head if by == "stranger" else "b" * 40, pool)
    assert run.jobs == {("allow", "success")}, run.log[-4000:]
    assert "not allowed" in run.summary
    assert git_host.artifact_names(77) == set()


@pytest.mark.torch
@pytest.mark.full
def test_a_command_for_the_head_measures_that_commit(project, tmp_path):
    """It ends as the verdict says, here in red since the build is broken, and submits its set."""
    git_host = project(str(wheel(tmp_path, "sides")), "no-such-package-at-all==1.0")
    _, head = pull_request(git_host, FORK)
    run = ask(git_host, "reviewer", head)
    assert run.jobs == {("allow", "success"), ("sim", "failure")}, run.log[-6000:]
    assert submitted(git_host, tmp_path, head, "sim").manifest.head_sha == head

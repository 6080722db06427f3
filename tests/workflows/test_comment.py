"""The comment job against a real server: the pull request, one comment, the check run, every refusal."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))

from gate_parts import BASE, FORK, NEWER, PLAN, RUN, SHA, config_of, event, gate_set, of, pull, report, zipped
from github_server import BOT, TOKEN, Answer, GitHub, serving

from torchgauge.cli.main import cli
from torchgauge.errors import DataFileError
from torchgauge.records.comparison import Action, CodeSource, Verdict
from torchgauge.workflows.comment import LIMIT, comment_text
from torchgauge.workflows.gate_plan import GatePlan
from torchgauge.workflows.gate_received import gather
from torchgauge.workflows.github_api import ApiError
from torchgauge.workflows.workflow_event import SkippedError, gate_run

WORKFLOW = (".github/workflows/pr-gate.yml", "pr-gate")
SERVER = "https://github.example"


@pytest.fixture
def github(monkeypatch, tmp_path) -> Iterator[GitHub]:
    """A server with one open pull request and the run of its gate, named to the command as a runner does."""
    github = GitHub(pulls=[pull()])
    github.runs[77] = {"head_sha": SHA, "event": "pull_request", "run_attempt": 1}
    with serving(github):
        monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
        monkeypatch.setenv("GITHUB_API_URL", github.base)
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        monkeypatch.setenv("GITHUB_REPOSITORY", "owner/project")
        monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.example")
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
        monkeypatch.delenv("GITHUB_EVENT_PATH", raising=False)
        monkeypatch.chdir(tmp_path)
        (tmp_path / "torchgauge.yml").write_text(config_of("cpu"))
        yield github


def comment(tmp_path: Path, *more: str, told: dict | None = None, artifacts: Path | None = None):
    """Run the command on an event, with artifacts that lie there or are fetched."""
    path = tmp_path / "event.json"
    path.write_text(json.dumps(told or event()))
    given = ("--artifacts", str(artifacts)) if artifacts else ()
    return CliRunner().invoke(cli, ["ci", "report", "comment", "--event", str(path), *given, *more])


def text_of(folder: Path) -> str:
    """The comment about what lies in ``folder``."""
    return comment_text(gather(folder, RUN, PLAN), name="torchgauge", server=SERVER)


def regression(tmp_path: Path, pool: str = "cpu") -> Path:
    """A folder of artifacts with one regression."""
    gate_set(tmp_path / "artifacts", report(of(Verdict.REGRESSION)), pool)
    return tmp_path / "artifacts"


def test_a_fork_s_run_becomes_one_comment_and_one_check_run(tmp_path, github) -> None:
    """A second run of the step edits the comment in place and changes the check run."""
    done = comment(tmp_path, artifacts=regression(tmp_path))
    assert (done.exit_code, done.exception) == (0, None)
    assert [each["on"] for each in github.comments] == [5]
    text = github.comments[0]["body"]
    assert text.startswith("<!-- torchgauge:pr-gate:torchgauge -->\n### `torchgauge`: Regression")
    assert "**Regression**: 1 worse" in text
    host = "https://github.example"
    ours = f"{host}/owner/project"
    base = f"Base [`{BASE[:12]}`]({ours}/commit/{BASE}) of [`main`]({ours}/tree/main)"
    head = f"[`{SHA[:12]}`]({host}/{FORK}/commit/{SHA}) of [`topic`]({host}/{FORK}/tree/topic)"
    assert f"{base}, head {head}, measured alternately on one machine ([run](" in text
    assert "secrets.TOKEN" not in text + done.output  # the title of the pull request is not looked at
    assert [(each["conclusion"], each["head_sha"]) for each in github.check_runs] == [("failure", SHA)]
    assert comment(tmp_path, artifacts=tmp_path / "artifacts").exit_code == 0
    assert (len(github.comments), len(github.check_runs)) == (1, 1)
    assert TOKEN not in done.output + (tmp_path / "summary.md").read_text()


def test_what_a_set_says_of_its_code_makes_no_link(tmp_path) -> None:
    """Its commit is shown; its branch and its address are a stranger's words."""
    said = CodeSource(NEWER, "[x](https://evil.example)", "https://evil.example/owner/project")
    made = report(of(Verdict.UNCHANGED))
    made = replace(made, base=replace(made.base, source=said), head=replace(made.head, source=said))
    gate_set(tmp_path / "artifacts", made)
    text = text_of(tmp_path / "artifacts")
    assert f"Base `torch==2.12.0` (`{NEWER[:12]}`), head `torch==2.13.0` (`{NEWER[:12]}`)." in text
    assert "evil" not in text


@pytest.mark.parametrize(
    ("made", "conclusion"),
    [
        (report(of(Verdict.UNCHANGED)), "success"),
        (report(of(Verdict.REGRESSION)), "failure"),
        (report(of(Verdict.UNDECIDED, reason="too noisy")), "neutral"),
        (report(), "action_required"),
        (None, "action_required"),
    ],
)
def test_the_check_run_has_the_conclusion_of_the_verdict(tmp_path, github, made, conclusion) -> None:
    """Pass, regression, undecided, nothing compared, nothing measured."""
    gate_set(tmp_path / "artifacts", made, trouble="" if made else "torch==9: no such version")
    assert comment(tmp_path, artifacts=tmp_path / "artifacts").exit_code == 0
    assert [each["conclusion"] for each in github.check_runs] == [conclusion]
    assert ("no such version" in github.comments[0]["body"]) == (made is None)


def test_artifacts_are_fetched_without_showing_the_token(tmp_path, github) -> None:
    """By the run's number; others are passed over, and what is too large is not fetched but said."""
    (tmp_path / "torchgauge.yml").write_text(config_of("cpu", "npu"))
    folder = regression(tmp_path)
    github.zips[1] = zipped(folder / "pr-gate-v1-cpu")
    github.artifacts = [
        {"id": 1, "name": "pr-gate-v1-cpu", "size_in_bytes": 1000},
        {"id": 2, "name": "logs", "size_in_bytes": 1000},
        {"id": 0, "name": "pr-gate-v1-cpu", "size_in_bytes": 1000},
        {"id": 3, "name": "pr-gate-v1-npu", "size_in_bytes": 10**12},
    ]
    assert comment(tmp_path).exit_code == 0
    text = github.comments[0]["body"]
    assert "| `cpu` | Regression |" in text
    assert re.search(r"\| `npu` \| Incomplete: this is not a pass \| .*rejected", text)
    assert github.leaked == []
    assert [path for _, path in github.requests if path.startswith("/blob")] == ["/blob/1"]


def test_a_poisoned_artifact_is_no_pass_and_changes_nothing_else(tmp_path, github) -> None:
    """It is said to be rejected, with the reason, beside the pool that is fine."""
    (tmp_path / "torchgauge.yml").write_text(config_of("cpu", "npu"))
    gate_set(tmp_path / "artifacts", report(of(Verdict.UNCHANGED)), "cpu")
    bad = gate_set(tmp_path / "artifacts", report(of(Verdict.UNCHANGED)), "npu")
    (bad / "report.json").write_text('{"headline": "unchanged"}')
    assert comment(tmp_path, artifacts=tmp_path / "artifacts").exit_code == 0
    assert [each["conclusion"] for each in github.check_runs] == ["action_required"]
    text = github.comments[0]["body"]
    assert ("| `cpu` | Pass |" in text, "rejected (hash)" in text) == (True, True)


def test_a_run_that_submitted_nothing_is_said(tmp_path, github) -> None:
    """Silence is no pass."""
    assert comment(tmp_path).exit_code == 0
    assert "No valid result set was submitted" in github.comments[0]["body"]
    assert [each["conclusion"] for each in github.check_runs] == ["action_required"]


def test_a_set_of_another_commit_is_refused(tmp_path, github) -> None:
    """Whatever pull request it names: the commit is the run's."""
    folder = regression(tmp_path)
    manifest = folder / "pr-gate-v1-cpu" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(SHA, NEWER))
    assert comment(tmp_path, artifacts=folder).exit_code == 0
    assert "foreign_sha" in github.comments[0]["body"]


@pytest.mark.parametrize(
    ("pulls", "said"),
    [
        ([], "no open pull request"),
        ([pull(state="closed")], "no open pull request"),
        ([pull(), pull(6, base={"ref": "release"})], "2 open pull requests"),
        ([pull(sha=NEWER)], "a newer commit"),
        ([pull(head={"sha": SHA, "ref": "topic", "repo": {"full_name": "stranger/other"}})], "no open"),
        ([pull(head={"sha": SHA, "ref": "topic", "repo": None})], "no open pull request"),
    ],
)
def test_without_the_one_pull_request_nothing_is_written(tmp_path, github, pulls, said) -> None:
    """The summary says why."""
    github.pulls = pulls
    done = comment(tmp_path, artifacts=regression(tmp_path))
    assert (done.exit_code, github.writes()) == (0, [])
    assert said in done.output
    summary = (tmp_path / "summary.md").read_text()
    assert (said in summary, "**Regression**" in summary) == (True, True)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"event": "push"}, "not for a pull request"),
        ({"path": ".github/workflows/evil.yml"}, "file or name differs from the gate's"),
        ({"name": "another"}, "file or name differs from the gate's"),
        ({"conclusion": "skipped"}, "every job of the run was skipped"),
        ({"conclusion": "action_required"}, "waits for approval"),
        ({"status": "in_progress"}, "not ended"),
    ],
)
def test_a_run_of_something_else_is_passed_over(tmp_path, github, changes, said) -> None:
    """Before the API is asked anything."""
    done = comment(tmp_path, told=event(**changes))
    assert (done.exit_code, github.requests) == (0, [])
    assert said in done.output


def test_an_older_attempt_and_a_foreign_repository_are_passed_over(tmp_path, github) -> None:
    """The newest attempt will tell; another repository is none of ours."""
    github.runs[77]["run_attempt"] = 2
    done = comment(tmp_path, artifacts=regression(tmp_path))
    assert ("started again" in done.output, github.writes()) == (True, [])
    with pytest.raises(SkippedError, match="another repository"):
        gate_run(
            event() | {"repository": {"full_name": "evil/project", "default_branch": "main"}},
            "owner/project",
            *WORKFLOW,
        )


@pytest.mark.parametrize(
    "told",
    [
        {"action": "completed"},
        event(head_sha="main"),
        event(id="77"),
        event(head_repository=None),
        event(run_attempt=True),
    ],
)
def test_an_event_of_another_form_is_an_error(told) -> None:
    """With the field that is wrong."""
    with pytest.raises(DataFileError):
        gate_run(told, "owner/project", *WORKFLOW)


def test_only_our_own_comment_is_edited(tmp_path, github) -> None:
    """Somebody who writes our marker gets no comment of ours put into theirs."""
    marker = "<!-- torchgauge:pr-gate:torchgauge -->"
    github.comments = [
        {"id": 1, "on": 5, "user": {"login": "stranger"}, "body": marker + "\nfake"},
        {"id": 2, "on": 5, "user": {"login": BOT}, "body": "of another step"},
        {"id": 3, "on": 5, "user": {"login": BOT}, "body": marker + "\nold"},
    ]
    assert comment(tmp_path, artifacts=regression(tmp_path)).exit_code == 0
    assert len(github.comments) == 3
    changed = [each["id"] for each in github.comments if "Regression" in each["body"]]
    assert changed == [3]


def test_an_api_that_is_down_ends_with_3_and_writes_nothing(tmp_path, github) -> None:
    """After the summary, which then has all of it."""
    github.trouble = [Answer(200, []), Answer(200, {"jobs": []}), Answer(400, {"message": "no"})]
    done = comment(tmp_path, artifacts=regression(tmp_path))
    assert isinstance(done.exception, ApiError)
    assert (done.exception.exit_code, github.writes()) == (3, [])
    assert "**Regression**" in (tmp_path / "summary.md").read_text()


def test_a_thousand_cases_fit_into_one_comment(tmp_path) -> None:
    """Below 60,000 characters, with the worst ones first and a line on what was cut."""
    said = (Verdict.REGRESSION, Verdict.UNDECIDED)
    verdicts = [of(said[number % 2], f"model{number:04}" + "x" * 60) for number in range(1000)]
    gate_set(tmp_path / "artifacts", report(*verdicts))
    text = text_of(tmp_path / "artifacts")
    assert 45_000 < len(text) < LIMIT == 60_000
    assert re.search(r"\d+ more changed rows are cut", text)
    assert re.search(r"\d+ more unclear rows are cut", text)
    assert "500 worse" in text


def test_sixteen_pools_of_a_thousand_cases_fit_and_more_are_judged_and_counted(tmp_path) -> None:
    """Each of the worst sixteen keeps its line in the table."""
    gate_set(
        tmp_path / "a", report(*(of(Verdict.REGRESSION, f"m{number:04}") for number in range(1000))), "cpu"
    )
    gate_set(tmp_path / "a", report(of(Verdict.UNCHANGED)), "fine")
    found = gather(tmp_path / "a", RUN, GatePlan(("fine", "cpu")))
    fine, one = found.received
    received = (fine, *(replace(one, pool=f"pool-{number}") for number in range(16)))
    text = comment_text(replace(found, received=received), name="torchgauge", server=SERVER)
    assert len(text) < LIMIT
    assert all(f"| `pool-{number}` | Regression |" in text for number in range(16))
    assert "1 more pool is not shown: 1 Pass." in text


def test_a_pool_s_name_is_as_hostile_as_any(tmp_path) -> None:
    """An artifact's name is its job's."""
    folder = tmp_path / "artifacts" / "pr-gate-v1-@everyone"
    folder.mkdir(parents=True)
    assert "| `@everyone` | Incomplete: this is not a pass |" in text_of(tmp_path / "artifacts")


def test_the_policy_of_the_base_decides_what_gates(tmp_path, github) -> None:
    """A pull request that tells its own judge to look away is looked at all the same."""
    gate_set(tmp_path / "artifacts", report(of(Verdict.REGRESSION, action=Action.IGNORE)))
    assert comment(tmp_path, artifacts=tmp_path / "artifacts").exit_code == 0
    (tmp_path / "policy.yaml").write_text("defaults: {tolerance: 0.02}\n")
    words = ("--policy", str(tmp_path / "policy.yaml"))
    assert comment(tmp_path, *words, artifacts=tmp_path / "artifacts").exit_code == 0
    assert [each["conclusion"] for each in github.check_runs] == ["failure"]
    assert "Regression" in github.comments[0]["body"]


def test_the_built_in_policy_can_be_asked_for(tmp_path, github) -> None:
    """Without a file of the base, what a pull request says of itself does not decide either."""
    gate_set(tmp_path / "artifacts", report(of(Verdict.REGRESSION, action=Action.IGNORE)))
    assert comment(tmp_path, "--policy", "default", artifacts=tmp_path / "artifacts").exit_code == 0
    assert [each["conclusion"] for each in github.check_runs] == ["failure"]


def test_a_dry_run_writes_nothing(tmp_path, github) -> None:
    """And prints the comment."""
    done = comment(tmp_path, "--dry-run", artifacts=regression(tmp_path))
    assert (done.exit_code, github.requests) == (0, [])
    assert done.output.startswith("<!-- torchgauge:pr-gate:torchgauge -->")


def test_a_name_that_would_end_the_marker_is_refused(tmp_path, github) -> None:
    """It stands in a comment of HTML."""
    assert comment(tmp_path, "--name", "x -->").exit_code != 0
    assert github.requests == []

"""Who may use which pool: every decision by itself, and the facts as events and the API give them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parent))

from gate_parts import NEWER, SHA, pull
from github_server import TOKEN, Answer, GitHub, serving

from torchgauge.cli.main import cli
from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.workflows.allowed import WRITERS, Facts, decide
from torchgauge.workflows.github_api import ApiError

PUSHED = Facts("pull_request", "synchronize", 5, True, SHA, event_sha=SHA)
LABELLED = replace(PUSHED, action="labeled", label_put=True, label_there=True, actor_role="write")
ASKED = Facts(
    "issue_comment", "created", 5, True, SHA, actor_role="write", command=f"/torchgauge run npu {SHA}"
)


def allowed(facts: Facts, trust: str = "collaborators", **changes) -> bool:
    return decide(replace(facts, **changes), "npu", trust).allowed


def test_a_pool_for_anyone_takes_any_open_pull_request() -> None:
    """But no other event, and nothing that is closed."""
    assert allowed(PUSHED, "anyone")
    assert not allowed(PUSHED, "anyone", is_open=False)
    assert not allowed(PUSHED, "anyone", event="push")


@pytest.mark.parametrize("trust", ["anyone", "collaborators"])
def test_a_command_needs_a_role_that_may_write_whatever_the_pool_trusts(trust) -> None:
    """Its job is one of the default branch, which no approval of forks holds up; the reason is the check."""
    outcomes = {
        role: decide(replace(ASKED, actor_role=role), "npu", trust)
        for role in [*WRITERS, "triage", "read", ""]
    }
    assert {role for role, outcome in outcomes.items() if outcome.allowed} == WRITERS
    assert {outcome.reason for role, outcome in outcomes.items() if role not in WRITERS} == {
        "the author of the comment has no push permission for this repository"
    }


@pytest.mark.parametrize(
    ("role", "said"),
    [("admin", True), ("maintain", True), ("write", True), ("triage", False), ("read", False), ("", False)],
)
def test_a_collaborator_s_own_pull_request_needs_no_leave(role, said) -> None:
    """Whoever may push may let code run; nobody else may."""
    assert allowed(PUSHED, author_role=role) is said
    assert allowed(LABELLED, actor_role=role) is said
    assert allowed(ASKED, actor_role=role) is said


def test_a_label_counts_only_when_it_is_put() -> None:
    """A push after it is another event, in which it counts no more."""
    assert allowed(LABELLED)
    assert not allowed(LABELLED, action="synchronize", label_put=False)
    assert not allowed(LABELLED, label_there=False)
    assert not allowed(LABELLED, head_sha=NEWER)


@pytest.mark.parametrize(
    "command",
    [
        "/torchgauge run npu",
        f"/torchgauge run npu {SHA[:12]}",
        f"/torchgauge run npu {NEWER}",
        f"/torchgauge run cpu {SHA}",
        f"> /torchgauge run npu {SHA}",
        f"please /torchgauge run npu {SHA}",
        f"```\n/torchgauge run npu {SHA}\n```",
        f"thanks\n/torchgauge run npu {SHA}",
        f"\n/torchgauge run npu {SHA}",
        f"<!--\n/torchgauge run npu {SHA}\n-->",
        f"<details><pre>\n/torchgauge run npu {SHA}\n</pre>",
        f"> quoted\n\n/torchgauge run npu {SHA}",
        f"/torchgauge run cpu {SHA}\n/torchgauge run npu {SHA}",
        f"/torchgauge run npu {SHA} && rm -rf /",
        f"> a stranger's words\u2028/torchgauge run npu {SHA}",
        f"```\n~~~\n/torchgauge run npu {SHA}\n```",
        f"```\n```python\n/torchgauge run npu {SHA}\n```",
        "",
    ],
)
def test_a_command_names_this_commit_in_full_or_asks_for_nothing(command) -> None:
    """A shortened, another or a quoted one is none, nor is one below the first line."""
    assert not allowed(ASKED, command=command)


def test_a_command_is_bound_to_the_commit_that_it_names() -> None:
    """With words below it; a comment that was changed later asks for nothing."""
    assert allowed(ASKED, command=f"/torchgauge run npu {SHA}  \r\nthanks\r\nbye")
    assert not allowed(ASKED, action="edited")
    assert not allowed(ASKED, head_sha=NEWER)


@pytest.mark.parametrize("facts", [ASKED, LABELLED, replace(PUSHED, author_role="admin")])
def test_a_later_push_voids_a_leave(facts) -> None:
    """The decision is made again before the run, with what was allowed."""
    assert allowed(facts, approved_sha=SHA)
    assert not allowed(facts, approved_sha=NEWER)


@pytest.fixture
def github(monkeypatch, tmp_path) -> Iterator[GitHub]:
    """A server with a stranger's pull request, and two pools."""
    (tmp_path / "torchgauge.yml").write_text(
        "version: 1\ncampaign: {suites: [toy]}\npools:\n"
        "  - {name: cpu, device: fake, runs-on: ubuntu-latest, trust: anyone}\n"
        "  - {name: npu, device: fake, runs-on: [self-hosted, tg-npu]}\n"
    )
    github = GitHub(pulls=[pull()], roles={"reviewer": "write", "stranger": "read"})
    with serving(github):
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        monkeypatch.setenv("GITHUB_API_URL", github.base)
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        monkeypatch.setenv("GITHUB_REPOSITORY", "owner/project")
        monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
        monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
        monkeypatch.delenv("GITHUB_EVENT_NAME", raising=False)
        monkeypatch.chdir(tmp_path)
        yield github


def ask(tmp_path: Path, event: dict, pool: str = "npu", *more: str):
    (tmp_path / "event.json").write_text(json.dumps(event))
    words = ["ci", "allowed", "--event", str(tmp_path / "event.json"), "--pool", pool, "--json", *more]
    return CliRunner().invoke(cli, words)


def user(login: str, kind: str = "User") -> dict:
    return {"login": login, "type": kind}


def labelled(by: str, label: str = "torchgauge-run:npu", **fields) -> dict:
    told = {"action": "labeled", "pull_request": pull(), "label": {"name": label}, "sender": user(by)}
    return {**told, **fields}


def command(by: str, body: str) -> dict:
    return {
        "action": "created",
        "issue": {"number": 5, "pull_request": {"url": "x"}},
        "comment": {"user": user(by), "body": body, "performed_via_github_app": None},
    }


def test_events_become_decisions(tmp_path, github) -> None:
    """By the roles and the head that the API tells of now."""
    github.pulls[0]["labels"] = [{"name": "torchgauge-run:npu"}]
    pushed = {"action": "synchronize", "pull_request": pull()}
    found = {
        "push to cpu": ask(tmp_path, pushed, "cpu"),
        "push to npu": ask(tmp_path, pushed),
        "label by reviewer": ask(tmp_path, labelled("reviewer")),
        "label by stranger": ask(tmp_path, labelled("stranger")),
        "label of another pool": ask(tmp_path, labelled("reviewer", "torchgauge-run:cpu")),
        "command by reviewer": ask(tmp_path, command("reviewer", f"/torchgauge run npu {SHA}")),
        "command by stranger": ask(tmp_path, command("stranger", f"/torchgauge run npu {SHA}")),
        "command by nobody": ask(tmp_path, command("ghost", f"/torchgauge run npu {SHA}")),
    }
    assert {name for name, done in found.items() if json.loads(done.output)["allowed"]} == {
        "push to cpu",
        "label by reviewer",
        "command by reviewer",
    }
    github.pulls[0]["head"]["sha"] = NEWER
    assert not json.loads(ask(tmp_path, labelled("reviewer")).output)["allowed"]


@pytest.mark.parametrize("pool", ["cpu", "npu"])
def test_a_stranger_s_comment_runs_nothing_on_any_pool(tmp_path, github, pool) -> None:
    """Not at first and not at the second check: the author's role is read each time."""
    told = {
        (by, more): json.loads(
            ask(tmp_path, command(by, f"/torchgauge run {pool} {SHA}"), pool, *more).output
        )
        for by in ("stranger", "ghost", "reviewer")
        for more in ((), ("--approved-sha", SHA))
    }
    assert {by for (by, _), answer in told.items() if answer["allowed"]} == {"reviewer"}
    reasons = {answer["reason"] for (by, _), answer in told.items() if by == "reviewer"}
    assert reasons == {"a user with push permission approved this commit in a comment"}


def test_a_bot_lets_nothing_run_whatever_its_role(tmp_path, github) -> None:
    """It has read no commit, and strangers can make it write a comment or put a label."""
    bot = "helper[bot]"
    github.roles[bot] = "write"
    github.pulls[0]["labels"] = [{"name": "torchgauge-run:npu"}]
    for event in (labelled(bot), command(bot, f"/torchgauge run npu {SHA}")):
        assert not json.loads(ask(tmp_path, event).output)["allowed"]


@pytest.mark.parametrize(
    ("home", "said"), [("owner/project", True), ("reviewer/project", True), ("stranger/project", False)]
)
def test_an_author_answers_for_no_branch_of_a_stranger(tmp_path, github, home, said) -> None:
    """A stranger pushes to the branch of its fork, whoever opened the pull request of it."""
    github.pulls[0]["user"] = user("reviewer")
    github.pulls[0]["head"]["repo"] = {"full_name": home}
    pushed = {"action": "synchronize", "pull_request": pull()}
    assert json.loads(ask(tmp_path, pushed).output)["allowed"] is said
    github.pulls[0]["head"]["repo"] = None  # the fork is gone
    assert not json.loads(ask(tmp_path, pushed).output)["allowed"]


def test_the_trigger_that_gives_a_fork_a_token_that_writes_is_refused(tmp_path, github, monkeypatch) -> None:
    """Its event looks like that of a pull request, and nobody approves its runs for a fork."""
    opened = {"action": "opened", "pull_request": pull()}
    for name in ("pull_request_target", "pull_request_review", "issue_comment", "issues", "push", ""):
        monkeypatch.setenv("GITHUB_EVENT_NAME", name)
        assert isinstance(ask(tmp_path, opened, "cpu").exception, UsageError)
    assert not (tmp_path / "output").exists()
    monkeypatch.setenv("GITHUB_EVENT_NAME", "pull_request")
    assert json.loads(ask(tmp_path, opened, "cpu").output)["allowed"]


def test_a_second_check_of_no_commit_is_an_error(tmp_path, github) -> None:
    """An empty `--approved-sha` comes of an output that was lost, and would compare with nothing."""
    event = command("reviewer", f"/torchgauge run npu {SHA}")
    assert isinstance(ask(tmp_path, event, "npu", "--approved-sha", "").exception, UsageError)
    assert not (tmp_path / "output").exists()


def test_outputs_carry_the_commit_only_where_it_is_allowed(tmp_path, github) -> None:
    """What a job may check out."""
    ask(tmp_path, {"action": "opened", "pull_request": pull()}, "cpu")
    text = (tmp_path / "output").read_text()
    assert ("\ntrue\n" in text, f"\n{SHA}\n" in text) == (True, True)
    (tmp_path / "output").unlink()
    ask(tmp_path, {"action": "opened", "pull_request": pull()})
    text = (tmp_path / "output").read_text()
    assert ("\nfalse\n" in text, SHA in text) == (True, False)


def test_an_api_that_is_down_allows_nothing(tmp_path, github) -> None:
    """No output at all, and exit 3."""
    github.trouble = [Answer(400, {"message": "no"})]
    done = ask(tmp_path, labelled("reviewer"))
    assert isinstance(done.exception, ApiError)
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize("event", [{}, {"pull_request": {"number": 5}}, {"issue": {"number": 5}}])
def test_an_event_of_no_pull_request_is_an_error(tmp_path, github, event) -> None:
    """An issue's comment is none of a pull request."""
    assert isinstance(ask(tmp_path, event).exception, UsageError)


@pytest.mark.parametrize("kind", ["Bot", "Organization", None])
def test_whoever_is_no_person_lets_nothing_run(tmp_path, github, kind) -> None:
    """A bot may have a plain name and a role that writes; GitHub's own word for a person is `User`."""
    github.pulls[0] |= {"labels": [{"name": "torchgauge-run:npu"}], "user": user("reviewer", kind)}
    github.pulls[0]["head"]["repo"] = {"full_name": "owner/project"}
    comment = command("reviewer", f"/torchgauge run npu {SHA}")
    comment["comment"]["user"] = user("reviewer", kind)
    pushed = {"action": "synchronize", "pull_request": pull()}
    for event in (comment, labelled("reviewer", sender=user("reviewer", kind)), pushed):
        assert not json.loads(ask(tmp_path, event).output)["allowed"]


def test_an_app_that_comments_for_a_person_lets_nothing_run(tmp_path, github) -> None:
    """The comment has the person's name and role, and was written by a program."""
    event = command("reviewer", f"/torchgauge run npu {SHA}")
    event["comment"]["performed_via_github_app"] = {"slug": "helper"}
    assert not json.loads(ask(tmp_path, event).output)["allowed"]


@pytest.mark.parametrize(
    "fields", [{"labels": 7}, {"labels": [7]}, {"repo": "owner/project"}, {"repo": ["owner/project"]}]
)
def test_an_answer_of_another_form_allows_nothing(tmp_path, github, fields) -> None:
    """It is a decision like any other, with its reason."""
    github.pulls[0]["head"] |= fields
    github.pulls[0] |= fields
    assert not json.loads(ask(tmp_path, labelled("reviewer")).output)["allowed"]


def test_an_answer_without_a_head_is_a_failure_of_the_api(tmp_path, github) -> None:
    """One plain sentence, and 3."""
    github.pulls[0]["head"] = "main"
    assert isinstance(ask(tmp_path, labelled("reviewer")).exception, InfrastructureError)


@pytest.mark.parametrize("login", ["..", ".", "a/../b", "reviewer?x", ""])
def test_a_login_does_not_choose_the_path(tmp_path, github, login) -> None:
    """No role is read of what cannot be a person's name."""
    event = command(login, f"/torchgauge run npu {SHA}")
    assert not json.loads(ask(tmp_path, event).output)["allowed"]
    assert all("collaborators" not in path for _, path in github.requests)

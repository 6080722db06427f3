"""Whether a pull request may use a pool: a decision for one commit, and for no later one.

A pull request needs no leave for a pool that anyone may use. Another pool runs what a collaborator wrote, or
what a collaborator has read: by a command that names the commit in full, or by a label. A label counts only
in the event of its own putting, which carries the head of that moment, and while it is there. Whatever is
pushed later voids the leave, because the leave is for a commit and the decision is made again before the run.

For every pool, a command counts only from a collaborator: its job runs on the default branch, where GitHub's
approval for forks does not apply. A bot cannot give permission: it has not read the commit, and strangers can
make it comment.

``decide`` is pure; ``facts_of`` reads what it needs from the event and the API.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.workflows.github_api import ApiError, GitHubApi, is_sha, repository_path, segment

WRITERS = frozenset({"admin", "maintain", "write"})
"""Roles that may push, and so may let code run."""
COMMAND = "/torchgauge run"
LABEL_PREFIX = "torchgauge-run:"
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
"""Matches a person's login. A bot's login has a bracket, and dots could address another path of the API."""
_COMMAND = re.compile(r"/torchgauge +run +(?P<pool>[a-z0-9-]{1,40})(?: +(?P<sha>[0-9A-Za-z]{1,64}))? *")


@dataclass(frozen=True)
class Facts:
    """What is known of a request.

    ``head_sha`` is the head as the API says now, ``event_sha`` as the event says. ``author_role`` is the role
    of who opened the pull request, empty where its branch is neither theirs nor this repository's;
    ``actor_role`` that of who wrote the comment ``command`` or put the label. ``label_put`` says that this
    event is the putting of our label, ``label_there`` that it is still there. ``approved_sha`` is what was
    allowed earlier.
    """

    event: str
    action: str
    number: int
    is_open: bool
    head_sha: str
    event_sha: str = ""
    author_role: str = ""
    actor_role: str = ""
    command: str = ""
    label_put: bool = False
    label_there: bool = False
    approved_sha: str = ""


@dataclass(frozen=True)
class Decision:
    """Whether the pool may run ``head_sha``, and why or why not."""

    allowed: bool
    head_sha: str
    reason: str


def decide(facts: Facts, pool: str, trust: str) -> Decision:
    """The decision for ``pool``, which trusts ``anyone`` or ``collaborators``."""
    sha = facts.head_sha
    if not facts.is_open:
        return Decision(False, sha, "the pull request is not open")
    if not is_sha(sha):
        return Decision(False, "", "the head of the pull request is unknown")
    if facts.approved_sha and facts.approved_sha != sha:
        return Decision(False, sha, "a commit was pushed after the approval, so the approval expired")
    if facts.event_sha and facts.event_sha != sha:
        return Decision(False, sha, "a newer commit is the head of the pull request: see that commit's run")
    if facts.event == "issue_comment":
        return _by_command(facts, pool)
    if facts.event != "pull_request":
        return Decision(False, sha, "only events of a pull request or of a comment on one can request a pool")
    if trust == "anyone":
        return Decision(True, sha, f"pool {pool} is open to anyone")
    if facts.author_role in WRITERS:
        return Decision(True, sha, "the author may push to this repository")
    return _by_label(facts, pool)


def asks(body: str, pool: str) -> bool:
    """Return whether the comment ``body`` asks for ``pool``."""
    return _command(body).get("pool") == pool


def _by_command(facts: Facts, pool: str) -> Decision:
    sha = facts.head_sha
    if facts.action != "created":
        return Decision(False, sha, "an edited comment is ignored: write a new one")
    if not asks(facts.command, pool):
        reason = f"the comment does not begin with the command for pool {pool}: {COMMAND} {pool} COMMIT"
        return Decision(False, sha, reason)
    if facts.actor_role not in WRITERS:
        reason = "the author of the comment has no push permission for this repository"
        return Decision(False, sha, reason)
    named = _command(facts.command)["sha"] or ""
    if not is_sha(named):
        return Decision(
            False, sha, f"the command needs the reviewed commit with all 40 digits: {COMMAND} {pool} COMMIT"
        )
    if named != sha:
        return Decision(False, sha, "the commit in the comment is not the head of the pull request")
    return Decision(True, sha, "a user with push permission approved this commit in a comment")


def _by_label(facts: Facts, pool: str) -> Decision:
    sha = facts.head_sha
    if not facts.label_put:
        wanted = f"`{COMMAND} {pool} COMMIT`, or the label {LABEL_PREFIX}{pool}, added again after each push"
        return Decision(False, sha, f"no user with push permission approved this commit: {wanted}")
    if facts.actor_role not in WRITERS:
        return Decision(False, sha, "the user who added the label has no push permission for this repository")
    if not facts.label_there:
        return Decision(False, sha, "the label was removed")
    return Decision(True, sha, "a user with push permission added the label for this commit")


def _command(body: str) -> dict[str, str | None]:
    """Return the command that is the whole first line of ``body``; empty where that is another text.

    Nothing can stand before it: a quotation, a code block, a comment or a fold may hold a stranger's words.
    """
    match = _COMMAND.fullmatch(re.split(r"\r?\n", body, maxsplit=1)[0])
    return match.groupdict() if match else {}


def facts_of(api: GitHubApi, event: Mapping[str, Any], repository: str, pool: str, trust: str) -> Facts:
    """Return what ``event`` and the API contain; raises :class:`UsageError`, :class:`InfrastructureError`.

    Roles are only asked for where the decision needs them.
    """
    name, number, event_sha = pull_request_in(event)
    home = repository_path(repository)
    told = api.get(f"{home}/pulls/{number}")
    head = told.get("head") if isinstance(told, dict) else None
    if not isinstance(head, dict):
        problem = f"the response of GitHub's API does not describe pull request {number}"
        raise InfrastructureError(problem, hint="start the job again")
    facts = Facts(
        event=name,
        action=str(event.get("action", "")),
        number=number,
        is_open=told.get("state") == "open",
        head_sha=str(head.get("sha", "")),
        event_sha=event_sha,
    )
    if name == "issue_comment":
        comment = event.get("comment")
        comment = comment if isinstance(comment, dict) else {}
        facts = replace(facts, command=str(comment.get("body") or ""))
        if asks(facts.command, pool):
            facts = replace(facts, actor_role=role_of(api, home, _person(comment)))
        return facts
    if trust == "anyone":
        return facts
    author, home_of_head = _person(told), head.get("repo")
    branch_of = str(home_of_head.get("full_name", "")) if isinstance(home_of_head, dict) else ""
    if branch_of == repository or branch_of.partition("/")[0] == author:
        facts = replace(facts, author_role=role_of(api, home, author))
    label = event.get("label")
    if facts.author_role in WRITERS or facts.action != "labeled" or not isinstance(label, dict):
        return facts
    if label.get("name") != LABEL_PREFIX + pool:
        return facts
    labels = told.get("labels")
    labels = labels if isinstance(labels, list) else []
    there = any(isinstance(each, dict) and each.get("name") == label["name"] for each in labels)
    actor_role = role_of(api, home, _person(event, "sender"))
    return replace(facts, label_put=True, label_there=there, actor_role=actor_role)


def role_of(api: GitHubApi, home: str, login: str) -> str:
    """The role of ``login`` in the repository; empty for nobody, for a bot and for who is not known."""
    if not _LOGIN.fullmatch(login):
        return ""
    try:
        told = api.get(f"{home}/collaborators/{segment(login)}/permission")
    except ApiError as error:
        if error.status == 404:
            return ""
        raise
    told = told if isinstance(told, dict) else {}
    # `permission` folds maintain into write and triage into read; `role_name` may be an organisation's own
    return str(told.get("permission") or "")


def pull_request_in(event: Mapping[str, Any]) -> tuple[str, int, str]:
    """Return the kind of the event, the number of the pull request, and its head as the event says.

    Raises :class:`UsageError` for an event about anything else.
    """
    request, issue = event.get("pull_request"), event.get("issue")
    if isinstance(request, dict):
        head = request.get("head")
        number, sha = request.get("number"), head.get("sha") if isinstance(head, dict) else None
        if isinstance(number, int) and number > 0 and is_sha(sha):
            return "pull_request", number, str(sha)
    elif isinstance(issue, dict) and isinstance(issue.get("pull_request"), dict):
        number = issue.get("number")
        if isinstance(number, int) and number > 0:
            return "issue_comment", number, ""
    raise UsageError(
        "the event is not about a pull request", hint="start the workflow on pull_request or issue_comment"
    )


def _person(told: Mapping[str, Any], field: str = "user") -> str:
    """Return the login of the person in ``field``; empty for a bot, an organisation and an app's act."""
    user, app = told.get(field), told.get("performed_via_github_app")
    if isinstance(user, dict) and user.get("type") == "User" and app is None:
        return str(user.get("login", ""))
    return ""

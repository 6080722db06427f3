"""Which pull request a run belongs to, as the API says now.

An artifact may claim any number, and GitHub leaves the list in the event empty for forks. So the pull request
is looked up by the repository and the branch of the head, and its present head must be the commit that ran.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torchgauge.counted import counted
from torchgauge.workflows.github_api import GitHubApi, repository_path
from torchgauge.workflows.workflow_event import GateRun, SkippedError


@dataclass(frozen=True)
class PullRequest:
    """One open pull request."""

    number: int
    head_sha: str
    base_branch: str
    base_sha: str = ""


def pull_request_of(api: GitHubApi, run: GateRun) -> PullRequest:
    """The one open pull request whose head is the commit of ``run``.

    Raises :class:`SkippedError` where there is none, more than one, or a newer commit, and
    :class:`ApiError`.
    """
    owner = run.head_repository.partition("/")[0]
    listed = api.pages(
        f"{repository_path(run.repository)}/pulls", state="open", head=f"{owner}:{run.head_branch}"
    )
    of_branch = [each for each in listed if each.get("state") == "open" and _is_from(each, run)]
    found = [each for each in of_branch if each["head"]["sha"] == run.head_sha]
    if len(found) > 1:
        raise SkippedError(
            f"{counted(len(found), 'open pull request has', 'open pull requests have')} "
            "this commit as their head"
        )
    if not found and of_branch:
        raise SkippedError("a newer commit is the head of the pull request: see that commit's run")
    if not found:
        raise SkippedError("no open pull request has this commit as its head")
    base = found[0]["base"]
    return PullRequest(
        int(found[0]["number"]), run.head_sha, str(base.get("ref", "")), str(base.get("sha", ""))
    )


def check_attempt(api: GitHubApi, run: GateRun) -> None:
    """Raise :class:`SkippedError` where the API knows another state of the run than the event does."""
    told = api.get(f"{repository_path(run.repository)}/actions/runs/{run.run_id}")
    told = told if isinstance(told, dict) else {}
    if told.get("head_sha") != run.head_sha or told.get("event") != "pull_request":
        raise SkippedError("the GitHub API reports another commit or event for this run")
    if told.get("run_attempt") != run.attempt:
        raise SkippedError("the run was started again: see the newer attempt")


def _is_from(listed: dict[str, Any], run: GateRun) -> bool:
    head, base = listed.get("head"), listed.get("base")
    if not isinstance(head, dict) or not isinstance(base, dict):
        return False
    home = head.get("repo")
    name = home.get("full_name", "") if isinstance(home, dict) else ""  # null where the fork is gone
    return bool(str(name).lower() == run.head_repository.lower() and head.get("ref") == run.head_branch)

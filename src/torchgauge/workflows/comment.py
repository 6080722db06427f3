"""The trusted half of the gate of a pull request: read what was submitted, write one comment and a check run.

Nothing here runs or unpacks what a pull request brought. Every text of it goes through the same code spans as
any report, and what decides (which pull request, which commit) comes from the event and the API alone.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from torchgauge.records.comparison import CodeSource
from torchgauge.results import document
from torchgauge.results.comparing.gate_verdict import GateVerdict
from torchgauge.results.document import Ours
from torchgauge.results.hostile_text import first_line
from torchgauge.results.reports.markdown import render
from torchgauge.workflows.check_run import put_check_run
from torchgauge.workflows.gate import beginning
from torchgauge.workflows.gate_base import shown_branch
from torchgauge.workflows.gate_received import Gathered, Received
from torchgauge.workflows.gate_verdict import TITLES
from torchgauge.workflows.github_api import GitHubApi, repository_path
from torchgauge.workflows.pull_request import PullRequest, check_attempt, pull_request_of
from torchgauge.workflows.workflow_event import GateRun, SkippedError

LIMIT = 60_000
"""Characters of a comment; GitHub takes 65,536."""
BOT = "github-actions[bot]"
"""Who writes with the token of a workflow."""
MOST_POOLS = 16
"""Pools that a comment shows, the worst first; the others are counted, and all of them are judged."""
_HEAD_ROOM = 4_000
"""Characters kept for everything around the reports."""
_ROW = 600
"""Characters that a line of the table of pools may need."""


@dataclass(frozen=True)
class Posted:
    """What the comment job did."""

    pull_request: int
    comment_id: int
    verdict: GateVerdict
    body: str
    edited: bool


def comment_on(api: GitHubApi, found: Gathered, *, name: str, server: str, bot: str = BOT) -> Posted:
    """Write the comment and the check run of the run in ``found``.

    Raises :class:`SkippedError` where there is no pull request to write to, and :class:`ApiError`.
    """
    run, title = found.run, found.plan.title(name)
    check_attempt(api, run)
    request = pull_request_of(api, run)
    other = request.base_branch != run.default_branch
    if found.plan.base != (shown_branch(request.base_branch) if other else ""):
        raise SkippedError("the base of the pull request changed: push a new commit")
    url = f"{server}/{run.repository}/actions/runs/{run.run_id}"
    body = comment_text(found, name=name, server=server)
    number, edited = _put(api, run, request, body, first=marker(title), bot=bot)
    put_check_run(api, run, title, found.verdict, summary=body, details_url=url)
    return Posted(request.number, number, found.verdict, body, edited)


def comment_text(found: Gathered, *, name: str, server: str) -> str:
    """Return the comment, at most :data:`LIMIT` characters; a line counts the rows that do not fit.

    Base and head are those of the API; addresses begin with that of ``server``.
    """
    run, title, request = found.run, found.plan.title(name), found.plan.request
    head = CodeSource(run.head_sha, run.head_branch, f"{server}/{run.head_repository}")
    base = (
        CodeSource(request.base_sha, request.base_branch, f"{server}/{run.repository}") if request else None
    )
    order = list(GateVerdict)
    shown = sorted(found.received, key=lambda each: order.index(each.verdict))[:MOST_POOLS]
    rest = Counter(each.verdict for each in found.received)
    rest.subtract(each.verdict for each in shown)
    room = LIMIT - _HEAD_ROOM - _ROW * len(shown)
    text = document.markdown(
        "workflows/comment",
        found=found,
        title=title,
        titles=TITLES,
        marker=Ours(marker(title)),
        url=Ours(f"{server}/{run.repository}/actions/runs/{run.run_id}"),
        base=base,
        head=head,
        absent=any(each.found is None or each.missing for each in found.received),
        shown=shown,
        rest=[(each, rest[each]) for each in GateVerdict if rest[each]],
        sections=[(each, _told(each, room // len(shown))) for each in shown if each.found is not None],
    )
    return beginning(text, LIMIT)  # a belt beside the braces above: half a comment beats a refused one


def marker(name: str) -> str:
    """The hidden first line by which a later run finds its comment again."""
    return f"<!-- torchgauge:pr-gate:{name} -->"


def _told(received: Received, room: int) -> str:
    """The report of a pool in ``room`` characters, without its marker; or why nothing was measured."""
    assert received.found is not None
    if received.found.manifest.trouble:
        return first_line(received.found.manifest.trouble)
    again = ("torchgauge", "ci", "gate", "--pool", received.pool)
    return Ours(render(replace(received.found.report, command=again), room).partition("\n")[2])


def _put(
    api: GitHubApi, run: GateRun, request: PullRequest, body: str, *, first: str, bot: str
) -> tuple[int, bool]:
    """Change our comment, or make it; its number, and whether it was there."""
    home = repository_path(run.repository)
    for each in api.pages(f"{home}/issues/{request.number}/comments"):
        author = each.get("user")
        ours = isinstance(author, dict) and author.get("login") == bot
        if ours and str(each.get("body", "")).startswith(first):
            number = int(each["id"])
            api.send("PATCH", f"{home}/issues/comments/{number}", {"body": body})
            return number, True
    made = api.send("POST", f"{home}/issues/{request.number}/comments", {"body": body})
    return int(made["id"]), False

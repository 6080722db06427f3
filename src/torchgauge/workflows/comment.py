"""The trusted half of the gate of a pull request: read what was handed in, write one comment and a check run.

Nothing here runs or unpacks what a pull request brought. Every text of it goes through the same code spans as
any report, and what decides (which pull request, which commit) comes from the event and the API alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torchgauge.results.comparing.gate_verdict import GateVerdict
from torchgauge.results.hostile_text import first_line
from torchgauge.results.markdown_text import code, table
from torchgauge.results.reports.markdown import render
from torchgauge.workflows.check_run import put_check_run
from torchgauge.workflows.gate_base import shown_branch
from torchgauge.workflows.gate_handed import Gathered, Handed
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
MOST_CASES = 3
"""Missing cases that the line of a pool names."""
_HEAD_ROOM = 4_000
"""Characters kept for everything around the reports."""
_ROW = 600
"""Characters that a line of the table of pools may need."""
_ADVICE = (
    "What is missing is no pass: start the jobs that failed again on the page of the run, or push the commit"
    " anew. A pool that is gone for good is taken out of `torchgauge.yml` on the default branch."
)


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
        raise SkippedError("the pull request has another base by now: push its commit anew")
    url = f"{server}/{run.repository}/actions/runs/{run.run_id}"
    body = comment_text(found, name=name, url=url)
    number, edited = _put(api, run, request, body, first=marker(title), bot=bot)
    put_check_run(api, run, title, found.verdict, summary=body, details_url=url)
    return Posted(request.number, number, found.verdict, body, edited)


def comment_text(found: Gathered, *, name: str, url: str, limit: int = LIMIT) -> str:
    """The comment, at most ``limit`` characters; rows that do not fit are counted in a line."""
    title = found.plan.title(name)
    order = list(GateVerdict)
    shown = sorted(found.handed, key=lambda each: order.index(each.verdict))[:MOST_POOLS]
    start = [marker(title), f"### {code(title, 90)}: {TITLES[found.verdict]}", ""]
    start.append(f"Measured at {code(found.run.head_sha)}, base and head on the same machine ([run]({url})).")
    start += _missing(found)
    rows = [[code(each.pool, 60), TITLES[each.verdict], _about(each)] for each in shown]
    start += ["", *table(["pool", "verdict", "base -> head"], rows), ""] if rows else [""]
    start += _uncounted(found.handed, shown)
    room = limit - _HEAD_ROOM - _ROW * len(shown)
    parts = [_section(each, room // len(shown)) for each in shown]
    text = "\n".join([*start, *parts]).rstrip() + "\n"
    if len(text) > limit:  # a belt beside the braces above: half a comment is better than a refused one
        note = "\n\nThe rest of this comment is cut; the artifact has all of it.\n"
        text = text[: limit - len(note)].rsplit("\n", 1)[0] + note
    return text


def marker(name: str) -> str:
    """The hidden first line by which a later run finds its comment again."""
    return f"<!-- torchgauge:pr-gate:{name} -->"


def _missing(found: Gathered) -> list[str]:
    """What is wrong beyond the numbers, and what to try; nothing where nothing is."""
    lines = [f"Not every job ended well: {code(found.trouble, 600)}."] if found.trouble else []
    if found.plan.unknown:
        lines.append(f"Which cases were to come is not known here: {code(found.plan.unknown, 300)}.")
    if not found.plan.pools:
        lines.append("No pool was planned: `torchgauge.yml` has none that anyone may use.")
    elif all(each.found is None for each in found.handed):
        lines.append("No valid result set was handed in: there is no number to judge.")
    absent = any(each.found is None or each.missing for each in found.handed)
    return [*lines, _ADVICE] if lines or absent else []


def _uncounted(handed: Sequence[Handed], shown: Sequence[Handed]) -> list[str]:
    """How the pools that are not shown ended."""
    rest = Counter(each.verdict for each in handed)
    rest.subtract(each.verdict for each in shown)
    told = ", ".join(f"{rest[each]} {TITLES[each]}" for each in GateVerdict if rest[each])
    return [f"{len(handed) - len(shown)} more pools are not shown: {told}.", ""] if told else []


def _about(handed: Handed) -> str:
    if handed.found is None:
        return code(handed.trouble, 300)
    manifest = handed.found.manifest
    sides = f"{code(manifest.base, 80)} -> {code(manifest.head, 80)}"
    if not handed.missing:
        return sides
    named = ", ".join(code(case, 120) for case in handed.missing[:MOST_CASES])
    return f"{sides}; {len(handed.missing)} of {handed.planned} planned cases are missing: {named}"


def _section(handed: Handed, room: int) -> str:
    if handed.found is None:
        return ""
    if handed.found.manifest.trouble:
        why = code(first_line(handed.found.manifest.trouble))
        return f"{code(handed.pool, 60)} could not be measured: {why}\n"
    again = ("torchgauge", "ci", "gate", "--pool", handed.pool)
    text = render(replace(handed.found.report, command=again), room)
    body = text.partition("\n")[2]  # the report's own marker: the comment has one of its own
    return f"#### {code(handed.pool, 60)}\n\n{body}"


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

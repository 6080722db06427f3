"""The trusted half of the gate of a pull request: read what was handed in, write one comment and a check run.

Nothing here runs or unpacks what a pull request brought. Every text of it goes through the same code spans as
any report, and what decides (which pull request, which commit) comes from the event and the API alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchgauge.results.comparing.gate_verdict import GateVerdict, worst
from torchgauge.results.comparing.policy import Policy
from torchgauge.results.hostile_text import first_line
from torchgauge.results.reports.markdown import render
from torchgauge.results.reports.markdown_text import code, table
from torchgauge.workflows.check_run import put_check_run
from torchgauge.workflows.gate_set import ARTIFACT_PREFIX, POOL, GateSet, Origin, read_gate_set
from torchgauge.workflows.gate_verdict import TITLES
from torchgauge.workflows.github_api import GitHubApi, repository_path
from torchgauge.workflows.ingest.refusal import RefusedSetError
from torchgauge.workflows.pull_request import PullRequest, check_attempt, pull_request_of
from torchgauge.workflows.workflow_event import GateRun

LIMIT = 60_000
"""Characters of a comment; GitHub takes 65,536."""
BOT = "github-actions[bot]"
"""Who writes with the token of a workflow."""
MOST_POOLS = 16
MOST_PACKED = 32 * 1024 * 1024
"""Bytes of a packed artifact that is downloaded at all."""
_HEAD_ROOM = 4_000
"""Characters kept for everything around the reports."""
_ROW = 400
"""Characters that a line of the table of pools may need."""


@dataclass(frozen=True)
class Handed:
    """What one pool handed in: its set, or in ``trouble`` why there is none."""

    pool: str
    found: GateSet | None
    trouble: str = ""

    @property
    def verdict(self) -> GateVerdict:
        """The set's verdict; what was refused is incomplete."""
        return GateVerdict.INCOMPLETE if self.found is None else self.found.verdict


@dataclass(frozen=True)
class Posted:
    """What the comment job did."""

    pull_request: int
    comment_id: int
    verdict: GateVerdict
    body: str
    edited: bool


def handed_in(folder: Path, run: GateRun, policy: Policy | None = None) -> list[Handed]:
    """What lies in ``folder``: one zip or one folder for each artifact, named after it, each looked at.

    Other artifacts of the run are passed over: a gate may keep logs beside its sets. With ``policy``, that of
    the base, verdicts gate as it says: a pull request may have brought another one.
    """
    names: dict[str, list[Path]] = {}
    for each in sorted(folder.iterdir()) if folder.is_dir() else []:
        name = each.name.removesuffix(".zip")
        if name.startswith(ARTIFACT_PREFIX):
            names.setdefault(name.removeprefix(ARTIFACT_PREFIX), []).append(each)
    return [_read(pool, paths, run, policy) for pool, paths in list(names.items())[: MOST_POOLS + 1]]


def download(api: GitHubApi, run: GateRun, folder: Path) -> None:
    """Fetch the zips of the gate's artifacts of ``run`` into ``folder``; raises :class:`ApiError`.

    Of two with one name, which two attempts may leave, the later one is fetched.
    One that is too large is left as an empty file, which is refused and said.
    """
    home = repository_path(run.repository)
    listed = api.pages(f"{home}/actions/runs/{run.run_id}/artifacts", "artifacts")
    wanted: dict[str, dict[str, Any]] = {}
    for each in sorted(listed, key=lambda found: int(found["id"])):  # a later attempt's is the later one
        if str(each.get("name", "")).startswith(ARTIFACT_PREFIX):
            wanted[str(each["name"])] = each
    for number, each in enumerate(list(wanted.values())[: MOST_POOLS + 1]):
        pool = str(each["name"]).removeprefix(ARTIFACT_PREFIX)
        named = pool if POOL.fullmatch(pool) else f"{number}-not-a-pool"
        path = folder / f"{ARTIFACT_PREFIX}{named}.zip"
        size = each.get("size_in_bytes")
        small = isinstance(size, int) and 0 < size <= MOST_PACKED and not each.get("expired")
        data = api.download(f"{home}/actions/artifacts/{int(each['id'])}/zip", MOST_PACKED) if small else b""
        path.write_bytes(data)


def comment_on(
    api: GitHubApi,
    run: GateRun,
    handed: Sequence[Handed],
    *,
    name: str,
    server: str,
    bot: str = BOT,
) -> Posted:
    """Write the comment and the check run of ``run``.

    Raises :class:`SkippedError` where there is no pull request to write to, and :class:`ApiError`.
    """
    check_attempt(api, run)
    request = pull_request_of(api, run)
    verdict = worst(each.verdict for each in handed)
    url = f"{server}/{run.repository}/actions/runs/{run.run_id}"
    body = comment_text(run, handed, name=name, url=url)
    number, edited = _put(api, run, request, body, first=marker(name), bot=bot)
    put_check_run(api, run, name, verdict, summary=body, details_url=url)
    return Posted(request.number, number, verdict, body, edited)


def comment_text(run: GateRun, handed: Sequence[Handed], *, name: str, url: str, limit: int = LIMIT) -> str:
    """The comment, at most ``limit`` characters; rows that do not fit are counted in a line."""
    verdict = worst(each.verdict for each in handed)
    shown = list(handed)[:MOST_POOLS]
    start = [marker(name), f"### {code(name, 60)}: {TITLES[verdict]}", ""]
    start.append(f"Measured at {code(run.head_sha)}, base and head on the same machine ([run]({url})).")
    if not handed:
        start.append("No result set was handed in: the job ended before it had measured anything.")
    rows = [[code(each.pool, 60), TITLES[each.verdict], _about(each)] for each in shown]
    start += ["", *table(["pool", "verdict", "base -> head"], rows), ""] if rows else [""]
    if len(handed) > len(shown):
        start.append(f"More than {MOST_POOLS} pools were handed in; the others are not shown.")
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


def _read(pool: str, paths: Sequence[Path], run: GateRun, policy: Policy | None) -> Handed:
    if len(paths) > 1 or POOL.fullmatch(pool) is None:
        return Handed(pool, None, "the artifact is there twice, or its name is no pool's")
    origin = Origin(run.repository, run.head_sha, run.run_id, run.attempt)
    try:
        return Handed(pool, read_gate_set(paths[0], origin, pool, policy))
    except RefusedSetError as error:
        return Handed(pool, None, f"the result set was rejected ({error.reason.value}): {error.detail}")


def _about(handed: Handed) -> str:
    if handed.found is None:
        return code(handed.trouble)
    manifest = handed.found.manifest
    return f"{code(manifest.base, 80)} -> {code(manifest.head, 80)}"


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

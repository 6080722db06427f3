"""Issues about what a night found: for each change of level, each cluster of failures, each absent pool.

An issue is found again by a hidden first line that names what it is about, by its label and by its author, so
that running twice writes nothing twice. It is closed once everything that it names was measured and is fine;
what a person closed stays closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from enum import Enum
from typing import Any

from torchgauge.counted import counted
from torchgauge.records import digest
from torchgauge.results.gain import change_text
from torchgauge.results.hostile_text import first_line
from torchgauge.results.markdown_text import code
from torchgauge.results.trends.trend_outcomes import TrendState
from torchgauge.workflows.comment import BOT
from torchgauge.workflows.gate import beginning, findings_text
from torchgauge.workflows.github_api import GitHubApi, repository_path
from torchgauge.workflows.night_changes import NightlyChange
from torchgauge.workflows.night_clusters import FailureCluster
from torchgauge.workflows.night_findings import AbsentPool, NightFindings

LABEL = "torchgauge"
MOST_NEW = 10
"""Issues that one night opens at most."""
DAYS = 30
"""A change that began longer ago opens no issue any more."""
MOST_MEMBERS = 1_000
MOST_BODY = 60_000
_STATES = {
    TrendState.CONFIRMED: "Confirmed",
    TrendState.SUSPECTED: "Suspected",
    TrendState.NOT_CONFIRMABLE: "Not confirmable",
}
"""What the title of a change says, the worst of its cases first."""
_FIRST_LINE = re.compile(
    r"<!-- torchgauge:issue:v1 (?P<kind>failure|change|absence) (?P<key>[0-9a-f]{16})"
    r" (?P<state>open|closed) (?P<members>[0-9a-f]{16}(?:,[0-9a-f]{16})*) -->"
)


class Kind(str, Enum):
    """What an issue is about."""

    FAILURE = "failure"
    CHANGE = "change"
    ABSENCE = "absence"


class Do(str, Enum):
    """What is done about an issue."""

    OPEN = "open"
    UPDATE = "update"
    REOPEN = "reopen"
    CLOSE = "close"


@dataclass(frozen=True)
class Known:
    """An issue of ours; ``closed_by_us`` is false for one that a person closed."""

    number: int
    kind: Kind
    key: str
    members: tuple[str, ...]
    is_open: bool
    closed_by_us: bool
    title: str
    body: str


@dataclass(frozen=True)
class Wanted:
    """An issue as it should be."""

    kind: Kind
    key: str
    members: tuple[str, ...]
    title: str
    body: str


@dataclass(frozen=True)
class Step:
    """One thing to do; ``number`` is 0 for a new issue."""

    do: Do
    number: int
    title: str
    body: str
    note: str = ""


@dataclass(frozen=True)
class Steps:
    """What a night asks for; ``held_back`` counts issues beyond the cap, ``left`` those a person closed."""

    steps: tuple[Step, ...]
    held_back: int
    left: int


def plan_issues(
    found: NightFindings, known: Sequence[Known], *, most_new: int = MOST_NEW, url: str = ""
) -> Steps:
    """What to do so that the issues ``known`` say what the night ``found``; nothing where they already do."""
    steps: list[Step] = []
    new: list[Step] = []
    taken: set[int] = set()
    left = 0
    for wanted in wanted_issues(found, url):
        match = _match(wanted, [each for each in known if each.number not in taken])
        if match is None:
            if _is_recent(wanted, found):
                new.append(Step(Do.OPEN, 0, wanted.title, _body(wanted.kind, wanted.key, wanted)))
            continue
        taken.add(match.number)
        body = _body(match.kind, match.key, wanted)
        if match.is_open:
            if (match.title, match.body.strip()) != (wanted.title, body.strip()):
                steps.append(Step(Do.UPDATE, match.number, wanted.title, body))
        elif match.closed_by_us:
            note = f"The problem is back in campaign {code(found.campaign_id)}."
            steps.append(Step(Do.REOPEN, match.number, wanted.title, body, note))
        else:
            left += 1
    for each in known:
        if each.is_open and each.number not in taken and _is_over(each, found):
            body = each.body.replace(f" {each.key} open ", f" {each.key} closed ", 1)
            note = f"Everything in this issue was measured in campaign {code(found.campaign_id)} and is fine."
            steps.append(Step(Do.CLOSE, each.number, each.title, body, note))
    return Steps((*steps, *new[:most_new]), max(0, len(new) - most_new), left)


def wanted_issues(found: NightFindings, url: str = "") -> list[Wanted]:
    """An issue for each absent pool, change and cluster, the confirmed and the largest ones first."""
    changes = sorted(found.changes, key=lambda each: (not each.confirmed, -len(each.cases), each.key))
    return [
        *(_of_absence(each, url) for each in found.absent),
        *(_of_change(each, url) for each in changes),
        *(_of_cluster(each, url) for each in (*found.failures, *found.lost)),
    ]


def known_issues(api: GitHubApi, repository: str, bot: str = BOT) -> list[Known]:
    """All issues of ours, open and closed; raises :class:`ApiError`."""
    listed = api.pages(f"{repository_path(repository)}/issues", state="all", labels=LABEL)
    return [issue for each in listed if (issue := read_issue(each, bot)) is not None]


def read_issue(told: Mapping[str, Any], bot: str = BOT) -> Known | None:
    """The issue that the API tells of; None where it is a pull request, somebody else's or not about us."""
    author = told.get("user")
    if "pull_request" in told or not isinstance(author, dict) or author.get("login") != bot:
        return None
    body = str(told.get("body") or "").replace("\r\n", "\n")
    line = _FIRST_LINE.fullmatch(body.partition("\n")[0].strip())
    if line is None:
        return None
    return Known(
        number=int(told["number"]),
        kind=Kind(line["kind"]),
        key=line["key"],
        members=tuple(line["members"].split(",")),
        is_open=told.get("state") == "open",
        closed_by_us=line["state"] == "closed",
        title=str(told.get("title", "")),
        body=body,
    )


def apply_steps(api: GitHubApi, repository: str, steps: Iterable[Step]) -> list[int]:
    """Do ``steps`` one after the other; the numbers of the issues. Raises :class:`ApiError`."""
    home = f"{repository_path(repository)}/issues"
    numbers = []
    for step in steps:
        if step.do is Do.OPEN:
            made = api.send("POST", home, {"title": step.title, "body": step.body, "labels": [LABEL]})
            numbers.append(int(made["number"]))
            continue
        told: dict[str, Any] = {"title": step.title, "body": step.body}
        if step.do is Do.CLOSE:
            told |= {"state": "closed", "state_reason": "completed"}
        elif step.do is Do.REOPEN:
            told |= {"state": "open"}
        api.send("PATCH", f"{home}/{step.number}", told)
        if step.note:
            api.send("POST", f"{home}/{step.number}/comments", {"body": step.note})
        numbers.append(step.number)
    return numbers


def harmless_title(text: str, limit: int = 120) -> str:
    """``text`` as a title: one line in which nothing names a person, an issue or an expression."""
    line = first_line(text, limit)
    line = re.sub(r"([@#])(?=\w)", r"\1 ", line)
    line = line.replace("${{", "$ { {").replace("<!--", "< !--").replace("`", "'")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _of_absence(absent: AbsentPool, url: str) -> Wanted:
    title = harmless_title(f"Missing results of pool {absent.pool}")
    rule = (
        "Check the jobs of the pool; a queued job has no runner. torchgauge closes this issue once all "
        "results of the pool are in. For a retired pool: remove it from `torchgauge.yml` and close the issue."
    )
    key, told = _key_of(absent.pool), f"{code(absent.pool)}: {code(absent.told, 600)}"
    return Wanted(Kind.ABSENCE, key, (key,), title, _text(told, rule, url))


def _key_of(pool: str) -> str:
    return digest(["absence", pool])


def _of_change(change: NightlyChange, url: str) -> Wanted:
    states = {each.state for each in change.cases}
    state = next(word for each, word in _STATES.items() if each in states)
    worst = change.cases[0]
    others = f" and {len(change.cases) - 1} more" if len(change.cases) > 1 else ""
    title = harmless_title(
        f"{state}: {change.metric} {change_text(worst.size, worst.unit)} on {change.device} "
        f"since {change.date}: {worst.case_id}{others}",
        200,
    )
    told = findings_text((change,), ())
    rule = (
        "A suspected change is not a verdict: each nightly run, or `torchgauge results trend --confirm`, "
        "measures the last good build against the suspect build until there is an outcome. A confirmed "
        "change keeps the nightly gate red. torchgauge closes this issue once every series in it has "
        "recovered or was found to have another cause."
    )
    return Wanted(Kind.CHANGE, change.key, change.members, title, _text(told, rule, url))


def _of_cluster(cluster: FailureCluster, url: str) -> Wanted:
    count = len(cluster.cases)
    title = harmless_title(f"{cluster.ended} in {counted(count, 'case')}: {cluster.title}", 200)
    told = findings_text((), (cluster,))
    rule = "torchgauge closes this issue once every case in it ends as expected."
    return Wanted(Kind.FAILURE, cluster.key, cluster.members, title, _text(told, rule, url))


def _text(told: str, rule: str, url: str) -> str:
    """The visible part of a body: no night and no run number, so that it changes only with what it says."""
    where = f"\n\nDashboard: {url}" if url else ""
    most = MOST_BODY - 17 * MOST_MEMBERS - len(rule) - len(where) - 200
    return f"{beginning(told, most).rstrip()}\n\n{rule}{where}\n"


def _body(kind: Kind, key: str, wanted: Wanted) -> str:
    members = ",".join(sorted(set(wanted.members))[:MOST_MEMBERS])
    return f"<!-- torchgauge:issue:v1 {kind.value} {key} open {members} -->\n{wanted.body}"


def _match(wanted: Wanted, known: Sequence[Known]) -> Known | None:
    """The issue about the same thing: the same key, else an open one of the kind that shares a member.

    The night of a change may move as history grows, and a fingerprint with a new message is the same failure.
    """
    same = [each for each in known if each.kind is wanted.kind and each.key == wanted.key]
    if same:
        return max(same, key=lambda each: (each.is_open, each.number))
    shared = [
        each
        for each in known
        if each.kind is wanted.kind and each.is_open and not set(wanted.members).isdisjoint(each.members)
    ]
    return max(shared, key=lambda each: each.number, default=None)


def _is_recent(wanted: Wanted, found: NightFindings) -> bool:
    if wanted.kind is not Kind.CHANGE:
        return True
    change = next(each for each in found.changes if each.key == wanted.key)
    try:
        return date.fromisoformat(change.date) >= date.fromisoformat(found.night) - timedelta(days=DAYS)
    except ValueError:
        return True


def _is_over(known: Known, found: NightFindings) -> bool:
    fine = {
        Kind.FAILURE: found.passed,
        Kind.CHANGE: found.calm,
        Kind.ABSENCE: frozenset(map(_key_of, found.whole)),
    }
    return fine[known.kind].issuperset(known.members)

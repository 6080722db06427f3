"""Runs and provenance: which ran, how far they came, on what, and how to make one again.

``runs.html`` has the runs that are not finished, the last run of every device and suite, and the newest ones;
where there are more, every run is on the page of its month too.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchgauge.clock import utc
from torchgauge.dashboard.latest_results import Entry
from torchgauge.dashboard.pages import links
from torchgauge.dashboard.pages.environments import fact, plugin_of
from torchgauge.dashboard.plain_rows import Row
from torchgauge.dashboard.statuses import LOOKS
from torchgauge.dashboard.tally import Tally, tally_of_rows
from torchgauge.records import Status
from torchgauge.results import units
from torchgauge.results.hostile_text import first_line
from torchgauge.results.journal import RunState
from torchgauge.results.origin import OriginKind, origin_of
from torchgauge.results.store import RunInfo, Store

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

NEWEST = 60
"""Runs that the first page describes; the pages of months have all."""

NO_DATE = "unknown"
"""The month of runs that do not say when they were made."""

_STATES = {
    RunState.RUNNING: "running",
    RunState.INTERRUPTED: "interrupted",
    RunState.OUT_OF_BUDGET: "out of budget",
    RunState.COMPLETE: "ended",
}
"""The states in words; a run that ended may still be incomplete, which is said apart."""

_HEAD_BYTES = 1 << 16
_COMMAND = re.compile(r'"command"\s*:\s*(?=\[)')


@dataclass(frozen=True)
class EnvironmentLink:
    """An environment of a run, with what was observed then: its conditions and notes."""

    id: str
    href: str
    device: str
    conditions: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class RunLine:
    """One run in a table."""

    run_id: str
    anchor: str
    state: str
    published: bool
    at: float | None
    month: str
    planned: int
    recorded: int
    infra: int
    incomplete: bool
    problem: str
    remedy: str
    tally: Tally


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The page of runs, and one per month where there are more than it describes."""
    lines = [run_line(info, context.partial.get(info.run_id, 0)) for info in context.runs]
    page = _page(context, lines)
    yield "runs.html", context.renderer.page("runs", "runs.html", page=page).encode()
    known = {section["line"].run_id for section in page["sections"]}
    for month in page["months"]:
        members, file = [line for line in lines if line.month == month], f"runs/{month}.html"
        content = context.renderer.page(
            "runs_month", file, month=month, runs=members, known=known, section="runs.html"
        )
        yield file, content.encode()


def _page(context: SiteContext, lines: Sequence[RunLine]) -> dict[str, Any]:
    """What the first page says; ``months`` have how many runs they have."""
    by_id = dict(zip((info.run_id for info in context.runs), context.runs, strict=True))
    unfinished = [line for line in lines if not line.published]
    newest = [line for line in lines if line.published][:NEWEST]
    shown = [*sorted(unfinished, key=lambda line: not line.problem), *newest]
    there = {line.run_id for line in shown}
    older = [line for line in lines if line.run_id in context.described and line.run_id not in there]
    devices = _pages_of_plugins(context)
    months = Counter(line.month for line in lines) if len(lines) > len(shown) else Counter()
    return {
        "unfinished": shown[: len(unfinished)],
        "last": last_runs(context),
        "sections": [_section(context, line, by_id[line.run_id], devices) for line in shown],
        "older": older,
        "months": dict(sorted(months.items(), reverse=True)),
        "in_all": len(lines),
    }


def run_line(info: RunInfo, partial: int) -> RunLine:
    """One run as a table shows it; ``partial`` of its passes count as none."""
    by_status = {status: info.counts.get(status.value, 0) for status in LOOKS}
    counted = Tally(by_status, by_status[Status.PASS] - partial, {})
    recorded = info.recorded
    remedy = f"; try: {info.remedy}" if info.remedy else ""
    return RunLine(
        run_id=info.run_id,
        anchor=links.run_anchor(info.run_id),
        state=info.condition or ("unknown" if info.problem else _STATES[info.state]),
        published=info.published,
        at=info.created_at or None,
        month=f"{utc(info.created_at):%Y-%m}" if info.created_at else NO_DATE,
        planned=info.planned or recorded,
        recorded=recorded,
        infra=by_status[Status.INFRA],
        incomplete=bool(counted.incomplete) or recorded < info.planned,
        problem=f"{first_line(info.problem, 300)}{remedy}",
        remedy=info.remedy,
        tally=counted,
    )


def last_runs(context: SiteContext) -> list[dict[str, Any]]:
    """The newest run of every device and suite, by device; ``known`` cases say something."""
    members: dict[tuple[str, str], dict[str, list[Entry]]] = {}
    for entry in context.latest.entries.values():
        runs = members.setdefault((entry.column.device, entry.workload.suite), {})
        runs.setdefault(entry.newest["run_id"], []).append(entry)
    rank = {info.run_id: place for place, info in enumerate(context.runs)}
    found = []
    for (device, suite), runs in sorted(members.items()):
        run_id = min(runs, key=lambda run: rank.get(run, len(rank)))
        rows = [entry.newest for entry in runs[run_id]]
        counted = tally_of_rows(rows)
        found.append(
            {
                "device": device,
                "suite": suite,
                "run_id": run_id,
                "at": max(row["run_created_at"].timestamp() for row in rows),
                "took": _took(rows),
                "tally": counted,
                "known": counted.planned - counted.incomplete,
                "infra": counted.counts[Status.INFRA],
                "logs": any(row["log"] for row in rows),
            }
        )
    return found


def _took(rows: Iterable[Row]) -> str:
    """From the start of the first case to the end of the last; empty where none started."""
    spans = [(row["started_at"].timestamp(), row["duration_s"] or 0.0) for row in rows if row["started_at"]]
    if not spans:
        return ""
    return units.duration(max(start + took for start, took in spans) - min(start for start, _ in spans))


def _pages_of_plugins(context: SiteContext) -> Mapping[str, str]:
    """The device on whose page the environments of a plugin are: the first by name."""
    devices = sorted({case.device for case in context.case_index}, reverse=True)
    return {plugin_of(device): device for device in devices} | {device: device for device in devices}


def _section(
    context: SiteContext, line: RunLine, info: RunInfo, devices: Mapping[str, str]
) -> dict[str, Any]:
    """One run with all that is known of it; ``sha256`` is of its table of results."""
    folder = context.store.path / "runs" / info.run_id
    rows = context.environments.get(info.run_id, ())
    return {
        "line": line,
        "command": _command(context.store, info.run_id),
        "origin": _origin(context.store, info.run_id, rows),
        "sha256": _sha256(context.store, info),
        "logs": f"runs/{info.run_id}/logs" if (folder / "logs").is_dir() else "",
        "environments": _environment_links(rows, devices),
        "calibrations": context.calibrations.get(info.run_id, ()),
    }


def _origin(store: Store, run_id: str, facts: Sequence[Row]) -> str:
    """Return where the run came from."""
    forms = [fact(row["value"]) for row in facts if (row["key"], row["kind"]) == ("imported_as", "identity")]
    found = origin_of(store, run_id)
    if found.kind is OriginKind.OWN and forms:
        return f"imported file ({forms[0]})"
    return found.text


def _command(store: Store, run_id: str) -> str:
    """The command that made the run, from the beginning of its plan; empty where it is not there."""
    try:
        with (store.path / "runs" / run_id / "plan.json").open("rb") as file:
            text = file.read(_HEAD_BYTES).decode(errors="replace")
        found = _COMMAND.search(text)
        words = json.JSONDecoder().raw_decode(text, found.end())[0] if found else []
    except (OSError, ValueError):
        return ""
    return shlex.join(words) if all(isinstance(word, str) for word in words) else ""


def _sha256(store: Store, info: RunInfo) -> str:
    if not info.published:
        return ""
    if month := store.month_of(info.run_id):
        return month.by_run[info.run_id].sha256
    return hashlib.sha256(store.table_path("results", info.run_id).read_bytes()).hexdigest()


def _environment_links(rows: Sequence[Row], devices: Mapping[str, str]) -> tuple[EnvironmentLink, ...]:
    """The environments of one run; of several observations the last one's conditions."""
    conditions: dict[tuple[str, str], dict[str, str]] = {}
    notes: dict[tuple[str, str], dict[str, None]] = {}
    for row in sorted(rows, key=lambda row: row["observation"]):
        key = row["device"], row["environment_id"]
        conditions.setdefault(key, {})
        notes.setdefault(key, {})
        if row["kind"] == "condition":
            conditions[key][row["key"]] = fact(row["value"])
        elif row["kind"] == "note":
            notes[key][fact(row["value"])] = None
    return tuple(
        EnvironmentLink(
            environment_id,
            links.environment_link(devices[device], environment_id) if device in devices else "",
            device,
            tuple(sorted(conditions[device, environment_id].items())),
            tuple(notes[device, environment_id]),
        )
        for device, environment_id in sorted(conditions)
    )

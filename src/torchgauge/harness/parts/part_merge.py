"""One run made of the parts that several machines measured: one row for each planned case, whoever died.

A group that several parts have comes from the one that has most of its rows, and of equals from the one that
is named first: its rows are of one machine. What was given to a worker that left neither row nor end is
``infra``; what was given to none has no row, and the run can go on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from torchgauge.clock import DAY_S, SYSTEM_CLOCK
from torchgauge.counted import counted
from torchgauge.errors import UsageError
from torchgauge.harness.parts.part_folder import PartSurvey, log_below
from torchgauge.harness.parts.part_run import on_node
from torchgauge.harness.run.rows import unattempted
from torchgauge.harness.run.run_report import RunReport
from torchgauge.harness.run.versions import ALLOW, Versions
from torchgauge.records import Cause, Group, Plan, Result, Status
from torchgauge.results.journal import EarlierAttempt, End, Journal, Kind, Note, RunState, read
from torchgauge.results.store import RunFolder, Store

AGREE_S = 300.0
"""Seconds by which the clocks of two machines may differ without a word."""
AT_ONCE = 100
"""Rows that become durable together: one by one, thousands of them wait for the disk."""


def merge_parts(store: Store, paths: Sequence[Path], *, mixed: bool = False) -> RunReport:
    """Make one run in ``store`` of the parts in the folders ``paths``, or add them to it, and publish it.

    Raises :class:`UsageError` for what is no part, is still being measured or is of another plan than the
    first, where torch differs, unless versions may be ``mixed``, and where the run is complete already;
    nothing is written then.
    """
    parts = [PartSurvey.read(path) for path in dict.fromkeys(path.resolve() for path in paths)]
    first = parts[0]
    for part in parts[1:]:
        if (part.plan.run_id, part.plan.digest) != (first.plan.run_id, first.plan.digest):
            raise UsageError(
                f"{part.folder.path} is not a part of the run in {first.folder.path}: their plans differ",
                hint="merge the parts of each plan file separately",
            )
    plan = first.plan
    folder = RunFolder(store.path / "runs" / plan.run_id)
    versions = _one_torch(parts, folder, Versions(mixed, plan.torchgauge))
    if plan.run_id not in store.run_ids():
        store.begin(plan)
    report = RunReport(plan.run_id, len(plan.cases))
    with folder.open_journal() as journal:
        if journal.state is RunState.COMPLETE:
            raise UsageError(
                f"run {plan.run_id} is complete in {store.path}", hint="nothing is left to merge"
            )
        for result in journal.results():
            report.add(result)

        def keep(rows: Sequence[Result]) -> None:
            rows = versions.marked(rows)
            journal.append(Kind.RESULT, rows)
            for result in rows:
                report.add(result)

        _fill(journal, folder, parts, plan, keep)
        left = len(plan.cases) - len(journal.done)
        state = RunState.INTERRUPTED if left else RunState.COMPLETE
        journal.append(Kind.END, [End(state, SYSTEM_CLOCK.now())])
    store.finish(plan.run_id, plan)
    report.counts[Status.NOT_RUN] += left
    return report


def _one_torch(parts: Sequence[PartSurvey], folder: RunFolder, versions: Versions) -> Versions:
    """``versions`` with those of the run in ``folder``, if it is there, and of ``parts``."""
    lines = read(folder.journal_path) if folder.journal_path.is_file() else ()
    for line in lines:
        if line.kind is Kind.ENVIRONMENT:
            versions.differ(line.payload())
    for part in parts:
        for environment in part.environments:
            if differs := versions.differ(environment):
                raise UsageError(f"{part.folder.path} would mix versions: {differs}", hint=ALLOW)
    return versions


def _fill(
    journal: Journal,
    folder: RunFolder,
    parts: Sequence[PartSurvey],
    plan: Plan,
    keep: Callable[[Sequence[Result]], None],
) -> None:
    """Append everything that the parts have and the journal has not."""
    sources = {group.id: _source(group, parts) for group in plan.groups}
    names: set[str] = set()
    for part in parts:
        name = _free(part.node, names)
        groups = [group for group in plan.groups if sources[group.id] is part]
        wanted = {planned.case.key for group in groups for planned in group.cases}
        wanted = (wanted & part.done).difference(journal.done)
        if not wanted:  # merged before, or nothing came of it: its calibrations belong to no row
            continue
        left_out = part.folder.copy_logs(folder.logs / name)
        said = (
            f"part of {part.node}: {counted(len(part.given), 'group')}, "
            f"{counted(len(part.done), 'case')} done, {part.ended.value if part.ended else 'no end'}"
        )
        if left_out:
            said += f"; these files are not logs and were not copied: {', '.join(left_out[:5])}"
        now = SYSTEM_CLOCK.now()
        if apart := _clock_apart(part, now):
            said += f"; {apart}"
        journal.append(Kind.NOTE, [Note(said, now)])
        for rows in _rows(journal, part, wanted, name):
            keep(rows)
    for group in plan.groups:
        keep(_lost(group, plan, parts, set(journal.done)))


def _source(group: Group, parts: Sequence[PartSurvey]) -> PartSurvey:
    """The part that ``group`` is taken from."""
    keys = {planned.case.key for planned in group.cases}
    return max(parts, key=lambda part: len(keys & part.done))  # of equals the first


def _rows(journal: Journal, part: PartSurvey, wanted: set[str], name: str) -> Iterator[list[Result]]:
    """The rows of ``part`` that are ``wanted``; its environments and calibrations go to ``journal``."""
    rows: list[Result] = []
    for record in part.records():
        if record.kind in (Kind.ENVIRONMENT, Kind.CALIBRATION):
            journal.append(record.kind, [record.payload()])
        elif record.kind is Kind.ATTEMPT and record.case_key in wanted:
            said: EarlierAttempt = record.payload()
            journal.append(Kind.ATTEMPT, [replace(said, result=log_below(said.result, name))])
        elif record.kind is Kind.RESULT and record.case_key in wanted:
            wanted.remove(record.case_key)
            result: Result = record.payload()
            rows.append(log_below(result, name))
        if len(rows) == AT_ONCE:
            yield rows
            rows = []
    yield rows


def _lost(group: Group, plan: Plan, parts: Sequence[PartSurvey], done: set[str]) -> list[Result]:
    """Rows of the cases of ``group`` that a worker was given which did not live to say how they ended."""
    dead = next((part for part in parts if part.ended is None and group.id in part.given), None)
    left = [planned for planned in group.cases if planned.case.key not in done]
    if dead is None or not left:
        return []
    what = f"the worker on {dead.node} received this case and ended without a result for it"
    reason = f"{what}; see {dead.folder.path}"
    return on_node(
        [unattempted(plan, each, Status.INFRA, Cause.LOST_WORKER, reason) for each in left], dead.node
    )


def _clock_apart(part: PartSurvey, now: float) -> str:
    """That the clock of the part's machine is wrong: cases began before they were planned, or after ``now``.

    Nothing but that is wrong with its rows: durations and deadlines are of a steady clock.
    """
    if not part.moments:
        return ""
    behind, ahead = part.plan.created_at - min(part.moments), max(part.moments) - now
    seconds, way = max((behind, "behind"), (ahead, "ahead"))
    if seconds < AGREE_S:
        return ""
    return f"its clock is {seconds / DAY_S:.2g} days {way}: the dates of its rows are wrong"


def _free(name: str, taken: set[str]) -> str:
    """``name``, or one with a number behind it where it is taken; which it then is."""
    found, number = name, 2
    while found in taken:
        found, number = f"{name}-{number}", number + 1
    taken.add(found)
    return found

"""Everything that a store holds in a line each, oldest first: runs, A/B runs and bisections."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from torchgauge.counted import counted
from torchgauge.harness.bisect.bisection_list import BisectionInfo, bisection_infos
from torchgauge.results.comparing.comparison_list import ComparisonInfo, comparison_infos
from torchgauge.results.seal import publish_command
from torchgauge.results.store import RunInfo, Store


@dataclass(frozen=True)
class StoreEntry:
    """One line of ``torchgauge results list``, for people and as JSON values; ``at`` as in the records."""

    kind: str
    at: float
    line: str
    plain: dict[str, Any]


def store_entries(store: Store) -> list[StoreEntry]:
    """Runs, A/B runs and bisections of ``store`` in order of time."""
    entries = [
        *(_run(each, store) for each in store.runs()),
        *map(_comparison, comparison_infos(store)),
        *map(_bisection, bisection_infos(store)),
    ]
    return sorted(entries, key=lambda each: each.at)


def _run(run: RunInfo, store: Store) -> StoreEntry:
    counts = ", ".join(f"{count} {status}" for status, count in run.counts.items())
    remedy = f"; try: {publish_command(run.run_id, store.path)}" if run.remedy else ""
    problem = f"  {run.problem}{remedy}" if run.problem else ""
    state = run.condition or run.state.value
    line = f"{run.run_id}  {state:<11}  {run.recorded}/{run.planned}  {counts}{problem}"
    return StoreEntry("run", run.created_at, line, {"kind": "run", **vars(run), "state": run.state.value})


def _comparison(found: ComparisonInfo) -> StoreEntry:
    counts = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in found.counts.items())
    said = found.problem or counts or "no verdict"
    line = (
        f"{found.run_id}  {found.state.value:<11}  comparison of {counted(found.pairs, 'pair')}, "
        f"{found.base} -> {found.head}: {said}"
    )
    return StoreEntry(
        "comparison",
        found.created_at,
        line,
        {"kind": "comparison", **asdict(found), "state": found.state.value},
    )


def _bisection(found: BisectionInfo) -> StoreEntry:
    state = found.ending.value if found.ending else "damaged"
    of = f" of {counted(found.builds, 'build')}, {found.case}" if found.builds else ""
    line = f"{found.id:<25}  {state:<11}  bisection{of}: {found.explanation}"
    plain = {"kind": "bisection", **asdict(found), "ending": state}
    return StoreEntry("bisection", found.changed_at, line, plain)

"""A version matrix as a table: cases by cells, each with its ratio to the baseline or with why it has none.

A ratio, its interval and its verdict are those of the A/B run that measured both sides in turns. A case that
a version does not have, or that ends otherwise than with a pass, has that status and no ratio: it is never
slower. What another machine measured has a number and no verdict.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torchgauge.devices.minimum import release
from torchgauge.records import Better
from torchgauge.records.comparison import ComparisonPlan, MetricVerdict, Pair, Verdict
from torchgauge.results.comparing.comparison_store import ComparisonFolder, read_comparisons
from torchgauge.results.gain import turned
from torchgauge.results.journal import RunState
from torchgauge.results.log_ratio import ratio_interval
from torchgauge.results.matrix.state import CellState, MatrixState, pin_of
from torchgauge.results.store import Store

METRIC = "latency"
TELLING = frozenset({Verdict.REGRESSION, Verdict.IMPROVEMENT, Verdict.UNCHANGED})
"""Verdicts that say what a version did; a change begins at one of them."""


@dataclass(frozen=True)
class Column:
    """One cell: its torch as it says itself, its A/B run, and how that stands, or why it ``failed``.

    ``repeats`` is the label of an earlier cell of the same environment: both should agree, and ``agreed`` of
    the ``cases`` do. ``apart`` names the machine of what was not measured in turns with the others.
    """

    label: str
    torch: str = ""
    python: str = ""
    comparison: str = ""
    state: str = ""
    failed: str = ""
    baseline: bool = False
    repeats: str = ""
    agreed: int | None = None
    apart: str = ""
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    cases: int = 0

    @property
    def nothing(self) -> bool:
        """Whether it was tried, ``failed``, and no launch of it was ever planned."""
        return bool(self.failed) and not self.comparison


@dataclass(frozen=True)
class Entry:
    """One case in one cell; ``ratio`` is its latency over the baseline's, ``median`` in seconds."""

    status: str
    verdict: str = ""
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    median: float | None = None
    launches: int = 0
    reason: str = ""


@dataclass(frozen=True)
class Row:
    """One case over all cells, in their order."""

    case: str
    suite: str
    model: str
    mode: str
    dtype: str
    configuration: str
    device: str
    size: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Step:
    """A change of a case: the first cell that shows it, and the last before it that does not.

    ``command`` goes on inside, between these two.
    """

    case: str
    at: str
    after: str
    what: str
    command: str = ""


@dataclass(frozen=True)
class Table:
    """A whole matrix."""

    id: str
    created_at: float
    command: tuple[str, ...]
    baseline: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    steps: tuple[Step, ...]
    differs: tuple[tuple[str, tuple[str, ...]], ...]
    notes: tuple[str, ...] = ()
    machine: str = ""

    @property
    def complete(self) -> bool:
        """Whether every cell has been measured to its end, or was tried and has nothing."""
        return all(
            column.baseline or column.apart or column.nothing or column.state == RunState.COMPLETE.value
            for column in self.columns
        )

    @property
    def ordered(self) -> bool:
        """Return whether cells are versions in their order, so that a change has a first one."""
        labels = [each.label for each in self.columns if not (each.repeats or each.apart)]
        return all(label[:1].isdigit() for label in labels) and labels == sorted(labels, key=release)

    @property
    def differ(self) -> bool:
        """Return whether a cell computes something else than the baseline."""
        differing = Verdict.OUTPUTS_DIFFER.value
        return any(entry.verdict == differing for row in self.rows for entry in row.entries)

    def place(self, label: str) -> int:
        """The place of the cell of ``label``."""
        return [column.label for column in self.columns].index(label)


def table_of(store: Store, state: MatrixState) -> Table:
    """The matrix ``state`` of ``store``, as far as it was measured."""
    read = {
        cell.label: found
        for cell in state.cells
        if cell.comparison and (found := _Read.of(store, cell)) is not None
    }
    pairs: dict[str, Pair] = {}
    for found in read.values():
        for pair in found.plan.pairs:
            pairs.setdefault(pair.head.id, pair)
    rows = tuple(_row(pair, state, read) for pair in pairs.values())
    columns = tuple(
        _column(cell, state, read.get(cell.label), rows, at) for at, cell in enumerate(state.cells)
    )
    machine = next((found.machine for found in read.values() if found.machine), "")
    table = Table(
        state.id, state.created_at, state.command, state.baseline, columns, rows, (), differing(state.cells),
        state.notes, machine,
    )  # fmt: skip
    return replace(table, steps=tuple(_steps(table)))


@dataclass(frozen=True)
class _Read:
    """What the store has of one A/B run."""

    plan: ComparisonPlan
    state: RunState
    verdicts: Mapping[str, MetricVerdict]
    differing: Mapping[str, str]
    suite: MetricVerdict | None
    endings: Mapping[str, tuple[tuple[str, str], tuple[str, str]]]
    machine: str

    @staticmethod
    def of(store: Store, cell: CellState) -> _Read | None:
        folder = ComparisonFolder(Path(store.path) / "comparisons" / cell.comparison)
        if not folder.plan_path.is_file():
            return None
        plan, findings = folder.plan(), folder.findings()
        latency = {
            each.head_case: each for each in findings.verdicts if each.metric == METRIC and each.pair_key
        }
        differing = {
            each.head_case: each.reason
            for each in findings.verdicts
            if each.verdict is Verdict.OUTPUTS_DIFFER
        }
        suite = next((each for each in findings.verdicts if not each.pair_key), None)
        columns = (
            "case_id",
            "base_status",
            "base_reason",
            "head_status",
            "head_reason",
            "runner_class",
            "launch",
        )
        launches = read_comparisons(store, "launches", [cell.comparison], columns).to_pylist()
        endings = {}
        for row in sorted(launches, key=lambda row: row["launch"]):
            sides = tuple((row[f"{side}_status"], row[f"{side}_reason"] or "") for side in ("base", "head"))
            endings[row["case_id"]] = (sides[0], sides[1])
        machine = next((row["runner_class"] for row in launches if row["runner_class"]), "")
        return _Read(plan, findings.state, latency, differing, suite, endings, machine)


def _row(pair: Pair, state: MatrixState, read: Mapping[str, _Read]) -> Row:
    case = pair.head
    entries = []
    for cell in state.cells:
        if cell.label == state.baseline:
            entries.append(_of_baseline(case.id, read.values()))
        else:
            entries.append(_entry(case.id, cell, read.get(cell.label)))
    workload, configuration = case.workload, case.configuration.name
    return Row(case.id, workload.suite, workload.model, workload.mode, workload.dtype, configuration,
               str(case.device), workload.size, tuple(entries))  # fmt: skip


def _of_baseline(case: str, read: Iterable[_Read]) -> Entry:
    """The baseline's own number: the median over its A/B runs, or how it ended in one of them."""
    found = list(read)
    medians = sorted(
        v.base for each in found if (v := each.verdicts.get(case)) is not None and v.base is not None
    )
    ended = [each.endings[case][0] for each in found if case in each.endings]
    if not ended:
        return Entry("missing", reason="the case was not measured")
    status, reason = ended[0]
    median = medians[len(medians) // 2] if medians else None
    return Entry(status, median=median, reason=reason)


def _entry(case: str, cell: CellState, read: _Read | None) -> Entry:
    if read is None or case not in read.endings:
        return Entry("missing", reason=cell.failed or "the case was not measured")
    (base, base_reason), (status, reason) = read.endings[case]
    verdict = read.verdicts.get(case)
    if case in read.differing:
        return Entry(status, Verdict.OUTPUTS_DIFFER.value, reason=read.differing[case])
    if verdict is None:
        return Entry(status, reason=reason)
    both = status == base == "pass"
    said = verdict.verdict.value if both else ""
    why = (
        reason
        if status != "pass"
        else f"the baseline has {base}: {base_reason}"
        if base != "pass"
        else verdict.reason
    )
    return Entry(
        status,
        said,
        verdict.ratio if both else None,
        verdict.low if both else None,
        verdict.high if both else None,
        verdict.head,
        verdict.launches,
        why,
    )


def _column(cell: CellState, state: MatrixState, read: _Read | None, rows: Sequence[Row], at: int) -> Column:
    """The mean is that of the whole suite over launches; where the rule gives none, it has no interval."""
    ratios = [ratio for row in rows if (ratio := row.entries[at].ratio)]
    mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None
    suite = None if read is None else read.suite
    if suite is not None and suite.ratio is not None:
        mean = suite.ratio
    baseline = cell.label == state.baseline
    labels = [each.label for each in state.cells[:at] if each.python == cell.python and cell.python]
    first = labels[0] if labels and not baseline else ""
    before = [each.label for each in state.cells].index(first) if first else None
    return Column(
        label=cell.label,
        torch=cell.torch,
        python=cell.python,
        comparison=cell.comparison,
        state="" if read is None else read.state.value,
        failed=cell.failed,
        baseline=baseline,
        repeats=first,
        agreed=None if before is None else _agreed(rows, before, at),
        mean=mean,
        low=None if suite is None else suite.low,
        high=None if suite is None else suite.high,
        cases=len(ratios),
    )


def _agreed(rows: Sequence[Row], first: int, again: int) -> int:
    """How many cases have ratios in both columns, of one environment, that do not contradict each other."""
    count = 0
    for row in rows:
        ends = [_ends(row.entries[at]) for at in (first, again)]
        if all(ends):
            _, low, high = ratio_interval(*ends)
            count += bool(low <= 0 <= high)
    return count


def _ends(entry: Entry) -> tuple[float, float, float] | None:
    """Ratio, low and high; those of the baseline are 1, which it is by definition."""
    if entry.ratio is None and entry.median is not None and entry.status == "pass" and not entry.verdict:
        return 1.0, 1.0, 1.0
    if entry.ratio is None or entry.low is None or entry.high is None:
        return None
    return entry.ratio, entry.low, entry.high


def _steps(table: Table) -> Iterator[Step]:
    """The first cell at which each change of each case appears, in the order in which cells were named."""
    order = [at for at, column in enumerate(table.columns) if not (column.repeats or column.apart)]
    for row in table.rows:
        before = table.place(table.baseline) if table.baseline else order[0]
        known = Entry("pass", Verdict.UNCHANGED.value, 1.0, 1.0, 1.0)
        if row.entries[before].status != "pass":
            known = row.entries[before]
        for at in order:
            entry = row.entries[at]
            if at == before or entry.status in ("missing", "not_run", "infra"):
                continue
            what = _change(known, entry)
            if what:
                yield Step(row.case, table.columns[at].label, table.columns[before].label, what,
                           _command(table, row, before, at, entry.ratio is None))  # fmt: skip
            if what or entry.status != "pass" or entry.verdict in {each.value for each in TELLING}:
                known, before = entry, at


def _change(before: Entry, entry: Entry) -> str:
    """What changed from ``before`` to ``entry``; empty where nothing is shown to have."""
    if (before.status == "pass") != (entry.status == "pass"):
        why = f": {entry.reason}" if entry.reason and entry.status != "pass" else ""
        return f"{before.status} to {entry.status}{why}"
    if entry.verdict == Verdict.OUTPUTS_DIFFER.value != before.verdict:
        return entry.reason
    if entry.ratio is None or entry.low is None or entry.high is None or before.ratio is None:
        return ""
    if entry.verdict not in {each.value for each in TELLING} or before.low is None or before.high is None:
        return ""
    telling = entry.verdict != Verdict.UNCHANGED.value or before.verdict != Verdict.UNCHANGED.value
    if telling and (entry.low > before.high or entry.high < before.low):
        word = "slower" if entry.ratio > before.ratio else "faster"
        return f"{word}: {1 / before.ratio:.3f}x to {1 / entry.ratio:.3f}x"
    return ""


def as_shown(table: Table) -> Table:
    """``table`` with speed-ups over its baseline in place of ratios of times."""

    def turn(each: Any, name: str) -> Any:
        ratio, low, high = turned(Better.LOWER, getattr(each, name), each.low, each.high)
        return replace(each, **{name: ratio, "low": low, "high": high})

    rows = (replace(row, entries=tuple(turn(each, "ratio") for each in row.entries)) for row in table.rows)
    columns = tuple(turn(each, "mean") for each in table.columns)
    return replace(table, columns=columns, rows=tuple(rows))


def _command(table: Table, row: Row, before: int, at: int, by_status: bool) -> str:
    """The bisection that goes on between two cells; builds that lie between are added to it."""
    words = ["torchgauge", "bisect", f"{row.suite}/{row.model}", "--device", row.device, "--mode", row.mode,
             "--config", row.configuration, "--dtype", row.dtype, "--size", row.size]  # fmt: skip
    words += ["--metric", "status"] if by_status else []
    for place in (before, at):
        column = table.columns[place]
        words += ["--build", f"{column.label.replace(' ', '')}={column.python}"]
    return shlex.join(words)


def labels_of(rows: Sequence[Row]) -> tuple[list[str], tuple[str, ...]]:
    """The model of each row with what tells the rows apart, and what all rows have in common.

    Rows that would have one name are called by their cases.
    """
    parts = [(f"{row.suite}/{row.model}", row.configuration, row.mode, row.dtype, row.device) for row in rows]
    telling = [at for at in range(1, 5) if len({part[at] for part in parts}) > 1]
    labels = [" ".join([part[0], *(part[at] for at in telling)]) for part in parts]
    if len(set(labels)) < len(labels):
        return [row.case for row in rows], ()
    return labels, tuple(parts[0][at] for at in range(1, 5) if at not in telling) if parts else ()


def differing(cells: Sequence[CellState]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Packages whose versions differ between cells, with the version of each (empty: not there).

    A cell that failed without being measured counts for none: nothing of it stands beside the others.
    """
    empty = {cell.label for cell in cells if cell.failed and not cell.comparison}
    versions = [{} if cell.label in empty else dict(map(pin_of, cell.pins)) for cell in cells]
    there = [found for found in versions if found]
    names = sorted({name for found in there for name in found})
    return tuple(
        (name, tuple(found.get(name, "") for found in versions))
        for name in names
        if len({found.get(name, "") for found in there}) > 1
    )


def with_others(table: Table, others: Mapping[str, Table]) -> Table:
    """``table`` with what other machines measured beside it, by the name of each: numbers without a verdict.

    Their ratios are medians over the baseline's of here. They were not measured in turns, so that nothing
    says how much of them is the machine, the hour or the version.
    """
    columns, rows = list(table.columns), {row.case: row for row in table.rows}
    at = table.place(table.baseline)
    for name, other in others.items():
        theirs = {row.case: row for row in other.rows}
        for place, column in enumerate(other.columns):
            columns.append(replace(column, label=f"{name}: {column.label}", apart=other.machine or name,
                                   baseline=False, mean=None, low=None, high=None, cases=0))  # fmt: skip
            for case, row in rows.items():
                base = row.entries[at].median
                rows[case] = replace(row, entries=(*row.entries, _apart(theirs.get(case), place, base)))
    return replace(table, columns=tuple(columns), rows=tuple(rows.values()))


def _apart(row: Row | None, place: int, base: float | None) -> Entry:
    if row is None:
        return Entry("missing", reason="the other machine has no row for this case")
    entry = row.entries[place]
    ratio = entry.median / base if entry.median and base and entry.status == "pass" else None
    return Entry(
        entry.status,
        "",
        ratio,
        median=entry.median,
        reason="measured on another machine, not in turns with the baseline",
    )


def read_table(text: str) -> Table:
    """The matrix in the JSON of `matrix --json`; raises :class:`RecordError` and ``KeyError``."""
    from torchgauge.records import from_plain

    return from_plain(Table, json.loads(text)["matrix"])

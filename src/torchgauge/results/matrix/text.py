"""A version matrix for a terminal, a page and a program."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

from torchgauge.records import to_plain
from torchgauge.records.comparison import Verdict
from torchgauge.results import document, units
from torchgauge.results.matrix.table import Column, Entry, Row, Table, as_shown, labels_of

SCHEMA, VERSION = "torchgauge.matrix", 1
TEMPLATE = "results/matrix/matrix"
_MARKS = {
    Verdict.REGRESSION.value: "slower",
    Verdict.IMPROVEMENT.value: "faster",
    Verdict.UNCHANGED.value: "same",
    Verdict.UNDECIDED.value: "?",
    Verdict.NOT_COMPARABLE.value: "not comparable",
    Verdict.OUTPUTS_DIFFER.value: "outputs differ",
}
MARKS = (
    "slower: significantly slower, also in further launches; faster: significantly faster; "
    "same: within the tolerance; "
    "?: undecided; outputs differ: by more than rounding. The rules are those of `torchgauge ab`."
)


def terminal_of(table: Table) -> str:
    """The whole matrix."""
    return document.terminal(TEMPLATE, **_data(table))


def markdown_of(table: Table) -> str:
    """The same for a page or an issue."""
    return document.markdown(TEMPLATE, **_data(table))


def json_of(table: Table) -> str:
    """One JSON object; latencies in seconds, times in seconds since the epoch."""
    plain = {"schema": SCHEMA, "version": VERSION, "complete": table.complete, "matrix": to_plain(table)}
    return json.dumps(plain, indent=1, allow_nan=False) + "\n"


def cell_text(entry: Entry, column: Column) -> str:
    """An entry in a few words: a ratio with its interval and verdict, a time, or a status."""
    if entry.status != "pass":
        return entry.status
    if column.baseline:
        return "pass" if entry.median is None else units.quantity(entry.median, "s")
    if entry.ratio is None:
        return _MARKS.get(entry.verdict, entry.verdict) or "no ratio"
    number = units.interval(entry.ratio, entry.low, entry.high, "ratio")
    return f"{number} {_MARKS.get(entry.verdict, entry.verdict)}".strip()


def failures(table: Table) -> list[tuple[Row, list[str], Entry]]:
    """What has no ratio: the case, the versions to which it happened alike, and an entry with the reason.

    What nobody measured is left out.
    """
    found: dict[tuple[str, str, str, str], tuple[Row, list[str], Entry]] = {}
    for row in table.rows:
        for column, entry in zip(table.columns, row.entries, strict=True):
            silent = entry.status == "pass" and (column.baseline or entry.ratio is not None)
            if silent or (entry.status == "missing" and column.failed):
                continue
            alike = (row.case, entry.status, entry.verdict, entry.reason)
            found.setdefault(alike, (row, [], entry))[1].append(column.label)
    return list(found.values())


def _only(column: str, at: int, table: Sequence[tuple[str, Sequence[str]]]) -> tuple[str, list[str]]:
    """The packages that ``column`` has and another one lacks."""
    return column, [f"{name} {versions[at]}" for name, versions in table if versions[at] and "" in versions]


def _data(table: Table) -> dict[str, Any]:
    table = as_shown(table)
    here = [column for column in table.columns if not column.apart]
    installed = [at for at, column in enumerate(here) if not column.nothing]
    typed = {word.partition("=")[0].removeprefix("--") for word in table.command if word.startswith("--")}
    axes = ["torch", *(name for name, _ in table.differs if name in typed - {"torch"})]
    packages = [
        (name, [versions[at] for at in installed]) for name, versions in table.differs if name not in axes
    ]
    labels, common = labels_of(table.rows)
    only = [_only(here[column].label, at, packages) for at, column in enumerate(installed)]
    return {
        "table": table,
        "cell": cell_text,
        "failures": failures(table),
        "differs": [(name, versions) for name, versions in packages if "" not in versions],
        "only": [(label, found) for label, found in only if found],
        "axes": axes,
        "labels": dict(zip((row.case for row in table.rows), labels, strict=True)),
        "common": common,
        "marks": MARKS,
        "typed": shlex.join(table.command),
        "installed": [here[at] for at in installed],
    }

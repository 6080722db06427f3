"""What :func:`torchgauge.measure` returns: rows as a run keeps them, with forms for people and for pandas."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.errors import MissingPackageError, UnknownNameError, UsageError
from torchgauge.records import UNCOUNTED, UNTIMED, Environment, Plan, Result, Status, Summary, to_json
from torchgauge.records.metrics import METRICS
from torchgauge.results import units
from torchgauge.results.atomic_file import write_atomically
from torchgauge.results.document import table_lines
from torchgauge.results.json_file import read_record

if TYPE_CHECKING:
    import pandas as pd

HEAD = ("configuration", "status", "a step", "against eager")
TABLES = ("summaries", "results", "samples")
WIDTH = 110
DOUBTS = sorted(modifier.value for modifier in UNCOUNTED | UNTIMED)
"""Properties of a row that hold why its number is in doubt."""


@dataclass(frozen=True, repr=False)
class LiveResult:
    """Holds the results of one model, one for each configuration.

    ``plan`` contains the settings, ``environment`` the machine and the versions.
    """

    plan: Plan
    rows: tuple[Result, ...]
    environment: Environment

    @property
    def passed(self) -> bool:
        """Return whether the model ran as configured in each configuration, with correct results."""
        return all(row.counted for row in self.rows)

    def __getitem__(self, configuration: str) -> Result:
        """Return the row of ``configuration``; raises :class:`UnknownNameError`."""
        rows = {row.case.configuration.name: row for row in self.rows}
        if configuration not in rows:
            raise UnknownNameError("configuration", configuration, rows)
        return rows[configuration]

    def __iter__(self) -> Iterator[Result]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def seconds(self, configuration: str | None = None, metric: str = "latency") -> float | None:
        """Return the median of ``metric``, in its base unit; None where there is none.

        ``configuration`` is the first by default. Raises :class:`UnknownNameError`.
        """
        summary = summary_of(self.rows[0] if configuration is None else self[configuration], metric)
        return None if summary is None else summary.median

    def __repr__(self) -> str:
        workload = self.rows[0].case.workload
        title = f"{workload.model}: {workload.mode} in {workload.dtype} on {self.rows[0].case.device}"
        table = table_lines([HEAD, *map(_cells, self.rows)], ("--", "--", "--:", "--:"), WIDTH)
        return "\n".join([title, *table, *(f"  {line}" for line in self.notes)])

    def _repr_html_(self) -> str:
        """Return the table for a notebook; every text in it is escaped."""
        title, notes = (
            repr(self).partition("\n")[0],
            "".join(f"<li>{html.escape(n)}</li>" for n in self.notes),
        )
        rows = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in _cells(row))}</tr>"
            for row in self.rows
        )
        head = "".join(f"<th>{name}</th>" for name in HEAD)
        return f"<p>{html.escape(title)}</p><table><tr>{head}</tr>{rows}</table><ul>{notes}</ul>"

    @property
    def notes(self) -> list[str]:
        """Return reasons why configurations did not pass, and why numbers are in doubt."""
        lines = [
            f"{row.case.configuration.name}: {row.phase.value}: {row.reason}"
            for row in self.rows
            if row.status is not Status.PASS
        ]
        for row in self.rows:
            doubts = ((name, getattr(row, name)) for name in DOUBTS)
            lines += [
                f"{row.case.configuration.name} is {n.replace('_', ' ')}: {why}" for n, why in doubts if why
            ]
        return lines

    def to_pandas(self, table: str = "summaries") -> pd.DataFrame:
        """Return a pandas frame: ``summaries``, ``results`` or ``samples``.

        ``summaries`` has a row for each configuration and metric: ``median``, ``low`` and ``high``.
        ``samples`` has a row for each timed block of steps. Raises :class:`UnknownNameError`.
        """
        if table not in TABLES:
            raise UnknownNameError("table", table, TABLES)
        required("pandas", "to_pandas")
        from torchgauge.results.frames import frame_of
        from torchgauge.results.publication import chunk_of
        from torchgauge.results.rows import (
            RunContext,
            result_row,
            sample_columns,
            summary_rows,
            torch_version,
        )
        from torchgauge.results.tables import TABLES as SCHEMAS

        versions = {self.environment.id: torch_version(self.environment) or ""}
        context = RunContext(self.plan.run_id, self.plan.created_at, versions)
        if table == "results":
            rows = [result_row(row, context) for row in self.rows]
        elif table == "summaries":
            rows = [each for row in self.rows for each in summary_rows(row, context)]
        else:
            rows = []
            for row in self.rows:
                columns = sample_columns(row)
                given = {"run_id": self.plan.run_id, "case_id": row.case_id, "case_key": row.case.key}
                rows += [
                    {**given, **dict(zip(columns, each, strict=True))}
                    for each in zip(*columns.values(), strict=True)
                ]
        return frame_of(chunk_of(SCHEMAS[table], rows))

    def plot(self, metric: str = "latency") -> Any:
        """Return a plotly figure: the median of ``metric`` for each configuration, with its interval.

        Raises :class:`UsageError` if no row has a number, and :class:`MissingPackageError`.
        """
        go = required("plotly.graph_objects", "plot")
        found = [(row, summary) for row in self.rows if (summary := summary_of(row, metric)) is not None]
        shown = [(row, s, s.median) for row, s in found if s.median is not None]
        if not shown:
            raise UsageError(f"no row has a value of {metric!r}", hint="print the result to see the reasons")
        ups = [(summary.high or median) - median for _, summary, median in shown]
        downs = [median - (summary.low or median) for _, summary, median in shown]
        error = {"type": "data", "symmetric": False, "array": ups, "arrayminus": downs}
        names, medians = [row.case.configuration.name for row, *_ in shown], [median for *_, median in shown]
        figure = go.Figure(go.Bar(x=names, y=medians, error_y=error))
        unit = METRICS[metric].unit if metric in METRICS else shown[0][1].unit
        return figure.update_layout(title=repr(self).partition("\n")[0], yaxis_title=f"{metric} [{unit}]")

    def save(self, path: str | Path) -> None:
        """Write everything, samples too, to the JSON file ``path``; :func:`load` reads it."""
        write_atomically(Path(path), (to_json(self) + "\n").encode())


def load(path: str | Path) -> LiveResult:
    """Return the result that :meth:`LiveResult.save` wrote to ``path``; raises :class:`DataFileError`."""
    return read_record(LiveResult, path, "pass a file that result.save() wrote")


def keep(store: str | Path, results: Sequence[LiveResult]) -> str:
    """Write the rows of ``results`` to ``store`` as one run, and return its id.

    The store is created where it is missing. Raises :class:`UsageError` where two rows are of one case.
    """
    from torchgauge.results.journal import End, Kind, RunState
    from torchgauge.results.run_id import new_run_id
    from torchgauge.results.store import Store

    rows = [row for result in results for row in result.rows]
    if not rows:
        raise UsageError("the result has no row to save", hint="measure something first")
    twice = next((row.case_id for i, row in enumerate(rows) if row.case in [r.case for r in rows[:i]]), "")
    if twice:
        raise UsageError(f"{twice} was measured twice", hint='pass name="..." to distinguish two models')
    run_id = new_run_id()
    groups = tuple(group for result in results for group in result.plan.groups)
    plan = replace(results[0].plan, run_id=run_id, groups=groups)
    opened = Store.open(store, create=True)
    with opened.begin(plan).open_journal() as journal:
        journal.append(Kind.ENVIRONMENT, list({r.environment.id: r.environment for r in results}.values()))
        journal.append(Kind.RESULT, [replace(row, run_id=run_id) for row in rows])
        journal.append(Kind.END, [End(RunState.COMPLETE, SYSTEM_CLOCK.now())])
    opened.finish(run_id, plan)
    return run_id


def summary_of(row: Result, metric: str) -> Summary | None:
    """Return the summary of ``metric`` in ``row``; None where it has none."""
    return next((each for each in row.summaries if each.metric == metric), None)


def required(module: str, what: str) -> Any:
    """Return ``module``, imported now; raises :class:`MissingPackageError` where it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise MissingPackageError(f"{what} needs {name}: {error}", hint=f"pip install {name}") from error


def _cells(row: Result) -> tuple[str, str, str, str]:
    latency, ratio = summary_of(row, "latency"), summary_of(row, "speedup")
    status = row.status.value + (f" ({row.cause.value})" if row.cause else "")
    return row.case.configuration.name, status, _interval(latency), _interval(ratio)


def _interval(summary: Summary | None) -> str:
    if summary is None or summary.median is None:
        return "-"
    return units.interval(summary.median, summary.low, summary.high, summary.unit)

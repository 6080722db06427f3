"""Reports as JSON, and back: the records of ``report.py`` and ``run_report.py`` with a name and a version."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torchgauge.errors import DataFileError
from torchgauge.records import RecordError, from_plain, to_plain
from torchgauge.results.reports.publisher import Publisher, Report
from torchgauge.results.reports.report import VERSION, ComparisonReport
from torchgauge.results.reports.run_report import RunReport

SCHEMAS: dict[str, type[Report]] = {
    "torchgauge.comparison-report": ComparisonReport,
    "torchgauge.run-report": RunReport,
}
"""The value of ``schema`` to the record that the other fields make."""


def render(report: Report) -> str:
    """``report`` as one JSON object: ``schema``, ``version`` and the fields of the record."""
    schema = next(name for name, kind in SCHEMAS.items() if isinstance(report, kind))
    return json.dumps({"schema": schema, **to_plain(report)}, indent=1, allow_nan=False) + "\n"


def read_report(path: Path) -> Report:
    """The report in the file ``path``.

    Raises :class:`DataFileError` for what is no JSON, another schema, another version or other fields.
    """
    try:
        data: Any = json.loads(path.read_bytes())
    except OSError as error:
        raise DataFileError(str(path), f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise DataFileError(str(path), f"is no JSON: {error}", hint="write the report again") from error
    kind = SCHEMAS.get(str(data.get("schema"))) if isinstance(data, dict) else None
    if kind is None:
        raise DataFileError(
            str(path), "is no report", field="schema", hint=f"schema is one of {', '.join(SCHEMAS)}"
        )
    if data.get("version") != VERSION:
        raise DataFileError(
            str(path),
            f"version {data.get('version')!r} is not read",
            field="version",
            hint=f"this torchgauge reads version {VERSION}: write the report again with it",
        )
    try:
        found: Report = from_plain(
            kind, {name: value for name, value in data.items() if name != "schema"}, "report"
        )
    except RecordError as error:
        raise DataFileError(
            str(path), error.problem, field=error.path, hint="write the report again"
        ) from error
    return found


PUBLISHER = Publisher("json", render)

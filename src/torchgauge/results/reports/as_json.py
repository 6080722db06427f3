"""Reports as JSON: the records of ``report.py`` and ``run_report.py`` with a name and a version."""

from __future__ import annotations

import json

from torchgauge.records import to_plain
from torchgauge.results.reports.publisher import Publisher, Report
from torchgauge.results.reports.report import ComparisonReport
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


PUBLISHER = Publisher("json", render)

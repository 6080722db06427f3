"""Rows as CSV that is safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from torchgauge.results.hostile_text import csv_cell


def csv_text(header: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """``rows`` under ``header``; no cell of them is a formula."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(map(csv_cell, row) for row in rows)
    return text.getvalue()

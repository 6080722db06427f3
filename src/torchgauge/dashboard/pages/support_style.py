"""The style that the pages of checks and of operators add to the site's own."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

from torchgauge.dashboard.context import SiteContext
from torchgauge.records import Subject

FILE = "static/support_table.css"
MOST_COLUMNS = 32
"""Columns for which there is a least width of the table."""


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The style, where there is a page that needs it."""
    if all(workload.subject is Subject.MODELS for workload, _ in context.latest.entries):
        return
    templates = resources.files("torchgauge.dashboard").joinpath("templates")
    parts = [
        templates.joinpath(name).read_text(encoding="utf-8")
        for name in ("support_table.css", "operators.css")
    ]
    widths = "".join(f".columns-{n} {{ --columns: {n}; }}\n" for n in range(1, MOST_COLUMNS + 1))
    yield FILE, "".join((parts[0], widths, parts[1])).encode()

"""The report of a bringup as a page: Markdown, HTML that needs no server, and the answers for a terminal."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchgauge.harness.bringup.part import DOES
from torchgauge.harness.bringup.report import Report
from torchgauge.results import document, units
from torchgauge.results.atomic_file import write_atomically
from torchgauge.results.hostile_text import visible

if TYPE_CHECKING:
    import jinja2

MARKDOWN, HTML = "report.md", "report.html"
LONGEST = 260
"""Characters of what a row says; the command beside it shows all."""


def write_pages(folder: Path, report: Report) -> None:
    """Write both forms into ``folder``, each whole or as it was."""
    write_atomically(folder / MARKDOWN, markdown_of(report).encode())
    write_atomically(folder / HTML, html_of(report).encode())


def markdown_of(report: Report) -> str:
    """The report as Markdown."""
    return document.markdown("harness/bringup/report", report=report, does=DOES)


def terminal_of(report: Report) -> str:
    """The same for a terminal."""
    return document.terminal("harness/bringup/report", report=report, does=DOES)


def html_of(report: Report) -> str:
    """The report as one HTML file, with its style in it and nothing to be fetched."""
    return _template().render(report=report, does=DOES)


@cache
def _template() -> jinja2.Template:
    import jinja2

    def seen(value: Any) -> Any:
        return visible(value) if isinstance(value, str) else value

    made = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, finalize=seen
    )
    made.filters.update(document.FILTERS)
    made.filters["shown"] = lambda text: units.shortened(text, LONGEST)
    text = files("torchgauge").joinpath("harness/bringup/report.html.j2").read_text("utf-8")
    return made.from_string(text)

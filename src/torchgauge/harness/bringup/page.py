"""The report of a bringup as a page: Markdown, HTML that needs no server, and the answers for a terminal."""

from __future__ import annotations

import shutil
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchgauge.harness.bringup.part import DOES
from torchgauge.harness.bringup.report import Report
from torchgauge.harness.bringup.state import STORE, Bringup
from torchgauge.results import document, units
from torchgauge.results.atomic_file import storage_errors, write_atomically
from torchgauge.results.hostile_text import visible
from torchgauge.results.store import Store

if TYPE_CHECKING:
    pass

MARKDOWN, HTML = "report.md", "report.html"
BUNDLE = "bundle"
"""The folder for a maintainer: the report, and the runs as a pull request adds them to a store."""
LONGEST = 260
"""Characters of what a row says; the command beside it shows all."""


def write_pages(folder: Path, report: Report) -> None:
    """Write both forms into ``folder``, each whole or as it was."""
    write_atomically(folder / MARKDOWN, markdown_of(report).encode())
    write_atomically(folder / HTML, html_of(report).encode())


def write_bundle(folder: Path, state: Bringup) -> Path:
    """Write the bundle of the bringup in ``folder`` anew: its report, and plan and journal of every run."""
    out, store = folder / BUNDLE, Store.open(folder / STORE)
    runs = [store.run(part.run_id) for part in state.parts if part.run_id in store.published()]
    with storage_errors(out):
        shutil.rmtree(out, ignore_errors=True)
        for run in runs:
            there = out / "runs" / run.run_id
            there.mkdir(parents=True)
            for file in (run.plan_path, run.journal_path):
                shutil.copyfile(file, there / file.name)
        out.mkdir(exist_ok=True)
        for name in (MARKDOWN, HTML):
            shutil.copyfile(folder / name, out / name)
    return out


def markdown_of(report: Report) -> str:
    """The report as Markdown."""
    return document.markdown("harness/bringup/report", report=report, does=DOES)


def terminal_of(report: Report) -> str:
    """The same for a terminal."""
    return document.terminal("harness/bringup/report", report=report, does=DOES)


def html_of(report: Report) -> str:
    """The report as one HTML file, with its style in it and nothing to be fetched."""
    import jinja2

    def seen(value: Any) -> Any:
        return visible(value) if isinstance(value, str) else value

    made = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, finalize=seen
    )
    made.filters.update(document.FILTERS)
    made.filters["shown"] = lambda text: units.shortened(text, LONGEST)
    text = files("torchgauge").joinpath("harness/bringup/report.html.j2").read_text("utf-8")
    return made.from_string(text).render(report=report, does=DOES)

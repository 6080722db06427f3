"""``torchgauge results compat``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchgauge.cli.answer import asides
from torchgauge.cli.option_values import CommaList
from torchgauge.cli.options import STORES

if TYPE_CHECKING:
    from torchgauge.results.compat.table import Table

FORMS = ("text", "markdown", "csv", "json", "html")


@click.command("compat")
@click.option(
    "--devices",
    "--device",
    type=CommaList(),
    default=(),
    help="devices, as DEVICE or DEVICE@TORCH_VERSION (default: all in the stores, with their newest torch)",
)
@STORES
@click.option(
    "--what",
    type=CommaList(),
    default=("all",),
    help="sections: capabilities, operators, models, or all (default: all)",
)
@click.option("--format", "form", type=click.Choice(FORMS), default="text", show_default=True)
@click.option("--out", metavar="FILE", help="write to FILE instead of standard output")
@click.option("--only-differences", is_flag=True, help="only rows in which devices differ")
@click.option("--expand", is_flag=True, help="text and markdown: one line per check, dtype or configuration")
def command(**options: Any) -> None:
    """Compare what devices can do, from stored results of check, ops and run.

    Measures nothing. Exit codes: 0, or 3 if part of a store could not be read.

    Example: torchgauge results compat --devices D1,D2 --format html --out support.html
    """
    from torchgauge.results.compat.gathering import compare_devices

    table = compare_devices(options["stores"], options["devices"], _what(options["what"]))
    text = _rendered(table, options)
    if options["out"] is None:
        click.echo(text, nl=False)
    else:
        from torchgauge.results.reports.publisher import write_text

        write_text(Path(options["out"]), text)
    if options["out"] is not None or options["form"] != "text":
        asides(table.notes, table.gaps)
    sys.exit(3 if table.gaps else 0)


def _what(words: tuple[str, ...]) -> tuple[str, ...]:
    from torchgauge.errors import UnknownNameError
    from torchgauge.results.compat.gathering import SECTIONS

    for word in words:
        if word not in (*SECTIONS, "all"):
            raise UnknownNameError("section", word, (*SECTIONS, "all"))
    return tuple(SECTIONS) if "all" in words or not words else tuple(key for key in SECTIONS if key in words)


def _rendered(table: Table, options: dict[str, Any]) -> str:
    from torchgauge.results.compat import text

    differing, expand = options["only_differences"], options["expand"]
    if options["form"] == "html":
        from torchgauge.dashboard import support_table

        return support_table.render(table, differing=differing)
    if options["form"] == "csv":
        return text.csv_of(table, differing=differing)
    if options["form"] == "json":
        return text.json_of(table, differing=differing)
    render = text.markdown_of if options["form"] == "markdown" else text.terminal_of
    return render(table, differing=differing, expand=expand)

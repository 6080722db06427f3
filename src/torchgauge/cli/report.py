"""``torchgauge report``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from torchgauge.cli.results import STORE

if TYPE_CHECKING:
    from torchgauge.dashboard.pictures.picture import Picture
    from torchgauge.results.reports.publisher import Report


@click.command("report")
@click.argument("name", required=False)
@click.option("--format", "form", default="markdown", show_default=True, help="markdown, junit or json")
@click.option("--out", metavar="FILE", help="write to FILE instead of standard output")
@click.option("--chart", metavar="FILE", help="also write an SVG chart of the speed-up to FILE")
@STORE
def command(name: str | None, form: str, out: str | None, chart: str | None, store: str) -> None:
    """Report comparison or run NAME (default: the latest comparison).

    The Markdown is a comment for a pull request.

    Example: torchgauge report --format junit --out report.xml
    """
    from torchgauge import registry
    from torchgauge.results.atomic_file import write_atomically
    from torchgauge.results.reports.named import named_report
    from torchgauge.results.store import Store

    publisher = registry.load("torchgauge.publishers", form)
    report = named_report(Store.open(store), name)
    picture = _picture(report, chart) if chart is not None else None
    if out is None:
        click.echo(publisher.render(report), nl=False)
    else:
        publisher.publish(report, Path(out))
    if picture is None or chart is None:
        return
    if picture.empty:  # the report stands without it
        click.echo(f"no chart: {picture.says}", err=True)
    else:
        write_atomically(Path(chart), picture.wide.text.encode())


def _picture(report: Report, chart: str) -> Picture:
    from torchgauge.dashboard.pictures.comparison_chart import comparison_picture
    from torchgauge.errors import UsageError
    from torchgauge.results.reports.report import ComparisonReport

    if not isinstance(report, ComparisonReport):
        raise UsageError(
            f"--chart {chart}: {report.run_id} is a single run; a chart requires a comparison",
            hint="torchgauge dashboard build draws the pictures of a store's runs",
        )
    return comparison_picture(report)

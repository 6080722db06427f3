"""``torchgauge report``."""

from __future__ import annotations

from pathlib import Path

import click

from torchgauge.cli.results import STORE


@click.command("report")
@click.argument("name", required=False)
@click.option("--format", "form", default="markdown", show_default=True, help="markdown, junit or json")
@click.option("--out", metavar="FILE", help="write to FILE instead of standard output")
@STORE
def command(name: str | None, form: str, out: str | None, store: str) -> None:
    """Report comparison or run NAME (default: the latest comparison), for people or for a CI system.

    The Markdown is one comment for a pull request. Reporting judges nothing: torchgauge gate does.

    Example: torchgauge report --format junit --out report.xml
    """
    from torchgauge import registry
    from torchgauge.results.reports.named import named_report
    from torchgauge.results.store import Store

    publisher = registry.load("torchgauge.publishers", form)
    report = named_report(Store.open(store), name)
    if out is None:
        click.echo(publisher.render(report), nl=False)
    else:
        publisher.publish(report, Path(out))

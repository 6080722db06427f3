"""``torchgauge run``."""

from __future__ import annotations

import sys
from typing import Any

import click

from torchgauge.cli.options import PYTHON, Seconds, measuring, selection_of, selectors, settings_of, sources


@click.command("run")
@selectors
@sources
@PYTHON
@measuring
@click.option(
    "--budget", type=Seconds(), help="stop after about this long (90s, 30m, 2h), smallest tiers first"
)
@click.option("--store", default="./torchgauge-results", show_default=True, help="where results go")
@click.option("--executor", default="local", show_default=True, help="where workers run")
@click.option("--resume", metavar="DIR", help="go on with the run in this folder (STORE/runs/ID)")
@click.option("--json", "as_json", is_flag=True, help="machine output on stdout")
def command(suite: tuple[str, ...], **options: Any) -> None:
    """Measure SUITE... on devices; every planned case ends in exactly one row of the store.

    Example: torchgauge run timm huggingface --tier smoke --device DEVICE
    """
    from torchgauge.harness.campaigns import new_campaign, resumed_campaign
    from torchgauge.harness.progress import choose_progress
    from torchgauge.harness.runner import report_as_json
    from torchgauge.harness.summary import summary_lines

    progress = choose_progress()
    if options["resume"]:
        campaign, folder = resumed_campaign(
            options["resume"], progress, options["executor"], python=options["python"]
        )
    else:
        settings, provenance = settings_of(options)
        selection = selection_of(suite, options)
        campaign = new_campaign(
            selection,
            settings,
            provenance,
            store=options["store"],
            progress=progress,
            executor=options["executor"],
            python=options["python"],
        )
        folder = None
    report = campaign.run(folder)
    for line in summary_lines(report, campaign.store.path):
        click.echo(line, err=True)
    if options["as_json"]:
        click.echo(report_as_json(report))
    sys.exit(report.exit_code)

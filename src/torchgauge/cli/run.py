"""``torchgauge run``."""

from __future__ import annotations

import sys
from typing import Any

import click

from torchgauge.cli.answer import JSON, aside, say_json
from torchgauge.cli.options import (
    DURATIONS,
    EXPECTATIONS,
    Seconds,
    campaigning,
    selection_of,
    selectors,
    settings_of,
    store_option,
)


@click.command("run")
@selectors
@EXPECTATIONS
@campaigning
@DURATIONS
@click.option(
    "--budget", type=Seconds(), help="stop after about this long (90s, 30m, 2h), most valuable cases first"
)
@store_option("where results go")
@click.option("--executor", default="local", show_default=True, help="where workers run")
@click.option("--resume", metavar="DIR", help="go on with the run in this folder (STORE/runs/ID)")
@JSON
def command(suite: tuple[str, ...], **options: Any) -> None:
    """Measure SUITE... on devices; every planned case ends in exactly one row of the store.

    Example: torchgauge run timm huggingface --tier smoke --device DEVICE
    """
    from torchgauge.harness.planning.order_text import left_lines, order_lines
    from torchgauge.harness.planning.sharding import other_shardings
    from torchgauge.harness.run.campaigns import new_campaign, resumed_campaign
    from torchgauge.harness.run.progress import Progress
    from torchgauge.harness.run.runner import report_plain
    from torchgauge.harness.run.summary import summary_lines

    progress = Progress()
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
            durations=options["durations"],
        )
        folder = None
        if settings.budget_s is not None or campaign.plan.shard != "1/1":
            aside(order_lines(campaign.plan))
        if others := other_shardings(campaign.store, campaign.plan):
            trouble = (
                "together they leave groups out and repeat others; give every shard the same --durations"
            )
            click.echo(f"note: sharded otherwise than {', '.join(others)}: {trouble}", err=True)
    report = campaign.run(folder)
    aside(summary_lines(report, campaign.store.path))
    if report.out_of_budget:
        aside(left_lines(campaign.store, campaign.plan))
    if options["as_json"]:
        say_json(report_plain(report))
    sys.exit(report.exit_code)

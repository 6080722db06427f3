"""``torchgauge run``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from torchgauge.cli.answer import JSON, aside, say_json
from torchgauge.cli.grouped_command import GroupedCommand
from torchgauge.cli.option_values import Seconds
from torchgauge.cli.options import (
    ATTEMPTS,
    DURATIONS,
    EXECUTOR,
    EXECUTOR_OPTION,
    EXPECTATIONS,
    MIXED_VERSIONS,
    campaigning,
    selection_of,
    selectors,
    settings_of,
    store_option,
    typed_settings,
)
from torchgauge.cli.verbosity import run_progress, verbosity
from torchgauge.errors import UsageError
from torchgauge.records import INCOMPLETE, Status

if TYPE_CHECKING:
    from torchgauge.harness.run.runner import Campaign
    from torchgauge.results.store import RunFolder


@click.command("run", cls=GroupedCommand)
@selectors
@EXPECTATIONS
@campaigning
@DURATIONS
@click.option("--budget", type=Seconds(), help="stop after this time, such as 30m")
@ATTEMPTS
@store_option("folder of results")
@EXECUTOR
@EXECUTOR_OPTION
@click.option("--resume", metavar="RUN", help="continue this run: STORE/runs/ID, an id or `latest`")
@click.option(
    "--retry",
    type=click.Choice(sorted(each.value for each in INCOMPLETE)),
    multiple=True,
    help="with --resume: repeat cases with this status; repeatable",
)
@MIXED_VERSIONS
@verbosity
@JSON
def command(suite: tuple[str, ...], **options: Any) -> None:
    """Measure SUITE... on devices; each planned case has one row in the store.

    Example: torchgauge run timm huggingface --tier smoke --device DEVICE
    """
    from contextlib import nullcontext

    from torchgauge.harness.run.live_lines import LiveLines

    with nullcontext() if options["quiet"] else LiveLines().during():  # importing takes a second, too
        from torchgauge.harness.planning.order_text import left_lines, order_lines
        from torchgauge.harness.planning.sharding import other_shardings
        from torchgauge.harness.run.run_report import report_plain
        from torchgauge.harness.run.summary import summary_lines

        campaign, folder = _campaign(suite, options)
    if folder is None:
        partial = campaign.plan.settings.budget_s is not None or campaign.plan.shard != "1/1"
        if partial and not options["quiet"]:
            aside(order_lines(campaign.plan))
        if others := other_shardings(campaign.store, campaign.plan):
            trouble = "cases may be missing or measured twice; pass the same --durations to every shard"
            click.echo(f"note: sharded differently from {', '.join(others)}: {trouble}", err=True)
    report = campaign.run(folder)
    aside(summary_lines(report, campaign.store.path))
    if report.out_of_budget:
        aside(left_lines(campaign.store, campaign.plan))
    if options["as_json"]:
        say_json(report_plain(report))
    sys.exit(report.exit_code)


def _campaign(suite: tuple[str, ...], options: dict[str, Any]) -> tuple[Campaign, RunFolder | None]:
    """What is to be run, and the folder of the run where it goes on."""
    from torchgauge.harness.run.campaigns import new_campaign, resumed_campaign
    from torchgauge.results.lookup import resumed_folder

    progress = run_progress(options)
    if options["resume"]:
        return resumed_campaign(
            resumed_folder(options["store"], options["resume"], "runs"),
            progress,
            options["executor"],
            executor_words=options["executor_words"],
            python=options["python"],
            typed=typed_settings(options),
            retry=tuple(map(Status, options["retry"])),
            mixed=options["mixed_versions"],
        )
    if options["retry"]:
        raise UsageError("--retry requires an existing run", hint="--resume RUN --retry infra")
    settings, provenance = settings_of(options)
    campaign = new_campaign(
        selection_of(suite, options),
        settings,
        provenance,
        store=options["store"],
        progress=progress,
        executor=options["executor"],
        executor_words=options["executor_words"],
        python=options["python"],
        durations=options["durations"],
        mixed=options["mixed_versions"],
    )
    return campaign, None

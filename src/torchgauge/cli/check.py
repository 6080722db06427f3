"""``torchgauge check``."""

from __future__ import annotations

import sys
from typing import Any

import click

from torchgauge.cli.answer import JSON, aside, say, say_json
from torchgauge.cli.grouped_command import GroupedCommand
from torchgauge.cli.option_values import THREADS, CommaList, FiniteRange
from torchgauge.cli.options import EXPECTATIONS, PYTHON, store_option
from torchgauge.cli.verbosity import run_progress, verbosity


@click.command("check", cls=GroupedCommand)
@click.option("--device", type=CommaList(), default=(), help="device names, as NAME or NAME.INDEX")
@click.option(
    "--group", "groups", type=CommaList(), default=(), help="groups of checks, such as stream (default: all)"
)
@click.option("--checks", type=CommaList(), default=(), help="only these checks: names, globs or /regex/")
@click.option("--tier", default="full", show_default=True, help="tier of checks: smoke, standard or full")
@click.option("--timeout", type=FiniteRange(0.1), help="timeout of one check in seconds (default: 90)")
@click.option("--threads", type=THREADS, help="CPU threads of each measuring process (default: torch's)")
@EXPECTATIONS
@PYTHON
@store_option("folder of results")
@click.option("--list", "only_list", is_flag=True, help="list the checks; run nothing")
@verbosity
@JSON
def command(**options: Any) -> None:
    """Run device-generic checks on devices and print a capability card of each.

    Example: torchgauge check --device DEVICE --group stream,event
    """
    from torchgauge.harness.checks.check_campaign import check_campaign
    from torchgauge.harness.checks.check_card import card_lines, card_of, catalogue_lines
    from torchgauge.harness.run.run_report import report_plain
    from torchgauge.harness.run.summary import summary_lines
    from torchgauge.records import to_plain
    from torchgauge.results.lookup import find_results

    if options["only_list"]:
        say(catalogue_lines(options["groups"], options["checks"]))
        return
    progress = run_progress(options)
    with progress.during():
        campaign = check_campaign(options, progress)
    report = campaign.run()
    results, _ = find_results(str(campaign.store.path), report.run_id)
    cards = [
        card_of(str(target), [each for each in results if each.case.device == target])
        for target in dict.fromkeys(each.case.device for each in results)
    ]
    aside(summary_lines(report, campaign.store.path))
    if options["as_json"]:
        say_json({**report_plain(report), "cards": to_plain(cards)})
    else:
        say(line for card in cards for line in card_lines(card))
    sys.exit(report.exit_code)

"""``torchgauge ci watch``."""

from __future__ import annotations

import sys

import click

from torchgauge.cli.answer import JSON, aside, say_json
from torchgauge.cli.options import store_option


@click.command("watch")
@store_option("store that must contain the results")
@click.option("--config", "config_file", help="torchgauge.yml with the times and the required pools")
@click.option("--expect-by", metavar="HH:MM", help="time when results are due, UTC (default: 06:00)")
@click.option("--now", metavar="TIME", help="check as of this time instead of now (ISO 8601)")
@click.option("--nights", type=click.IntRange(1, 366), default=1, show_default=True, help="days to check")
@JSON
def command(
    store: str, config_file: str | None, expect_by: str | None, now: str | None, nights: int, as_json: bool
) -> None:
    """List missing results of the nightly run; exit 1 if there are any.

    Schedule this command apart from the nightly workflow.

    Example: torchgauge ci watch --store results --expect-by 06:00
    """
    from torchgauge.clock import SYSTEM_CLOCK, utc
    from torchgauge.records import to_plain
    from torchgauge.workflows.config import read_config
    from torchgauge.workflows.github_files import add_summary, annotate, in_actions
    from torchgauge.workflows.nights import moment_of, time_of_day
    from torchgauge.workflows.watch import Expectations, watch, watch_lines, watch_markdown

    config = read_config(config_file) if config_file else None
    expected = Expectations(
        expect_by=time_of_day(expect_by or (config.expect_by if config else "06:00")),
        begins=time_of_day(config.at if config else "00:00"),
        pools=tuple(pool.name for pool in config.pools) if config else (),
    )
    report = watch(store, expected, moment_of(now) if now else utc(SYSTEM_CLOCK.now()), nights)
    aside(watch_lines(report))
    if as_json:
        say_json({"alarm": report.alarm, **to_plain(report)})
    add_summary(watch_markdown(report))
    if report.alarm and in_actions():
        annotate("error", "\n".join(watch_lines(report)))
    sys.exit(1 if report.alarm else 0)

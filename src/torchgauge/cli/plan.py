"""``torchgauge plan``."""

from __future__ import annotations

from typing import Any

import click

from torchgauge.cli.answer import JSON, say
from torchgauge.cli.grouped_command import GroupedCommand
from torchgauge.cli.option_values import Seconds
from torchgauge.cli.options import (
    DURATIONS,
    EXECUTOR,
    EXECUTOR_OPTION,
    EXPECTATIONS,
    campaigning,
    selection_of,
    selectors,
    settings_of,
    store_option,
)


@click.command("plan", cls=GroupedCommand)
@selectors
@EXPECTATIONS
@campaigning
@DURATIONS
@click.option("--budget", type=Seconds(), help="show the models that fit into this time, such as 30m")
@store_option("store with earlier runs, to order the cases")
@click.option(
    "--save-durations", metavar="FILE", help="write the expected seconds of each case, for `run --durations`"
)
@EXECUTOR
@EXECUTOR_OPTION
@JSON
def command(suite: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Show the plan of SUITE...; measure nothing.

    With --json, prints a plan file for `torchgauge worker`.

    Example: torchgauge plan timm --device DEVICE --shard 1/4
    """
    from torchgauge.harness.executors.executor import executor_options, is_elsewhere, shown_jobs
    from torchgauge.harness.planning.order_text import order_lines
    from torchgauge.harness.run.campaigns import durations_of, make_plan
    from torchgauge.harness.run.summary import plan_lines
    from torchgauge.records import to_json

    known = {"durations": options["durations"], "store": options["store"]}
    executor = options["executor"]
    given = executor_options(executor, options["executor_words"], ask=False)
    plan, _, suites = make_plan(
        selection_of(suite, options),
        settings_of(options)[0],
        python=options["python"],
        elsewhere=is_elsewhere(executor),
        **known,
    )
    if options["save_durations"]:
        _save(options["save_durations"], durations_of(plan, suites, **known))
    if as_json:
        click.echo(to_json(plan))
        return
    say((*plan_lines(plan), *order_lines(plan)))
    click.echo("".join(f"{line}\n" for line in shown_jobs(executor, given, plan)), nl=False)


def _save(file: str, text: str) -> None:
    from pathlib import Path

    from torchgauge.results.atomic_file import storage_errors, write_atomically

    with storage_errors(Path(file)):
        write_atomically(Path(file), text.encode())

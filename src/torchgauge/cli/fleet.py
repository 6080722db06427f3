"""``torchgauge fleet``: the machines that an executor has."""

from __future__ import annotations

import click

from torchgauge.cli.answer import JSON, say, say_json
from torchgauge.cli.options import EXECUTOR_OPTION


@click.group("fleet")
def command() -> None:
    """Devices of several machines, and who has them."""


@command.command("status")
@click.option("--executor", default="local", show_default=True, help="where workers would run")
@EXECUTOR_OPTION
@JSON
def status(executor: str, executor_words: dict[str, str], as_json: bool) -> None:
    """Show devices of an executor, whether they are free, and the runs of torchgauge that have them.

    Example: torchgauge fleet status --executor slurm
    """
    from torchgauge.harness.executors.executor import executor_options
    from torchgauge.harness.executors.fleet import fleet_lines, fleet_of
    from torchgauge.records import to_plain

    found = fleet_of(executor, executor_options(executor, executor_words))
    if as_json:
        say_json([to_plain(each) for each in found])
    else:
        say(fleet_lines(found))

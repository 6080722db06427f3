"""``torchgauge results remove``."""

from __future__ import annotations

import click

from torchgauge.cli.option_values import named


@click.command("remove")
@click.argument("run")
@click.option("--store", required=True, callback=named, help="store that contains RUN")
@click.option("--reason", required=True, help="reason of the removal")
def command(run: str, store: str, reason: str) -> None:
    """Remove RUN from the tables of a store, and record the reason.

    Example: torchgauge results remove RUN --store history --reason "the clock was wrong"
    """
    from torchgauge.results.store import Store
    from torchgauge.workflows.ingest.removal import remove_run

    click.echo(f"removed {run}; the reason is in {remove_run(Store.open(store), run, reason)}")

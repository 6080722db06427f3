"""``torchgauge results remove``."""

from __future__ import annotations

import click

from torchgauge.cli.option_values import named


@click.command("remove")
@click.argument("run")
@click.option("--store", required=True, callback=named, help="the store that holds it")
@click.option("--reason", required=True, help="why it is removed")
def command(run: str, store: str, reason: str) -> None:
    """Remove RUN from the tables of a store, with a tombstone.

    Example: torchgauge results remove RUN --store history --reason "the clock was wrong"
    """
    from torchgauge.results.store import Store
    from torchgauge.workflows.ingest.removal import remove_run

    click.echo(f"removed {run}; {remove_run(Store.open(store), run, reason)} has the reason")

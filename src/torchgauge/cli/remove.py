"""``torchgauge results remove``."""

from __future__ import annotations

import click

from torchgauge.cli.option_values import named


@click.command("remove")
@click.argument("run")
@click.option("--store", required=True, callback=named, help="the store that holds it")
@click.option("--reason", required=True, help="why it is removed")
def command(run: str, store: str, reason: str) -> None:
    """Take RUN out of the tables of a store, leaving a tombstone; it cannot be collected again.

    Example: torchgauge results remove RUN --store history --reason "the clock was wrong"
    """
    from torchgauge.results.store import Store
    from torchgauge.workflows.ingest.removal import remove_run

    click.echo(f"removed {run}; {remove_run(Store.open(store), run, reason)} says why")

"""``torchgauge export``."""

from __future__ import annotations

from pathlib import Path

import click

from torchgauge.cli.answer import say
from torchgauge.cli.results import STORE


@click.command("export")
@click.argument("run")
@click.option(
    "--format", "form", required=True, type=click.Choice(("dynamo-csv", "dynamo-expected", "hud-v3")),
    help="PyTorch's dynamo CSV files, its expected-accuracy files, or its HUD's benchmark JSON",
)  # fmt: skip
@click.option("--out", required=True, metavar="PATH", help="folder of the CSV files, or the JSON file")
@click.option("--benchmark", default="torchgauge", show_default=True, help="benchmark.name of the JSON")
@STORE
def command(run: str, form: str, out: str, benchmark: str, store: str) -> None:
    """Write RUN in a format that PyTorch's own tools read.

    Example: torchgauge export RUN --format dynamo-csv --out ./csv
    """
    from torchgauge.results.interchange.formats import export_run
    from torchgauge.results.lookup import resolve_run
    from torchgauge.results.store import Store

    opened = Store.open(store)
    written = export_run(opened, resolve_run(opened, run), form, Path(out), benchmark)
    say(written.files)
    for case, reason in written.left_out:
        click.echo(f"left out: {case}: {reason}", err=True)

"""``torchgauge validate``."""

from __future__ import annotations

import click

from torchgauge.cli.answer import JSON, say_json


@click.command("validate")
@click.argument("files", nargs=-1, type=click.Path())
@JSON
def command(files: tuple[str, ...], as_json: bool) -> None:
    """Check FILES, or every data file of torchgauge's own; exit 2 with file, line and field of a mistake.

    Exceptions to tolerances that have expired, or that no model needs, are named on stderr.

    Example: torchgauge validate my-suite.yaml
    """
    from torchgauge.harness.validation import notes, validate

    checked = validate(files)
    for note in notes(files):
        click.echo(f"note  {note}", err=True)
    if as_json:
        say_json(checked)
        return
    for name in checked:
        click.echo(f"ok  {name}")

"""``torchgauge validate``."""

from __future__ import annotations

import json

import click


@click.command("validate")
@click.argument("files", nargs=-1, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="machine output on stdout")
def command(files: tuple[str, ...], as_json: bool) -> None:
    """Check FILES, or every data file of torchgauge's own; exit 2 with file, line and field of a mistake.

    Exceptions to tolerances that have expired, or that no model needs, are named on stderr.

    Example: torchgauge validate my-suite.yaml
    """
    from torchgauge.harness.validation import remarks, validate

    checked = validate(files)
    for remark in remarks(files):
        click.echo(f"note  {remark}", err=True)
    if as_json:
        click.echo(json.dumps(checked, indent=1))
        return
    for name in checked:
        click.echo(f"ok  {name}")

"""``torchgauge validate``."""

from __future__ import annotations

import sys

import click

from torchgauge.cli.answer import JSON, aside, say, say_json


@click.command("validate")
@click.argument("files", nargs=-1, type=click.Path())
@JSON
def command(files: tuple[str, ...], as_json: bool) -> None:
    """Check FILES, or every data file of torchgauge; exit 2 with file, line and field of each mistake.

    Expired and unused exceptions to tolerances are printed to stderr.

    Example: torchgauge validate my-suite.yaml
    """
    from torchgauge.harness.validation import notes, validate

    checked, mistakes = validate(files)
    if as_json:
        say_json(checked)
    else:
        say(f"ok  {name}" for name in checked)
    aside(f"error: {mistake}" for mistake in mistakes)
    if mistakes:
        sys.exit(2)
    aside(f"note  {note}" for note in notes(files))

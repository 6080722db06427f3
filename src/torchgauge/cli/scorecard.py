"""``torchgauge results scorecard``."""

from __future__ import annotations

import sys

import click

from torchgauge.cli.answer import asides, forms, say_json
from torchgauge.cli.option_values import CommaList
from torchgauge.cli.options import STORES


@click.command("scorecard")
@click.option("--device", type=CommaList(), default=(), help="devices (default: all in the stores)")
@STORES
@click.option(
    "--declared",
    multiple=True,
    metavar="FILE",
    help="YAML with declared facts, beside STORE/declared",
)
@forms(markdown="Markdown on stdout")
def command(device: tuple[str, ...], stores: tuple[str, ...], declared: tuple[str, ...], form: str) -> None:
    """Score devices by PyTorch's proposed quality levels.

    Runs nothing. Exit codes: 0, or 3 if part of a store could not be read.

    Example: torchgauge results scorecard --device DEVICE --declared vendor.yaml
    """
    from torchgauge.results.scorecard.gathering import scorecards
    from torchgauge.results.scorecard.text import as_plain, markdown_of, terminal_of

    found = scorecards(stores, device, declared)
    if form == "json":
        say_json(as_plain(found))
    else:
        click.echo({"markdown": markdown_of, "text": terminal_of}[form](found), nl=False)
    asides(found.notes, found.gaps)
    sys.exit(3 if found.gaps else 0)

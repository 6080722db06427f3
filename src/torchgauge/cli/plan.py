"""``torchgauge plan``."""

from __future__ import annotations

from typing import Any

import click

from torchgauge.cli.options import PYTHON, selection_of, selectors, settings_of, sources


@click.command("plan")
@selectors
@sources
@PYTHON
@click.option("--json", "as_json", is_flag=True, help="machine output on stdout")
def command(suite: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """Show the plan of SUITE... as it would run; nothing is written.

    Example: torchgauge plan timm --device DEVICE --shard 1/4
    """
    from torchgauge.harness.campaigns import make_plan
    from torchgauge.harness.summary import plan_lines
    from torchgauge.records import to_json

    plan, _, _ = make_plan(selection_of(suite, options), settings_of(options)[0], python=options["python"])
    if as_json:
        click.echo(to_json(plan))
        return
    for line in plan_lines(plan):
        click.echo(line)

"""``torchgauge worker``."""

from __future__ import annotations

import sys
from typing import Any

import click

from torchgauge.cli.answer import JSON, aside, say_json
from torchgauge.cli.grouped_command import GroupedCommand
from torchgauge.cli.options import MIXED_VERSIONS, PYTHON
from torchgauge.cli.verbosity import run_progress, verbosity


@click.command("worker", cls=GroupedCommand)
@click.argument("plan", type=click.Path(dir_okay=False))
@click.argument("groups", metavar="GROUP...", nargs=-1, required=True)
@click.option(
    "--into", required=True, metavar="DIR", help="folder for rows and logs; an interrupted one is continued"
)
@click.option("--node", metavar="NAME", help="name of this machine in rows and logs (default: its host name)")
@PYTHON
@MIXED_VERSIONS
@verbosity
@JSON
def command(plan: str, groups: tuple[str, ...], into: str, node: str | None, **options: Any) -> None:
    """Measure GROUP... of a PLAN file on this machine, for `torchgauge results merge`.

    Example: torchgauge worker plan.json 5b1f0c3d9a7e2468 --into parts/first
    """
    from pathlib import Path

    from torchgauge.harness.parts.part_run import node_name, part_campaign, run_part
    from torchgauge.harness.run.run_report import report_plain
    from torchgauge.harness.run.summary import report_lines

    campaign, whole = part_campaign(
        Path(plan),
        groups,
        node=node_name(node),
        progress=run_progress(options),
        python=options["python"],
        mixed=options["mixed_versions"],
    )
    report = run_part(campaign, whole, Path(into))
    aside(report_lines(report))
    click.echo(
        f"part of run {report.run_id} is in {into}; merge all parts: torchgauge results merge {into} ...",
        err=True,
    )
    if options["as_json"]:
        say_json(report_plain(report))
    sys.exit(report.exit_code)

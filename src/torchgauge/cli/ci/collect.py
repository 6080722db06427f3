"""``torchgauge ci collect``."""

from __future__ import annotations

import sys
from pathlib import Path

import click


@click.command("collect")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--campaign", "campaign_file", default="campaign.json", show_default=True, help="the plan")
@click.option("--store", required=True, help="where the runs go; it is made where there is none")
@click.option("--sha", default="", help="the commit that the forge says the campaign ran on")
@click.option("--config-file", metavar="FILE", help="named configurations of the campaign's own")
@click.option("--out", default="collect.json", show_default=True, help="what came and what did not")
@click.option("--ended", metavar="RESULT", default="", help="how the forge says that the jobs ended")
@click.option("--any-name", is_flag=True, help="do not ask that artifacts have the names of their sets")
def command(  # noqa: PLR0917  click passes them by name
    folder: Path,
    campaign_file: str,
    store: str,
    sha: str,
    config_file: str | None,
    out: str,
    ended: str,
    any_name: bool,
) -> None:
    """Validate and import all artifacts in FOLDER; exit 3 where the campaign is incomplete.

    Each entry of FOLDER is one artifact: a zip file, or a folder named after it. A shard of which nothing
    valid came is a gap, and so are a pool without a case and jobs that ended in anything but success where
    --ended says so; `ci gate` is never green over one.
    Changes in the history are kept for the dashboard.

    Example: torchgauge ci collect artifacts --store results --sha "$GITHUB_SHA"
    """
    from torchgauge.clock import SYSTEM_CLOCK
    from torchgauge.records import to_json
    from torchgauge.results.atomic_file import write_atomically
    from torchgauge.results.store import Store
    from torchgauge.workflows.campaign import read_campaign
    from torchgauge.workflows.collect import collect
    from torchgauge.workflows.ingest.validator import Expected
    from torchgauge.workflows.night_findings import keep_changes

    expected = Expected(read_campaign(campaign_file), SYSTEM_CLOCK.now(), sha, configurations=config_file)
    opened = Store.open(store, create=True)
    found = collect(folder, expected, opened, named=not any_name, ended=ended)
    write_atomically(Path(out), to_json(found).encode() + b"\n")
    keep_changes(opened, expected.now)
    counts = ", ".join(f"{count} {status}" for status, count in found.counts.items())
    click.echo(
        f"{found.campaign_id}: {found.state}, {found.recorded}/{found.planned} cases: {counts or 'none'}"
    )
    for refused in found.rejected:
        click.echo(f"rejected {refused.artifact}: {refused.reason.value}: {refused.detail}", err=True)
    for pool in expected.campaign.left_out:
        click.echo(f"left out, as asked: pool {pool}", err=True)
    for gap in found.gaps:
        click.echo(f"gap: {gap}", err=True)
    sys.exit(0 if found.complete else 3)

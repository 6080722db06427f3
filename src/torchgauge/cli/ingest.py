"""``torchgauge results ingest``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from torchgauge.cli.ci.campaign_option import campaign
from torchgauge.cli.option_values import named
from torchgauge.counted import counted


@click.command("ingest")
@click.argument("sets", nargs=-1, type=click.Path(path_type=Path))
@campaign()
@click.option(
    "--store", required=True, callback=named, help="where the runs go; it is made where there is none"
)
@click.option("--sha", default="", help="the commit that the Git host says the campaign ran on")
@click.option("--config-file", metavar="FILE", help="named configurations of the campaign's own")
@click.option("--contributor", default="", help="who submits the sets, as the Git host says")
@click.option(
    "--contributors",
    metavar="FILE",
    help="who may write which pools (default: contributors.yml of the store)",
)
@click.option("--remove", metavar="RUN", help="take a run out of the store, leaving a tombstone")
@click.option("--reason", default="", help="why it is removed")
def command(
    sets: tuple[Path, ...],
    campaign_file: str,
    campaign_digest: str,
    store: str,
    sha: str,
    config_file: str | None,
    contributor: str,
    contributors: str | None,
    remove: str | None,
    reason: str,
) -> None:
    """Validate result SETS (zip files or folders) and import those that are true; exit 3 if one is refused.

    With --contributor, contributors.yml at the top of the store says which pools they may write and which
    keys they sign with; nothing that is submitted ever changes that file.

    Example: torchgauge results ingest SET.zip --store results --contributor ACME
    """
    from dataclasses import replace

    from torchgauge.clock import SYSTEM_CLOCK
    from torchgauge.errors import UsageError
    from torchgauge.results.store import Store
    from torchgauge.workflows.campaign import read_campaign
    from torchgauge.workflows.ingest.contributors import CONTRIBUTORS, contributor_named
    from torchgauge.workflows.ingest.intake import import_sets
    from torchgauge.workflows.ingest.removal import remove_run
    from torchgauge.workflows.ingest.validator import Expected

    if remove is not None:
        if sets:
            raise UsageError("--remove takes no result sets", hint="remove first, then ingest")
        click.echo(f"removed {remove}; {remove_run(Store.open(store), remove, reason)} says why")
        return
    if not sets:
        raise UsageError("no result set is named", hint="a zip file or the folder that `ci run` wrote")
    if contributors and not contributor:
        raise UsageError("a list of contributors, and nobody is named", hint="--contributor NAME")
    listed = (
        contributor_named(contributors or Path(store, CONTRIBUTORS), contributor) if contributor else None
    )
    plan = read_campaign(campaign_file, campaign_digest)
    expected = Expected(plan, SYSTEM_CLOCK.now(), sha, configurations=config_file)
    if listed is not None:
        expected = replace(
            expected,
            pools=frozenset(listed.pools),
            rows_per_day=listed.rows_per_day,
            keys=frozenset(listed.keys),
            attested_by=dict(listed.attested_by),
        )
    taken, refused = import_sets(Store.open(store, create=True), sets, expected, contributor)
    for run in taken:
        said = "imported" if run.new else "is there already"
        click.echo(
            f"{run.run_id} {said}: pool {run.pool}, shard "
            f"{run.shard}, {counted(sum(run.counts.values()), 'row')}"
        )
        for text in run.differs:
            click.echo(f"note: {text}", err=True)
    for each in refused:
        click.echo(f"rejected {each.artifact}: {each.reason.value}: {each.detail}", err=True)
    sys.exit(3 if refused else 0)

"""``torchgauge ci receive``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from torchgauge.cli.option_values import named
from torchgauge.counted import counted


@click.command("receive")
@click.argument("bundle", type=click.Path(path_type=Path))
@click.option(
    "--store", required=True, callback=named, help="where the runs go; it is made where there is none"
)
@click.option("--contributor", required=True, help="who sent it")
@click.option(
    "--contributors",
    metavar="FILE",
    help="who may write which pools (default: contributors.yml of the store)",
)
def command(bundle: Path, store: str, contributor: str, contributors: str | None) -> None:
    """Verify the BUNDLE of a bringup, a folder or a zip of its files, and import its runs; exit 3 if refused.

    Every file must be the one that its manifest describes; where contributors.yml has keys of the
    contributor, it must be signed with one (torchgauge ci sign). Its runs are those of pool bringup-DEVICE.

    Example: torchgauge ci receive bundle --store results --contributor ACME
    """
    from torchgauge.errors import InfrastructureError
    from torchgauge.results.store import Store
    from torchgauge.workflows.bringup_bundle import receive
    from torchgauge.workflows.ingest.contributors import CONTRIBUTORS, contributor_named
    from torchgauge.workflows.ingest.refusal import RefusedSetError

    who = contributor_named(contributors or Path(store, CONTRIBUTORS), contributor)
    try:
        taken, refused = receive(Store.open(store, create=True), bundle, who)
    except RefusedSetError as error:
        raise InfrastructureError(f"{bundle} is refused: {error}", hint="ask for it again") from error
    for run in taken:
        said = "imported" if run.new else "is there already"
        click.echo(f"{run.run_id} {said}: {counted(sum(run.counts.values()), 'row')}")
    for each in refused:
        click.echo(f"rejected {each.artifact}: {each.reason.value}: {each.detail}", err=True)
    sys.exit(3 if refused else 0)

"""``torchgauge ci collect``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from torchgauge.cli.ci.campaign_option import campaign
from torchgauge.cli.option_values import named
from torchgauge.counted import counted
from torchgauge.results.run_id import MOST_ATTEMPTS


@click.command("collect")
@click.argument("folder", type=click.Path(path_type=Path))
@campaign()
@click.option("--store", required=True, callback=named, help="store to import into; created if missing")
@click.option("--sha", default="", help="required commit of the run, such as $GITHUB_SHA")
@click.option("--config-file", metavar="FILE", help="YAML with the configurations of the run")
@click.option(
    "--out",
    default="collect.json",
    show_default=True,
    help="output file: imported, rejected and missing results",
)
@click.option("--ended", metavar="RESULT", default="", help="result of the measuring jobs, from GitHub")
@click.option(
    "--attempts",
    type=click.IntRange(1),
    default=MOST_ATTEMPTS,
    envvar="GITHUB_RUN_ATTEMPT",
    help="latest attempt of the workflow run (default: GITHUB_RUN_ATTEMPT, else any)",
)
@click.option(
    "--ask-github", is_flag=True, help="accept only results that a job of the run declared on GitHub"
)
def command(
    folder: Path,
    campaign_file: str,
    campaign_digest: str,
    store: str,
    sha: str,
    config_file: str | None,
    out: str,
    ended: str,
    attempts: int,
    ask_github: bool,
) -> None:
    """Import the results of all jobs of a run into a store.

    FOLDER contains one artifact per job: a zip file or a folder. Artifacts that are not of the run are
    rejected. --ask-github needs GITHUB_TOKEN with `actions: read` and `checks: read`.

    Exit codes: 0 complete, 3 results are missing.

    Example: torchgauge ci collect artifacts --store results --sha "$GITHUB_SHA" --ask-github
    """
    from torchgauge.clock import SYSTEM_CLOCK
    from torchgauge.records import to_json
    from torchgauge.results.atomic_file import write_atomically
    from torchgauge.results.store import Store
    from torchgauge.workflows.campaign import read_campaign
    from torchgauge.workflows.collect import collect
    from torchgauge.workflows.ingest.validator import Expected
    from torchgauge.workflows.job_statements import asked_ends, asked_sets
    from torchgauge.workflows.night_findings import keep_changes
    from torchgauge.workflows.planned_nights import EndedJobs

    expected = Expected(
        read_campaign(campaign_file, campaign_digest),
        SYSTEM_CLOCK.now(),
        sha,
        configurations=config_file,
        attempts=attempts,
        stated=asked_sets() if ask_github else None,
    )
    opened = Store.open(store, create=True)
    jobs = asked_ends() if ask_github else ()
    found = collect(folder, expected, opened, ended=EndedJobs(ended, jobs))
    write_atomically(Path(out), to_json(found).encode() + b"\n")
    keep_changes(opened, expected.now)
    counts = ", ".join(f"{count} {status}" for status, count in found.counts.items())
    click.echo(
        f"{found.campaign_id}: {found.state}, "
        f"{found.recorded}/{counted(found.planned, 'case')}: {counts or 'none'}"
    )
    for refused in found.rejected:
        click.echo(f"rejected {refused.artifact}: {refused.reason.value}: {refused.detail}", err=True)
    for pool in expected.campaign.left_out:
        click.echo(f"left out on request: pool {pool}", err=True)
    for gap in found.gaps:
        click.echo(f"gap: {gap}", err=True)
    sys.exit(0 if found.complete else 3)

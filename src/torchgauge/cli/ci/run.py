"""``torchgauge ci run``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from torchgauge.cli.answer import aside, say_json
from torchgauge.cli.ci.campaign_option import campaign
from torchgauge.cli.option_values import Seconds
from torchgauge.cli.options import EXECUTOR, EXECUTOR_OPTION, campaigning, settings_of, store_option
from torchgauge.results.run_id import MOST_ATTEMPTS


@click.command("run")
@campaign()
@click.option("--pool", required=True, help="pool (group of machines) of the job")
@click.option(
    "--shard",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="number of the job in its pool, from 1",
)
@click.option(
    "--attempt",
    type=click.IntRange(1, MOST_ATTEMPTS),
    default=1,
    envvar="GITHUB_RUN_ATTEMPT",
    help="attempt at the job (default: GITHUB_RUN_ATTEMPT, or 1)",
)
@click.option("--out", help="output folder (default: the artifact's name)")
@click.option("--budget", type=Seconds(), help="stop after about this time, such as 30m")
@click.option("--deadline", type=Seconds(), help="time until the CI system kills the job")
@campaigning
@store_option("store of the run")
@EXECUTOR
@EXECUTOR_OPTION
def command(
    pool: str,
    shard: int,
    attempt: int,
    out: str | None,
    **options: Any,
) -> None:
    """Run one job of a plan, and write its results into a folder.

    Failed models do not change the exit code, since `ci gate` judges them.

    Exit codes: 0 measured, 2 or 3 no results.

    Example: torchgauge ci run --pool POOL --shard 2 --deadline 55m
    """
    from torchgauge.harness.planning.order_text import left_lines, order_lines
    from torchgauge.harness.run.progress import Progress
    from torchgauge.harness.run.summary import summary_lines
    from torchgauge.results.markdown_text import code, fenced
    from torchgauge.workflows.campaign import read_campaign
    from torchgauge.workflows.github_files import add_summary
    from torchgauge.workflows.job_statements import state_digest
    from torchgauge.workflows.result_set import Job, manifest_digest
    from torchgauge.workflows.shard_run import run_shard, shard_campaign, time_left

    plan = read_campaign(options["campaign_file"], options["campaign_digest"])
    found = plan.pool(pool)
    job = Job(plan, found, found.shard(shard), attempt)
    deadline = options["deadline"]
    if deadline is not None:
        options["budget"] = min(options["budget"] or deadline, time_left(deadline))
    settings, provenance = settings_of(options)
    runnable = shard_campaign(
        job,
        settings,
        provenance,
        store=options["store"],
        progress=Progress(),
        python=options["python"],
        executor=options["executor"],
        executor_words=options["executor_words"],
    )
    if settings.budget_s is not None:
        aside(order_lines(runnable.plan))
    report = run_shard(runnable, job, Path(out or job.artifact), deadline)
    if report.run is not None:
        lines = summary_lines(report.run, runnable.store.path)
        stopped = report.run.out_of_budget or report.run.interrupted
        left = left_lines(runnable.store, runnable.plan) if stopped else []
        aside((*lines, *left))
        if left:
            told = fenced("\n".join((lines[0], *left)))
            add_summary(f"### {code(job.artifact)}\n\n{told}")
    for text in filter(None, (report.trouble, *report.manifest.differs)):
        click.echo(f"note: {text}", err=True)
    state_digest(manifest_digest(Path(out or job.artifact)))
    said = {"artifact": job.artifact, "out": out or job.artifact, "run_id": report.manifest.run_id}
    say_json({**said, "state": report.manifest.state.value})

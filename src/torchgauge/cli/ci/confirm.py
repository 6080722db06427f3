"""``torchgauge ci confirm``."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import click

from torchgauge.cli.ci.campaign_option import campaign
from torchgauge.cli.option_values import Seconds
from torchgauge.cli.options import store_option


@click.command("confirm")
@click.option("--pool", required=True, help="the pool that this machine is in")
@click.option("--good", required=True, metavar="RUN", help="the last good run, as `ci suspects` says")
@click.option("--suspect", required=True, metavar="RUN", help="the first suspect run")
@store_option("where results are")
@campaign("a night's plan")
@click.option(
    "--config", "config_file", metavar="FILE", help="torchgauge.yml, for its policy (default: the one here)"
)
@click.option("--policy", metavar="FILE", help="what is ignored (default: of --config, else built in)")
@click.option("--install", default="", help="the command that makes a build, in an environment of its own")
@click.option(
    "--good-from", default=".", show_default=True, help="the checkout to run it in for the good build"
)
@click.option("--suspect-from", default=".", show_default=True, help="the same for the suspect build")
@click.option("--good-torch", default="", help="TORCH in that command for the good build")
@click.option("--suspect-torch", default="", help="the same for the suspect build")
@click.option(
    "--build", "builds", multiple=True, envvar="TORCHGAUGE_BUILDS",
    help="RUN=PYTHON or VERSION=PYTHON: a build that is there (or TORCHGAUGE_BUILDS, by spaces)",
)  # fmt: skip
@click.option("--budget", type=Seconds(), help="begin no comparison after about this long (90s, 30m, 2h)")
@click.option("--work", default="./torchgauge-builds", show_default=True, help="where builds are made")
@click.option("--out", default="./confirmed", show_default=True, help="folder of what is submitted")
def command(pool: str, good: str, suspect: str, **options: Any) -> None:
    """Measure open suspicions again on this machine: the last good build against the suspect one, by turns.

    Each answer is in the store and in --out at once, so that a job that ends early keeps what it has; the
    rest stays open. In a job of GitHub a notice states at the end what was made. Exit 0, whatever the answers
    are: `ci gate` judges them.

    Example: torchgauge ci confirm --pool POOL --good RUN --suspect RUN --build RUN=PYTHON
    """
    from torchgauge.harness.ab.judging import read_policy
    from torchgauge.harness.bisect.builds import named_build
    from torchgauge.results.store import Store
    from torchgauge.workflows.campaign import read_campaign
    from torchgauge.workflows.config import policy_file
    from torchgauge.workflows.confirm_run import ConfirmJob, SideOf, confirm, only_pair
    from torchgauge.workflows.open_suspicions import open_in

    policy = policy_file(options["policy"], options["config_file"])
    store = Store.open(options["store"])
    plan = read_campaign(options["campaign_file"], options["campaign_digest"])
    job = ConfirmJob(
        campaign_id=plan.campaign_id,
        pool=plan.pool(pool).name,
        out=Path(options["out"]),
        work=Path(options["work"]),
        install=options["install"],
        sides=(
            SideOf(good, Path(options["good_from"]), options["good_torch"]),
            SideOf(suspect, Path(options["suspect_from"]), options["suspect_torch"]),
        ),
        builds=dict(named_build(text) for text in options["builds"]),
        budget_s=options["budget"],
    )
    waiting = only_pair(open_in(store, read_policy(policy)), good, suspect)
    if not waiting:
        click.echo(f"no suspicion is open between {good} and {suspect}", err=True)
    try:
        confirm(job, store, waiting, partial(click.echo, err=True))
    finally:  # also where the job is cancelled: what it has counts
        _state(job.out)


def _state(folder: Path) -> None:
    """State on the page of the job, where there is one, which answers it made."""
    from torchgauge.workflows.confirm_set import OUTCOMES_FILE
    from torchgauge.workflows.job_statements import state_digest

    file = folder / OUTCOMES_FILE
    if file.is_file():
        state_digest(hashlib.sha256(file.read_bytes()).hexdigest())

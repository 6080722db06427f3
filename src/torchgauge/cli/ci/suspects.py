"""``torchgauge ci suspects``: what a night suspects, the jobs that measure it, and their answers."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import click

from torchgauge.cli.ci.campaign_option import campaign
from torchgauge.cli.lazy_group import LazyGroup
from torchgauge.cli.option_values import Seconds
from torchgauge.cli.options import store_option

VERBS = {
    "list": (
        "torchgauge.cli.ci.suspects:list_suspicions",
        "list suspected changes and the jobs that measure them",
    ),
    "measure": ("torchgauge.cli.ci.suspects:measure", "measure suspected changes again on their pool"),
    "settle": ("torchgauge.cli.ci.suspects:settle_suspicions", "import the outcomes into a store"),
}

CONFIG = click.option(
    "--config",
    "config_file",
    metavar="FILE",
    help="configuration with the policy (default: ./torchgauge.yml)",
)
POLICY = click.option("--policy", metavar="FILE", help="policy file (default: from --config, else built in)")


@click.group("suspects", cls=LazyGroup, sections={"Commands": VERBS})
def command() -> None:
    """List suspected changes, measure them again, and import the outcomes."""


@click.command("list")
@click.option(
    "--config",
    "config_file",
    default="torchgauge.yml",
    show_default=True,
    help="torchgauge.yml with the pools",
)
@POLICY
@campaign("plan of the nightly run, from `ci plan`")
@store_option("store with the results")
@click.option("--github", is_flag=True, help="write the step outputs `suspected`, `confirm` and `matrix`")
def list_suspicions(
    config_file: str,
    policy: str | None,
    campaign_file: str,
    campaign_digest: str,
    store: str,
    github: bool,
) -> None:
    """List suspected changes that are not decided, and the jobs that measure them.

    With --github, step outputs are `matrix` for jobs of `ci suspects measure`, `confirm` (`true` if
    there are jobs) and `suspected` (`true` if a change is listed).

    Example: torchgauge ci suspects list --store results
    """
    from torchgauge.harness.ab.judging import read_policy
    from torchgauge.records import to_plain
    from torchgauge.results.store import Store
    from torchgauge.workflows.campaign import read_campaign
    from torchgauge.workflows.config import read_config
    from torchgauge.workflows.github_files import set_json_output, set_output
    from torchgauge.workflows.open_suspicions import legs_of, open_in

    config = read_config(config_file)
    opened, plan = Store.open(store), read_campaign(campaign_file, campaign_digest)
    waiting = open_in(opened, read_policy(policy or config.policy))
    legs = legs_of(opened, waiting, plan, config)
    for each in waiting:
        since = f"since {each.suspect.date} ({each.good.run_id} -> {each.suspect.run_id})"
        click.echo(f"{each.state.name} {each.series.case_id} {each.moved} {since}")
    for leg in legs:
        words = f"--pool {leg.pool} --good {leg.good_run} --suspect {leg.suspect_run}"
        click.echo(f"torchgauge ci suspects measure {words}")
    if not waiting:
        click.echo("no suspected change is open")
    if github:
        set_json_output("matrix", {"include": [to_plain(leg) for leg in legs]})
        set_output("confirm", "true" if legs else "false")
        set_output("suspected", "true" if waiting else "false")


@click.command("measure")
@click.option("--pool", required=True, help="pool of this machine")
@click.option("--good", required=True, metavar="RUN", help="last good run, from `ci suspects list`")
@click.option("--suspect", required=True, metavar="RUN", help="the first suspect run")
@store_option("store with the results")
@campaign("plan of the nightly run, from `ci plan`")
@CONFIG
@POLICY
@click.option("--install", default="", help="command that installs a build")
@click.option("--good-from", default=".", show_default=True, help="checkout of the good build")
@click.option("--suspect-from", default=".", show_default=True, help="checkout of the suspect build")
@click.option("--good-torch", default="", help="value of $TORCH in --install for the good build")
@click.option("--suspect-torch", default="", help="value of $TORCH in --install for the suspect build")
@click.option(
    "--build", "builds", multiple=True, envvar="TORCHGAUGE_BUILDS",
    help="interpreter of a build: RUN=PYTHON or VERSION=PYTHON (or TORCHGAUGE_BUILDS)",
)  # fmt: skip
@click.option("--budget", type=Seconds(), help="start no comparison after this time, such as 30m")
@click.option("--work", default="./torchgauge-builds", show_default=True, help="folder of builds")
@click.option("--out", default="./confirmed", show_default=True, help="output folder of outcomes")
def measure(pool: str, good: str, suspect: str, **options: Any) -> None:
    """Measure suspected changes again on this machine: the last good build and the suspect one.

    Exit code 0 with any outcome, since `ci gate` judges.

    Example: torchgauge ci suspects measure --pool POOL --good RUN --suspect RUN --build RUN=PYTHON
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
        click.echo(f"no suspected change is open between {good} and {suspect}", err=True)
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


@click.command("settle")
@click.argument("folder", type=click.Path(path_type=Path))
@store_option("store with the results")
@campaign("plan of the nightly run, from `ci plan`")
@CONFIG
@POLICY
@click.option(
    "--ask-github",
    is_flag=True,
    help="accept only outcomes that a job of the run declared on GitHub",
)
def settle_suspicions(
    folder: Path,
    store: str,
    campaign_file: str,
    campaign_digest: str,
    config_file: str | None,
    policy: str | None,
    ask_github: bool,
) -> None:
    """Import the outcomes of `ci suspects measure` below FOLDER into the store.

    Outcomes of another pool are refused. --ask-github needs GITHUB_TOKEN with `actions: read` and
    `checks: read`.

    Example: torchgauge ci suspects settle confirmed --store results --ask-github
    """
    from torchgauge.harness.ab.judging import read_policy
    from torchgauge.results.store import Store
    from torchgauge.workflows.campaign import read_campaign
    from torchgauge.workflows.config import CONFIG_FILE, policy_file, read_config
    from torchgauge.workflows.confirm_set import Rules, settle
    from torchgauge.workflows.job_statements import asked_sets

    plan = read_campaign(campaign_file, campaign_digest)
    there = config_file or (CONFIG_FILE if Path(CONFIG_FILE).is_file() else None)
    pools = read_config(there).pools if there else plan.pools
    stated = asked_sets() if ask_github else None
    rules = Rules(read_policy(policy_file(policy, there)), frozenset(pool.name for pool in pools), stated)
    found = settle(Store.open(store), folder, plan, rules)
    for outcome in found.taken:
        click.echo(f"{outcome.state.name} {outcome.case_id}: {outcome.reason}")
    for words in found.refused:
        click.echo(f"refused {words}", err=True)
    for each in found.left:
        click.echo(f"still open: {each.series.case_id} {each.moved} since {each.suspect.date}")
    if not (found.taken or found.left):
        click.echo("no suspected change has a new outcome")

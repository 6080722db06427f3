"""``torchgauge ci settle``."""

from __future__ import annotations

from pathlib import Path

import click

from torchgauge.cli.ci.campaign_option import campaign
from torchgauge.cli.options import store_option


@click.command("settle")
@click.argument("folder", type=click.Path(path_type=Path))
@store_option("where results are")
@campaign("a night's plan")
@click.option(
    "--config", "config_file", metavar="FILE", help="torchgauge.yml, for its policy (default: the one here)"
)
@click.option("--policy", metavar="FILE", help="what is ignored (default: of --config, else built in)")
@click.option("--ask-github", is_flag=True, help="take only answers that their jobs state, by the API")
def command(
    folder: Path,
    store: str,
    campaign_file: str,
    campaign_digest: str,
    config_file: str | None,
    policy: str | None,
    ask_github: bool,
) -> None:
    """Take what the jobs of `ci confirm` submitted below FOLDER into the store.

    An answer counts for an open suspicion of the pool's own runs; any other is refused, and said. With
    --ask-github, GITHUB_TOKEN and the permissions `actions: read` and `checks: read`, the pool is that of the
    job whose page names the set, `confirm POOL LEG`. A suspicion without an answer stays open: the gate of
    this night and of each later one sees it. Exit 0.

    Example: torchgauge ci settle confirmed --store results --ask-github
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
        click.echo(f"still open: {each.series.case_id} {each.change.size:+.1%} since {each.suspect.date}")
    if not (found.taken or found.left):
        click.echo("no suspicion has a new answer")

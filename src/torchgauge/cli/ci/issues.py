"""``torchgauge ci report issues``."""

from __future__ import annotations

import os

import click

from torchgauge.cli.ci.campaign_option import campaign
from torchgauge.cli.options import store_option


@click.command("issues")
@store_option("store with the results")
@campaign("plan of the nightly run, from `ci plan`")
@click.option("--collected", default="collect.json", show_default=True, help="file that `ci collect` wrote")
@click.option("--config", "config_file", help="configuration (default: ./torchgauge.yml)")
@click.option("--policy", metavar="FILE", help="policy file (default: from --config, else built in)")
@click.option("--repository", envvar="GITHUB_REPOSITORY", default="", help="OWNER/NAME")
@click.option("--bot", default="github-actions[bot]", show_default=True, help="GitHub account of the token")
@click.option("--most", type=click.IntRange(0), default=10, show_default=True, help="maximum of new issues")
@click.option("--url", default="", help="URL of the dashboard")
@click.option("--dry-run", is_flag=True, help="print the changes; write nothing")
def command(
    store: str,
    campaign_file: str,
    campaign_digest: str,
    collected: str,
    config_file: str | None,
    policy: str | None,
    repository: str,
    bot: str,
    most: int,
    url: str,
    dry_run: bool,
) -> None:
    """Open, update and close issues on a nightly run: changes, failures, missing results.

    Issues that a person closed stay closed.

    Example: torchgauge ci report issues --store results --dry-run
    """
    from torchgauge.harness.ab.judging import read_policy
    from torchgauge.results.store import Store
    from torchgauge.workflows.campaign import read_campaign
    from torchgauge.workflows.config import configured_pools, policy_file
    from torchgauge.workflows.gated_night import gated_night
    from torchgauge.workflows.github_api import GitHubApi, repository_path
    from torchgauge.workflows.issues import apply_steps, known_issues, plan_issues

    rules = read_policy(policy_file(policy, config_file))
    pools = configured_pools(config_file)
    plan = read_campaign(campaign_file, campaign_digest)
    found = gated_night(Store.open(store), plan, collected, rules, pools)
    offline = dry_run and not (os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN"))
    if not offline:
        repository_path(repository)
    api = None if offline else GitHubApi.from_environment()
    known = known_issues(api, repository, bot) if api is not None else []
    planned = plan_issues(found, known, most_new=most, url=url)
    for step in planned.steps:
        click.echo(f"{step.do.value}{f' #{step.number}' if step.number else ''}: {step.title}")
        if dry_run:
            click.echo(step.body)
    if planned.held_back:
        click.echo(f"new issues not opened: {planned.held_back} (--most is {most})", err=True)
    if planned.left:
        click.echo(f"issues that a person closed stay closed: {planned.left}", err=True)
    if api is not None and not dry_run:
        apply_steps(api, repository, planned.steps)
    if not planned.steps:
        click.echo("nothing to do")

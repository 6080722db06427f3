"""``torchgauge ci suspects``."""

from __future__ import annotations

import click

from torchgauge.cli.ci.campaign_option import campaign
from torchgauge.cli.options import store_option


@click.command("suspects")
@click.option("--config", "config_file", default="torchgauge.yml", show_default=True, help="the pools")
@click.option("--policy", metavar="FILE", help="what is ignored (default: of --config, else built in)")
@campaign("a night's plan")
@store_option("where results are")
@click.option("--github", is_flag=True, help="set this step's outputs: suspected, confirm, matrix")
def command(
    config_file: str,
    policy: str | None,
    campaign_file: str,
    campaign_digest: str,
    store: str,
    github: bool,
) -> None:
    """List the suspicions that no machine has answered yet, and the jobs that measure them.

    Outputs: `matrix` for jobs of `ci confirm`, `confirm` (`true` where it has one), and `suspected` (`true`
    where any suspicion is open, also one that needs no machine: `ci settle` answers those).

    Example: torchgauge ci suspects --store results
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
        click.echo(f"{each.state.name} {each.series.case_id} {each.change.size:+.1%} {since}")
    for leg in legs:
        words = f"--pool {leg.pool} --good {leg.good_run} --suspect {leg.suspect_run}"
        click.echo(f"torchgauge ci confirm {words}")
    if not waiting:
        click.echo("no suspicion is open")
    if github:
        set_json_output("matrix", {"include": [to_plain(leg) for leg in legs]})
        set_output("confirm", "true" if legs else "false")
        set_output("suspected", "true" if waiting else "false")

"""``torchgauge ci plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from torchgauge.cli.option_values import CommaList
from torchgauge.counted import counted

if TYPE_CHECKING:
    from torchgauge.workflows.campaign import CampaignPlan
    from torchgauge.workflows.config import Config


@click.command("plan")
@click.option("--config", "config_file", default="torchgauge.yml", show_default=True, help="configuration")
@click.option("--store", help="store of earlier results, to balance the jobs")
@click.option("--out", default="campaign.json", show_default=True, help="output file")
@click.option("--pool", "pools", type=CommaList(optional=True), help="only these pools (default and '': all)")
@click.option(
    "--trust",
    type=click.Choice(["anyone", "collaborators"]),
    help="only pools with this `trust` in torchgauge.yml",
)
@click.option("--torch", "torch", default="", help="torch under test (default: pinned by the pools)")
@click.option(
    "--night",
    metavar="DATE",
    envvar="TORCHGAUGE_NIGHT",
    help="date of the nightly run (or TORCHGAUGE_NIGHT; default: today, UTC)",
)
@click.option("--repository", envvar="GITHUB_REPOSITORY", default="", help="OWNER/NAME")
@click.option("--sha", envvar="GITHUB_SHA", default="", help="commit of the run")
@click.option("--pull-request", is_flag=True, help="plan one job per pool, for `ci gate`")
@click.option("--once", is_flag=True, help="plan nothing if --store contains every result")
@click.option("--github", is_flag=True, help="write the step outputs `matrix`, `campaign`, `digest`, ...")
def command(config_file: str, out: str, github: bool, **options: Any) -> None:
    """Plan a nightly run: which job of each pool (group of machines) measures what.

    With --github, step outputs are `matrix` for strategy.matrix, `campaign` (name), `digest`, `torch`,
    and `nothing` (`true` for an empty plan).

    Exit codes: 0 planned, 5 nothing to do.

    Example: torchgauge ci plan --config torchgauge.yml --store results --out campaign.json --github
    """
    from torchgauge.errors import NothingSelectedError
    from torchgauge.workflows.config import read_config

    config = read_config(config_file)
    try:
        plan = _plan(config, options)
    except NothingSelectedError:
        if github:
            _hand_on_nothing("")
        raise
    if options["once"] and _is_there(options["store"], plan):
        click.echo(f"{plan.campaign_id}: nothing is planned, since the store contains every result", err=True)
        if github:
            _hand_on_nothing(plan.campaign_id)
        return
    _write(plan, out)
    _report(plan, config, out)
    if github:
        _hand_on(plan, config, options)


def _is_there(store: str | None, plan: CampaignPlan) -> bool:
    from torchgauge.workflows.watch import is_complete

    return is_complete(store, plan)


def _hand_on_nothing(campaign: str) -> None:
    from torchgauge.workflows.github_files import set_json_output, set_output

    set_json_output("matrix", {"include": []})
    set_output("campaign", campaign)
    set_output("nothing", "true")


def _plan(config: Config, options: dict[str, Any]) -> CampaignPlan:
    from dataclasses import replace

    from torchgauge.clock import SYSTEM_CLOCK, utc
    from torchgauge.errors import NothingSelectedError
    from torchgauge.results.durations import recorded_durations
    from torchgauge.workflows import planning
    from torchgauge.workflows.nights import night_of

    now = SYSTEM_CLOCK.now()
    night = night_of(options["night"]) if options["night"] else utc(now).date()
    words = {name: options[name] for name in ("repository", "sha", "torch")}
    occasion = planning.Occasion(created_at=now, night=night.isoformat(), **words)
    # a label without a name, not a night without a list
    if options["pull_request"] and options["pools"] == ():
        raise NothingSelectedError("no pool was given", hint="--pool NAME, or the label torchgauge-run:NAME")
    pools = planning.chosen_pools(config, options["pools"] or (), options["trust"] or "")
    if options["pull_request"]:
        pools = planning.in_one_job(pools)
    work = planning.select_cases(config.campaign, planning.devices_of(pools))
    recorded = recorded_durations(options["store"], work.case_ids)
    plan = planning.plan_campaign(pools, occasion, work, recorded)
    asked = {pool.name for pool in pools}
    return replace(plan, left_out=tuple(pool.name for pool in config.pools if pool.name not in asked))


def _write(plan: CampaignPlan, out: str) -> None:
    from pathlib import Path

    from torchgauge.results.atomic_file import storage_errors, write_atomically
    from torchgauge.workflows.campaign import campaign_json

    path = Path(out)
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, campaign_json(plan).encode())


def _report(plan: CampaignPlan, config: Config, out: str) -> None:
    from torchgauge.workflows.github_files import add_summary, annotate
    from torchgauge.workflows.planning import notes_of, summary_of

    for note in notes_of(plan, config):
        annotate("warning", note)
    jobs = sum(len(pool.shards) for pool in plan.pools)
    cases = sum(len(shard.cases) for pool in plan.pools for shard in pool.shards)
    click.echo(
        f"{plan.campaign_id}: {counted(cases, 'case')} in {counted(jobs, 'job')}, written to {out}", err=True
    )
    add_summary("\n".join(summary_of(plan)))


def _hand_on(plan: CampaignPlan, config: Config, options: dict[str, Any]) -> None:
    from torchgauge.records import to_plain
    from torchgauge.workflows.github_files import set_json_output, set_output
    from torchgauge.workflows.planning import legs_of

    legs = [to_plain(leg) for leg in legs_of(plan, config)]
    if options["pull_request"]:
        from torchgauge.workflows.gate_set import ARTIFACT_PREFIX

        legs = [{**leg, "artifact": ARTIFACT_PREFIX + leg["pool"], "compiled": ""} for leg in legs]
    set_json_output("matrix", {"include": legs})
    set_output("campaign", plan.campaign_id)
    set_output("digest", plan.digest)
    set_output("torch", options["torch"])
    set_output("nothing", "false")

"""``torchgauge ci gate``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from torchgauge.cli.answer import JSON, say_json
from torchgauge.cli.ci.campaign_option import campaign
from torchgauge.cli.option_values import CommaList, Seconds
from torchgauge.cli.options import MAX_LAUNCHES, measuring, settings_of, sources, store_option
from torchgauge.counted import counted
from torchgauge.errors import UsageError

if TYPE_CHECKING:
    from torchgauge.records.comparison import CodeSource
    from torchgauge.results.comparing.policy import Policy
    from torchgauge.workflows.ab_gate import AbGate, AbGateEnding
    from torchgauge.workflows.config import Config

_SIDES = ("base", "head", "base_python", "head_python")


@click.command("gate")
@click.argument("suite", nargs=-1)
@click.option("--config", "yml", help="configuration (default: ./torchgauge.yml)")
@click.option(
    "--policy",
    metavar="FILE",
    help="YAML with tolerances and actions (default: from --config, else built in)",
)
@store_option("the store")
@campaign("plan of the nightly run, from `ci plan`")
@click.option("--collected", default="collect.json", show_default=True, help="file that `ci collect` wrote")
@click.option(
    "--undecided",
    type=click.Choice(["neutral", "success", "failure"]),
    help="result if a change is neither confirmed nor excluded",
)
@click.option("--base", metavar="SPEC", help="base (old side), as for pip: torch==2.12.0, a wheel, a folder")
@click.option("--head", metavar="SPEC", help="head (new side), as --base")
@click.option("--base-python", metavar="PYTHON", help="Python interpreter instead of --base")
@click.option("--head-python", metavar="PYTHON", help="Python interpreter instead of --head")
@click.option("--also", multiple=True, metavar="SPEC", help="package for both sides, such as timm")
@click.option("--pool", help="pool of this machine")
@click.option("--device", help="device to measure on (default: the pool's)")
@click.option(
    "--models", type=CommaList(optional=True), default=(), help="names, globs or /regex/; overrides --tier"
)
@click.option(
    "--mode", type=CommaList(optional=True), default=(), help="inference,training (default: from --config)"
)
@click.option(
    "--configs", type=CommaList(optional=True), default=(), help="eager,inductor,... (default: from --config)"
)
@click.option(
    "--dtype", type=CommaList(optional=True), default=(), help="float32,... (default: from --config)"
)
@click.option("--tier", help="tier: smoke, standard or full (default: from --config)")
@click.option("--budget", type=Seconds(), help="time limit (default: the pool's)")
@MAX_LAUNCHES
@click.option("--no-control", is_flag=True, help="do not measure head against itself")
@click.option("--seed", type=int, help="seed of random choices, such as the order of sides (default: random)")
@click.option(
    "--head-sha", help="commit of the pull request (default: from GITHUB_EVENT_PATH, else GITHUB_SHA)"
)
@click.option("--work", default="./torchgauge-sides", show_default=True, help="folder for environments")
@click.option("--out", help="output folder (default: pr-gate-v1-POOL)")
@click.option("--exit-verdict", is_flag=True, help="exit 1 after a regression, 3 if incomplete or undecided")
@JSON
@sources
@measuring
@click.pass_context
def command(context: click.Context, /, suite: tuple[str, ...], **options: Any) -> None:
    """Judge a nightly run; or, with --base or --head, measure a pull request.

    Exit codes of a nightly run: 0 good, 1 regression or unexpected failure, 3 incomplete.

    Exit codes of a pull request: 0 measured; see --exit-verdict.

    Example: torchgauge ci gate --pool POOL --base torch==2.12.0 --head torch==2.13.0
    """
    pull_request = any(options[name] for name in _SIDES)
    if not pull_request and suite:
        raise UsageError("suites were given without --base or --head", hint="--base SPEC --head SPEC")
    config = _config(options["yml"])
    context.exit(_pull_request(suite, options, config) if pull_request else _night(options, config))


def _config(path: str | None) -> Config | None:
    from pathlib import Path

    from torchgauge.workflows.config import CONFIG_FILE, read_config

    return read_config(path or CONFIG_FILE) if path or Path(CONFIG_FILE).is_file() else None


def _policy_file(options: dict[str, Any], config: Config | None) -> str:
    return str(options["policy"] or (config.policy if config else ""))


def _night(options: dict[str, Any], config: Config | None) -> int:
    from torchgauge.harness.ab.judging import read_policy
    from torchgauge.results.store import Store
    from torchgauge.workflows.campaign import read_campaign
    from torchgauge.workflows.gate import gate_json, gate_summary, nightly_gate
    from torchgauge.workflows.gated_night import gated_night
    from torchgauge.workflows.github_files import add_summary

    policy = read_policy(_policy_file(options, config))
    pools = tuple(pool.name for pool in config.pools) if config else ()
    plan = read_campaign(options["campaign_file"], options["campaign_digest"])
    found = gated_night(Store.open(options["store"]), plan, options["collected"], policy, pools)
    undecided = options["undecided"] or (config.undecided if config else "failure")
    result = nightly_gate(found, policy, undecided)
    _tell_unused(policy, [case for pool in plan.pools for shard in pool.shards for case in shard.cases])
    add_summary(gate_summary(result))
    if options["as_json"]:
        say_json(gate_json(result))
    else:
        click.echo(f"{result.verdict.value}: {found.campaign_id}: {counted(found.cases, 'case')}")
        for reason in result.reasons:
            click.echo(f"  {reason}")
        for pool in found.left_out:
            click.echo(f"  left out on request: pool {pool}")
        for refused in found.rejected:
            click.echo(f"  rejected: {refused}")
    return result.exit_code


def _tell_unused(policy: Policy, cases: Iterable[str]) -> None:
    """Warn of overrides that apply to none of ``cases``; on stderr, or at the top of the run."""
    from torchgauge.results.comparing.policy_notes import unused_notes
    from torchgauge.workflows.github_files import annotate

    for note in unused_notes(policy, cases):
        annotate("warning", note)


def _pull_request(suite: tuple[str, ...], options: dict[str, Any], config: Config | None) -> int:
    from pathlib import Path

    from torchgauge.harness.ab.judging import read_policy
    from torchgauge.harness.ab.progress import AbProgress
    from torchgauge.workflows.ab_gate import run_ab_gate
    from torchgauge.workflows.gate_set import ARTIFACT_PREFIX
    from torchgauge.workflows.github_files import in_actions, set_output

    wanted = _wanted(suite, options, config)
    out = Path(options["out"] or ARTIFACT_PREFIX + wanted.pool)
    if out.exists():
        raise UsageError(f"{out} exists", hint="--out with a new folder")
    ending = run_ab_gate(wanted, Path(options["store"]), Path(options["work"]), out, AbProgress())
    if ending.report is not None:
        judged = [each.head_case for each in ending.report.verdicts if each.pair_key]
        _tell_unused(read_policy(wanted.policy), (*judged, *ending.report.not_run))
    artifact = ARTIFACT_PREFIX + wanted.pool
    told = {"artifact": artifact, "out": str(out), "verdict": ending.verdict.value, "run_id": ending.run_id}
    if in_actions():
        for name in ("artifact", "verdict"):
            set_output(name, told[name])
    _tell(ending)
    click.echo(json.dumps({**told, "trouble": ending.trouble}, indent=1) if options["as_json"] else
               f"{ending.verdict.value}: {out}")  # fmt: skip
    return ending.exit_code if options["exit_verdict"] else 0


def _tell(ending: AbGateEnding) -> None:
    """The summary of the step; and what pip or an interpreter said."""
    from torchgauge.results.markdown_text import fenced
    from torchgauge.results.reports.markdown import render
    from torchgauge.workflows.github_files import add_summary

    if ending.report is not None:
        add_summary(render(ending.report))
    if ending.trouble:
        add_summary(f"Nothing was measured:\n\n{fenced(ending.trouble)}")
        click.echo(f"nothing was measured: {ending.trouble}", err=True)


def _wanted(suite: tuple[str, ...], options: dict[str, Any], config: Config | None) -> AbGate:

    from torchgauge.workflows.ab_gate import AbGate
    from torchgauge.workflows.gate_set import POOL

    name = options["pool"]
    if not name or not POOL.fullmatch(name):
        raise UsageError(f"{name!r} is not a valid name of a pool", hint="--pool NAME, of a-z, 0-9 and -")
    pool = config.pool(name) if config else None
    options["config_file"] = options["config_file"] or (config.campaign.config_file if config else "") or None
    settings, _ = settings_of(options)
    return AbGate(
        pool=name,
        base=_side("base", options, pool.base if pool else ""),
        head=_side("head", options, pool.head if pool else ""),
        selection=_selection(suite, options, config, pool.device if pool else ""),
        settings=settings,
        origin=_origin(options["head_sha"]),
        budget_s=options["budget"] or (pool.budget_s if pool else None),
        policy=_policy_file(options, config),
        also=options["also"],
        install=pool.install if pool else "",
        max_launches=options["max_launches"],
        controls=0 if options["no_control"] else 2,
        seed=options["seed"],
    )


def _side(name: str, options: dict[str, Any], fallback: str) -> Any:
    from torchgauge.processes.secret_names import hide_told
    from torchgauge.workflows.ab_gate import Side

    given, python = options[name], options[f"{name}_python"]
    if given and python:
        raise UsageError(f"--{name} and --{name}-python were both given", hint="pass one of them")
    if python:
        return Side(label=f"{name} {python}", python=python)
    specification = given or fallback
    if not specification:
        raise UsageError(
            f"no {name} was given", hint=f"--{name} SPEC, or set `{name}:` of the pool in torchgauge.yml"
        )
    return Side(hide_told(specification), specification, source=_source(name, specification))


def _source(name: str, folder: str) -> CodeSource | None:
    """Return the commit of the checkout ``folder``, with its branch where the event names that commit."""
    from dataclasses import replace
    from pathlib import Path

    from torchgauge.suites.own.revision import source_of

    if not Path(folder).is_dir():
        return None
    try:
        source = source_of(Path(folder))
    except UsageError:  # no repository
        return None
    listed = _of_pull_request(name)
    named = listed.get("sha") == source.commit
    return replace(source, branch=str(listed.get("ref", ""))) if named else source


def _of_pull_request(side: str) -> dict[str, Any]:
    """Return base or head of the pull request in the file of the event; empty where there is none."""
    import os

    from torchgauge.workflows.workflow_event import read_event

    path = os.environ.get("GITHUB_EVENT_PATH", "")
    request = read_event(path).get("pull_request") if path else None
    listed = request.get(side) if isinstance(request, dict) else None
    return listed if isinstance(listed, dict) else {}


def _selection(suite: tuple[str, ...], options: dict[str, Any], config: Config | None, device: str) -> Any:
    from torchgauge.harness.planning.selection import Selection, suites_and_models

    chosen = config.campaign if config else None
    device = options["device"] or device
    if not device:
        raise UsageError("no device was given", hint="--device NAME; torchgauge devices lists them")
    suites, patterns = suites_and_models(suite)
    suites = suites or (chosen.suites if chosen else ())
    if not suites:
        raise UsageError("no suite was given", hint="SUITE; torchgauge suites lists them")
    return Selection(
        suites=suites,
        devices=(device,),
        models=(*patterns, *options["models"]) or (chosen.models if chosen and not suite else ()),
        modes=options["mode"] or (chosen.modes if chosen else ()),
        configurations=options["configs"] or (chosen.configs if chosen else ()),
        dtypes=options["dtype"] or (chosen.dtypes if chosen else ()),
        tier=options["tier"] or (chosen.tier if chosen else "smoke"),
        size=chosen.size if chosen else "small",
        configuration_file=options["config_file"],
    )


def _origin(head_sha: str | None) -> Any:
    """Where the set says that it comes from; the job that reads it compares this with what GitHub says."""
    import os

    from torchgauge.workflows.gate_set import Origin

    sha = (
        head_sha
        or str(_of_pull_request("head").get("sha", ""))
        or os.environ.get("GITHUB_SHA", "")
        or "0" * 40
    )
    if not re.fullmatch(r"[0-9a-f]{40}", sha):
        raise UsageError(f"{sha[:60]!r} is not a commit id", hint="--head-sha with all 40 digits")
    run, attempt = (os.environ.get(name, "") for name in ("GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"))
    return Origin(
        os.environ.get("GITHUB_REPOSITORY", "") or "local/checkout",
        sha,
        int(run) if run.isdigit() else 1,
        int(attempt) if attempt.isdigit() else 1,
    )

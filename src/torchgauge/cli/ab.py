"""``torchgauge ab``."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import click

from torchgauge.cli.answer import JSON, aside, say, say_json
from torchgauge.cli.grouped_command import GroupedCommand
from torchgauge.cli.options import (
    MAX_LAUNCHES,
    MAX_TIME,
    measuring,
    selection_of,
    selectors,
    settings_of,
    sources,
    store_option,
    typed_settings,
)
from torchgauge.cli.verbosity import ab_progress, verbosity
from torchgauge.errors import UsageError

if TYPE_CHECKING:
    from torchgauge.harness.ab.comparison import Request
    from torchgauge.records.comparison import SideSpec
    from torchgauge.results.comparing.policy import Policy


@click.command("ab", cls=GroupedCommand)
@selectors
@sources
@click.option("--base", metavar="PYTHON", help="Python interpreter of the base (default: torchgauge's own)")
@click.option("--head", metavar="PYTHON", help="Python interpreter of the head (default: torchgauge's own)")
@click.option("--base-env", multiple=True, metavar="K=V", help="environment variable of the base; repeatable")
@click.option("--head-env", multiple=True, metavar="K=V", help="environment variable of the head; repeatable")
@click.option("--base-config", metavar="NAME", help="configuration of the base, instead of --config")
@click.option("--head-config", metavar="NAME", help="configuration of the head, instead of --config")
@click.option("--base-rev", metavar="REVISION", help="commit or branch of your model file, for base")
@click.option("--head-rev", metavar="REVISION", help="as --base-rev, for head (default: the working tree)")
@click.option("--control", is_flag=True, help="measure head against itself, to test for false alarms")
@click.option("--no-control", is_flag=True, help="do not measure head against itself")
@click.option("--policy", metavar="FILE", help="YAML with tolerances and actions (default: built in)")
@MAX_LAUNCHES
@MAX_TIME
@click.option("--seed", type=int, help="seed of random choices, such as the order of sides (default: random)")
@measuring
@store_option("folder of results")
@click.option(
    "--resume",
    metavar="COMPARISON",
    help="continue this comparison: STORE/comparisons/ID, an id or `latest`",
)
@click.option(
    "--estimate", is_flag=True, help="print the duration and the smallest detectable change; measure nothing"
)
@verbosity
@JSON
def command(suite: tuple[str, ...], **options: Any) -> None:
    """Measure base (old) and head (new) alternately on one machine, and judge whether head is slower.

    Exit codes: 0 decided and not worse, 1 worse, 3 unknown.

    Example: torchgauge ab --base old/bin/python --head new/bin/python timm --device DEVICE
    """
    from torchgauge.harness.ab.comparison import new_comparison, resumed_comparison
    from torchgauge.harness.ab.ending_text import ending_as_json, ending_lines
    from torchgauge.harness.ab.judging import judge_for, read_policy
    from torchgauge.harness.ab.outlook import outlook, outlook_lines
    from torchgauge.harness.ab.run_comparison import run_comparison
    from torchgauge.results.lookup import resumed_folder

    progress = ab_progress(options)
    folder = None
    if options["resume"] and options["estimate"]:
        raise UsageError("--estimate cannot be used with --resume", hint="leave out --resume")
    if options["resume"]:
        comparison, folder = resumed_comparison(
            resumed_folder(options["store"], options["resume"], "comparisons"),
            progress,
            typed_settings(options),
        )
        policy = read_policy(comparison.plan.policy)
    else:
        request = _request(suite, options)
        policy = read_policy(request.policy)
        if options["estimate"]:
            _estimate(request, policy, options)
            return
        with progress.during():
            comparison = new_comparison(request, store=options["store"], progress=progress)
    if options["max_time"] is not None and not options["quiet"]:
        found = outlook(comparison.plan, policy, comparison.store, options["max_time"])
        aside(f"  {line}" for line in outlook_lines(found))
    ending = run_comparison(comparison, judge_for(comparison, policy), folder, max_time_s=options["max_time"])
    aside(ending_lines(ending))
    if options["as_json"]:
        click.echo(ending_as_json(ending))
    sys.exit(ending.exit_code)


def _estimate(request: Request, policy: Policy, options: dict[str, Any]) -> None:
    """Say what the comparison would take and could see; nothing is measured, and nothing written."""
    from pathlib import Path

    from torchgauge.counted import counted
    from torchgauge.harness.ab.comparison import planned_comparison
    from torchgauge.harness.ab.outlook import outlook, outlook_lines, outlook_plain
    from torchgauge.results.store import Store

    plan, _ = planned_comparison(request)
    there = (Path(options["store"]) / "store.json").is_file()
    store = Store.open(options["store"]) if there else None
    found = outlook(plan, policy, store, options["max_time"])
    if options["as_json"]:
        say_json(outlook_plain(found))
    else:
        what = f"{counted(len(plan.pairs), 'pair')}, up to {counted(plan.max_launches, 'launch')}"
        say([what, *outlook_lines(found)])


def _request(suite: tuple[str, ...], options: dict[str, Any]) -> Request:
    from pathlib import Path

    from torchgauge.harness.ab.comparison import CONTROLS, Request

    settings, provenance = settings_of(options)
    return Request(
        selection=selection_of(suite, options),
        settings=settings,
        base=_spec("base", options),
        head=_spec("head", options),
        control=options["control"],
        controls=0 if options["no_control"] else CONTROLS,
        seed=options["seed"],
        max_launches=options["max_launches"],
        policy=str(Path(options["policy"]).absolute()) if options["policy"] else "",
        provenance=provenance,
    )


def _spec(side: str, options: dict[str, Any]) -> SideSpec:
    """One side as the options name it; its label is what tells it from the other."""
    from torchgauge.processes.secret_names import hide_told
    from torchgauge.records.comparison import SideSpec

    python, configuration = options[side], options[f"{side}_config"] or ""
    revision = options[f"{side}_rev"] or ""
    variables = tuple(sorted(_variable(f"--{side}-env", text) for text in options[f"{side}_env"]))
    typed = [f"{name}={value}" for name, value in variables]
    shown = [hide_told(word) for word in typed]
    words = [
        *([side] if shown != typed else []),
        *([python] if python else []),
        *shown,
        *([configuration] if configuration else []),
        *([revision] if revision else []),
    ]
    as_it_is = "the working tree" if options["base_rev"] or options["head_rev"] else side
    return SideSpec(" ".join(words) or as_it_is, python or "", variables, configuration, revision)


def _variable(option: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        shown = f"{name}=***" if equals else text  # a value may be a secret, whatever its name
        raise UsageError(f"{option} {shown!r} is not a valid NAME=VALUE", hint=f"{option} NAME=VALUE")
    return name, value

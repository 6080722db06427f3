"""``torchgauge suites``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from torchgauge.cli.answer import JSON, aside, say, say_json
from torchgauge.cli.lazy_group import LazyGroup
from torchgauge.cli.options import PYTHON, TORCHBENCH
from torchgauge.counted import counted

if TYPE_CHECKING:
    from torchgauge.harness.interpreter.interpreter import Interpreter
    from torchgauge.suites.suite import ModelEntry, Suite


VERBS = {
    "list": ("torchgauge.cli.suites:list_suites", "list suites with the number of their models"),
    "show": ("torchgauge.cli.suites:show", "list the models of one suite"),
    "fetch": ("torchgauge.cli.suites:fetch", "fetch the data of one suite"),
    "install": ("torchgauge.cli.suites:install", "install packages that models need, with pip"),
    "expect": ("torchgauge.cli.expect", "update expectations from results, and show the diff"),
}


@click.group("suites", cls=LazyGroup, sections={"Commands": VERBS}, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List suites, their models, required packages and expected failures."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_suites)


@click.command("list")
@JSON
def list_suites(as_json: bool = False) -> None:
    """List suites with the number of their models; exit 3 if a suite cannot be listed.

    Example: torchgauge suites list
    """
    import sys

    from torchgauge import registry
    from torchgauge.errors import TorchgaugeError
    from torchgauge.harness.planning.plan import load_suite

    listed: dict[str, list[str] | None] = {}
    for name in registry.names(registry.SUITES):
        try:
            suite = load_suite(name)
            models = suite.models()
        except TorchgaugeError as error:
            listed[name] = None
            click.echo(f"{name:<14} not listed: {error.in_a_line}", err=True)
            continue
        listed[name] = [model.name for model in models]
        if as_json:
            continue
        smoke = sum("smoke" in model.tiers for model in models)
        say([f"{name:<14} {counted(len(models), 'model'):>12}, {smoke} in tier smoke", f"  {suite.doc}"])
        if suite.unavailable is not None:
            say([f"  not here: {suite.unavailable.reason}", f"  try: {suite.unavailable.hint}"])
    if as_json:
        say_json(listed)
    sys.exit(3 if None in listed.values() else 0)


@click.command("show")
@click.argument("name")
@PYTHON
@JSON
def show(name: str, python: str | None, as_json: bool) -> None:
    """List the models of one suite, with tiers, modes and batch sizes.

    Example: torchgauge suites show timm
    """
    from dataclasses import asdict

    from torchgauge.harness.interpreter.interpreter import interpreter
    from torchgauge.harness.planning.plan import load_suite
    from torchgauge.suites.check import CHECK

    suite = load_suite(name)
    if as_json:
        say_json([asdict(model) for model in suite.models()])
        return
    longest = max((len(model.name) for model in suite.models()), default=0)
    for model in suite.models():
        modes = ", ".join(
            mode if model.framework == CHECK else f"{mode} b{batch}" for mode, batch in model.batch.items()
        )
        tiers, sizes = ",".join(model.tiers), ",".join(model.sizes)
        say([f"{model.name:<{longest}}  {tiers}  {sizes}  {modes}{_own_words(model)}"])
    aside([*_needs(suite, interpreter(python)), *_state(suite)])


@click.command("fetch")
@click.argument("name")
@click.option("--into", metavar="DIR", help="an empty folder (default: one in the user's cache)")
@click.option("--from", "source", metavar="URL", help="another git repository")
def fetch(name: str, into: str | None, source: str | None) -> None:
    """Fetch the data of one suite: for torchbench, one commit of its repository.

    Example: torchgauge suites fetch torchbench
    """
    from pathlib import Path

    from torchgauge.errors import UsageError
    from torchgauge.harness.planning.plan import load_suite

    suite = load_suite(name)
    fetcher = getattr(suite, "fetch", None)
    if fetcher is None:
        raise UsageError(
            f"suite {name!r} has nothing to fetch", hint=suite.install_hint or f"torchgauge run {name}"
        )
    folder, fetched = fetcher(None if into is None else Path(into), source)
    click.echo(f"{folder}: {'fetched' if fetched else 'already fetched'}")
    if into is not None:
        click.echo(f"pass the folder to each run: torchgauge run {name} --{name} {folder}", err=True)


@click.command("install")
@click.argument("name")
@click.option("--models", metavar="LIST", help="only packages of these models")
@PYTHON
@TORCHBENCH
@click.option("--dry-run", is_flag=True, help="print the pip commands; install nothing")
@click.option("--yes", is_flag=True, help="do not ask")
@JSON
def install(name: str, models: str | None, python: str | None, **flags: Any) -> None:
    """Install the packages of one suite with pip; torch stays. Exit 1 after a failure.

    Example: torchgauge suites install timm --python ~/envs/nightly
    """
    import sys

    from torchgauge.errors import NothingSelectedError, UsageError
    from torchgauge.harness.interpreter import install as pip
    from torchgauge.harness.interpreter.interpreter import interpreter
    from torchgauge.harness.planning.plan import load_suite
    from torchgauge.harness.planning.selection import check_plain_names, select_models
    from torchgauge.records import to_plain

    suite = load_suite(name)
    patterns = tuple(filter(None, (each.strip() for each in (models or "").split(","))))
    check_plain_names({name: suite.models()}, patterns)
    entries = select_models(name, suite.models(), patterns, "full")
    if not entries:
        raise NothingSelectedError(
            f"no model of {name} matches {models}", hint=f"torchgauge suites show {name}"
        )
    planned = pip.plan_installation(interpreter(python).path, name, entries)
    as_json = flags["as_json"]
    if flags["dry_run"] or not (as_json or flags["yes"]):
        click.echo("\n".join(pip.plan_text(planned)))
    if flags["dry_run"]:
        return
    if not flags["yes"]:
        if not sys.stdin.isatty():
            raise UsageError(
                "installation requires confirmation",
                hint="add --yes, or --dry-run to print the commands only",
            )
        click.confirm(f"install {counted(len(planned.needs), 'package')}?", abort=True, err=True)
    ended = pip.install(planned, lambda line: click.echo(line, err=True))
    click.echo(json.dumps(to_plain(ended), indent=1) if as_json else "\n".join(pip.report_text(ended)))
    if suite.unavailable is not None:
        aside(_state(suite))
    sys.exit(1 if ended.failed else 0)


def _own_words(model: ModelEntry) -> str:
    """What runs of ``model`` where nothing else is named, and whose model it is; empty for most."""
    dtypes = () if model.framework == "check" else model.dtypes
    parts = [("in", model.configurations), ("as", dtypes), ("of", (model.of,) if model.of else ())]
    return "".join(f"; {word} {', '.join(said)}" for word, said in parts if said)


def _needs(suite: Suite, workers: Interpreter) -> list[str]:
    """Return lines on the packages that the suite's models need: the missing, else the installed packages."""
    from torchgauge.harness.interpreter.install import version_of
    from torchgauge.harness.interpreter.packages import installed_in
    from torchgauge.harness.planning.selection import select_models
    from torchgauge.suites.install_needs import needs_of

    versions = installed_in(workers.path)
    needs = needs_of(suite.name, select_models(suite.name, suite.models(), (), "full"))
    installed = {need.name: version for need in needs if (version := version_of(need, versions))}
    if missing := [need.name for need in needs if need.name not in installed]:
        beside = f"; {len(installed)} of {counted(len(needs), 'package')} are installed"
        option = "" if workers.own else f" --python {workers.path}"
        command = f"torchgauge suites install {suite.name}{option}"
        return [f"needs: {', '.join(missing)}{beside}", f"  try: {command}"]
    if installed:
        return [f"needs: {', '.join(map(' '.join, installed.items()))}, all installed"]
    if "torch" in versions:
        return [f"needs: only torch; {versions['torch']} is installed"]
    return [f"needs: {suite.install_hint or 'nothing more'}"]


def _state(suite: Suite) -> list[str]:
    """Whether the suite can be built here, and from what."""
    if suite.unavailable is not None:
        return [f"not here: {suite.unavailable.reason}", f"  try: {suite.unavailable.hint}"]
    found = [f"{name}: {value}" for name, value in suite.environment.items()]
    return [*found, *(f"note: {note}" for note in suite.notes)]

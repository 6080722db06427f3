"""``torchgauge ci report comment``."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import click

from torchgauge.errors import UsageError

if TYPE_CHECKING:
    from torchgauge.workflows.gate_received import Gathered
    from torchgauge.workflows.github_api import GitHubApi

BUILT_IN = "default"
"""The word for the policy that needs no file; a file of that name is `./default`."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._]|-(?!-)){0,40}")


@click.command("comment")
@click.option("--event", envvar="GITHUB_EVENT_PATH", help="event file (default: GITHUB_EVENT_PATH)")
@click.option(
    "--config",
    "config_file",
    default="torchgauge.yml",
    show_default=True,
    help="torchgauge.yml of the default branch",
)
@click.option(
    "--config-path", metavar="PATH", help="path of torchgauge.yml on other base branches (default: --config)"
)
@click.option("--artifacts", metavar="DIR", help="folder with downloaded artifacts (default: fetch them)")
@click.option(
    "--workflow-path",
    default=".github/workflows/pr-gate.yml",
    show_default=True,
    help="required workflow file",
)
@click.option("--workflow-name", default="pr-gate", show_default=True, help="required workflow name")
@click.option(
    "--name", default="torchgauge", show_default=True, help="name of the check run and of the comment"
)
@click.option("--bot", default="github-actions[bot]", show_default=True, help="GitHub account of the token")
@click.option(
    "--policy",
    metavar="FILE",
    help="policy file, or `default` for the built-in policy (default: the run's policy)",
)
@click.option("--dry-run", is_flag=True, help="print the comment; write nothing")
def command(
    event: str | None,
    config_file: str,
    config_path: str | None,
    artifacts: str | None,
    workflow_path: str,
    workflow_name: str,
    name: str,
    bot: str,
    policy: str | None,
    dry_run: bool,
) -> None:
    """Write the comment and the check run of a pull request after its gate.

    Run this command in a job `on: workflow_run`: it needs a token that the gate must not have.

    Missing results and failed runs are not a pass.

    Example: torchgauge ci report comment --workflow-path .github/workflows/pr-gate.yml
    """
    from pathlib import Path

    from torchgauge.harness.ab.judging import read_policy
    from torchgauge.workflows.gate_base import base_of
    from torchgauge.workflows.gate_plan import gate_plan, jobs_of
    from torchgauge.workflows.gate_received import artifacts_of, fetch, gather
    from torchgauge.workflows.github_api import GitHubApi
    from torchgauge.workflows.workflow_event import SkippedError, gate_run, read_event

    repository = os.environ.get("GITHUB_REPOSITORY", "")
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/")
    if not event:
        raise UsageError("no event file was given", hint="--event FILE, or set GITHUB_EVENT_PATH")
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"--name {name!r} is not valid", hint="letters, digits, spaces, dots and single hyphens"
        )
    if not repository:
        raise UsageError("GITHUB_REPOSITORY is not set", hint="run this command in a GitHub workflow")
    rules = read_policy("" if policy == BUILT_IN else policy) if policy else None
    try:
        run = gate_run(read_event(event), repository, workflow_path, workflow_name)
        api = None if dry_run and artifacts else GitHubApi.from_environment()
        base = base_of(api, run, Path(config_file), config_path or config_file)
        if artifacts:
            folder = Path(artifacts)
            plan = gate_plan(base, jobs_of(api, run) if api else (), artifacts_of(folder))
            found = gather(folder, run, plan, rules)
        else:
            found = fetch(api or GitHubApi.from_environment(), run, base, rules)
        _write(None if dry_run else api, found, name=name, bot=bot, server=server)
    except SkippedError as skipped:
        _summary(f"torchgauge: no comment was written: {skipped.reason}.")
        click.echo(f"no comment: {skipped.reason}")


def _write(api: GitHubApi | None, found: Gathered, *, name: str, bot: str, server: str) -> None:
    """Show what was found, and write it where there is an API to write to."""
    from torchgauge.workflows.comment import comment_on, comment_text

    text = comment_text(found, name=name, server=server)
    _summary(text)
    for each in found.received:
        if each.trouble:
            click.echo(f"{each.pool!r}: {each.trouble}", err=True)
    if api is None:
        click.echo(text.rstrip("\n"))
        return
    posted = comment_on(api, found, name=name, server=server, bot=bot)
    done = "changed" if posted.edited else "written"
    click.echo(f"{posted.verdict.value}: comment {posted.comment_id} on #{posted.pull_request} was {done}")


def _summary(text: str) -> None:
    from torchgauge.workflows.github_files import add_summary

    add_summary(text)

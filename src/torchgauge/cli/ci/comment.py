"""``torchgauge ci comment``."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import click

from torchgauge.errors import UsageError

if TYPE_CHECKING:
    from torchgauge.workflows.comment import Handed
    from torchgauge.workflows.github_api import GitHubApi
    from torchgauge.workflows.workflow_event import GateRun

BUILT_IN = "default"
"""The word for the policy that needs no file; a file of that name is `./default`."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._]|-(?!-)){0,40}")


@click.command("comment")
@click.option("--event", envvar="GITHUB_EVENT_PATH", help="file of the event (default: GITHUB_EVENT_PATH)")
@click.option("--artifacts", metavar="DIR", help="artifacts that lie here already (default: fetch them)")
@click.option(
    "--workflow-path",
    default=".github/workflows/pr-gate.yml",
    show_default=True,
    help="file of the workflow whose run this must be",
)
@click.option("--workflow-name", default="pr-gate", show_default=True, help="its name")
@click.option(
    "--name", default="torchgauge", show_default=True, help="name of the check run and of the comment"
)
@click.option("--bot", default="github-actions[bot]", show_default=True, help="who writes with our token")
@click.option(
    "--policy",
    metavar="FILE",
    help="what gates, of the base; `default` is the built-in policy (without this: what the run said)",
)
@click.option("--dry-run", is_flag=True, help="print the comment and write nothing")
def command(  # noqa: PLR0917  click passes them by name
    event: str | None,
    artifacts: str | None,
    workflow_path: str,
    workflow_name: str,
    name: str,
    bot: str,
    policy: str | None,
    dry_run: bool,
) -> None:
    """Write the one comment and the check run about a run of the gate of a pull request.

    For a job `on: workflow_run`, which has the token that the gate itself must not have. Artifacts are taken
    for hostile, and the pull request is looked up, never believed. Where there is nothing to write to, the
    summary says why and the step ends with 0.

    Example: torchgauge ci comment --workflow-path .github/workflows/pr-gate.yml
    """
    import tempfile
    from pathlib import Path

    from torchgauge.harness.ab.judging import read_policy
    from torchgauge.workflows.comment import comment_text, download, handed_in
    from torchgauge.workflows.github_api import GitHubApi
    from torchgauge.workflows.workflow_event import SkippedError, gate_run, read_event

    repository = os.environ.get("GITHUB_REPOSITORY", "")
    server = os.environ.get("GITHUB_SERVER_URL", "https://github.com").rstrip("/")
    if not event:
        raise UsageError("no event is named", hint="--event FILE, as GITHUB_EVENT_PATH names it")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is no name of a check", hint="letters, digits, spaces, dots and hyphens")
    if not repository:
        raise UsageError("GITHUB_REPOSITORY is not set", hint="run it as a step of a workflow")
    rules = read_policy("" if policy == BUILT_IN else policy) if policy else None
    try:
        run = gate_run(read_event(event), repository, workflow_path, workflow_name)
        if dry_run and artifacts:
            url = f"{server}/{run.repository}/actions/runs/{run.run_id}"
            click.echo(
                comment_text(run, handed_in(Path(artifacts), run, rules), name=name, url=url), nl=False
            )
            return
        api = GitHubApi.from_environment()
        with tempfile.TemporaryDirectory() as folder:
            if not artifacts:
                download(api, run, Path(folder))
            handed = handed_in(Path(artifacts or folder), run, rules)
            _write(api, run, handed, name=name, bot=bot, server=server, dry_run=dry_run)
    except SkippedError as skipped:
        _summary(f"torchgauge: no comment was written: {skipped.reason}.")
        click.echo(f"no comment: {skipped.reason}")


def _write(
    api: GitHubApi,
    run: GateRun,
    handed: list[Handed],
    *,
    name: str,
    bot: str,
    server: str,
    dry_run: bool,
) -> None:
    from torchgauge.workflows.comment import comment_on, comment_text

    url = f"{server}/{run.repository}/actions/runs/{run.run_id}"
    _summary(comment_text(run, handed, name=name, url=url))
    for each in handed:
        if each.trouble:
            click.echo(f"{each.pool!r}: {each.trouble}", err=True)
    if dry_run:
        click.echo(comment_text(run, handed, name=name, url=url), nl=False)
        return
    posted = comment_on(api, run, handed, name=name, server=server, bot=bot)
    done = "changed" if posted.edited else "written"
    click.echo(f"{posted.verdict.value}: comment {posted.comment_id} on #{posted.pull_request} was {done}")


def _summary(text: str) -> None:
    from torchgauge.workflows.github_files import add_summary

    add_summary(text)

"""``torchgauge ci allowed``."""

from __future__ import annotations

import os

import click

from torchgauge.cli.answer import JSON, say_json
from torchgauge.errors import UsageError


@click.command("allowed")
@click.option("--event", envvar="GITHUB_EVENT_PATH", help="event file (default: GITHUB_EVENT_PATH)")
@click.option("--pool", required=True, help="pool (group of machines) that the pull request requests")
@click.option("--config", "config_file", default="torchgauge.yml", show_default=True, help="torchgauge.yml")
@click.option("--approved-sha", help="head-sha of an earlier `ci allowed` step")
@click.option("--repository", envvar="GITHUB_REPOSITORY", default="", help="OWNER/NAME")
@JSON
def command(
    event: str | None, pool: str, config_file: str, approved_sha: str | None, repository: str, as_json: bool
) -> None:
    """Decide whether a pull request may use a pool (a group of machines).

    Pass the torchgauge.yml of the base branch.

    Step outputs: `allowed` (true or false) and `head-sha` (the commit to check out).

    Exit codes: 0 decided, 3 the API failed.

    Example: torchgauge ci allowed --pool npu
    """
    from dataclasses import replace

    from torchgauge.workflows.allowed import decide, facts_of, pull_request_in
    from torchgauge.workflows.config import read_config
    from torchgauge.workflows.github_api import GitHubApi, is_sha
    from torchgauge.workflows.github_files import add_summary, set_output
    from torchgauge.workflows.workflow_event import read_event

    if not event:
        raise UsageError("no event file was given", hint="--event FILE, or set GITHUB_EVENT_PATH")
    if approved_sha is not None and not is_sha(approved_sha):
        raise UsageError(f"{approved_sha[:60]!r} is not a commit", hint="--approved-sha with all 40 digits")
    trust = read_config(config_file).pool(pool).trust
    told = read_event(event)
    kind, started_on = pull_request_in(told)[0], os.environ.get("GITHUB_EVENT_NAME")
    if started_on not in (None, kind):  # pull_request_target gives a fork what the default branch has
        problem = f"ci allowed does not accept the event {started_on}"
        raise UsageError(problem, hint="start the workflow on pull_request or issue_comment")
    facts = facts_of(GitHubApi.from_environment(), told, repository, pool, trust)
    decision = decide(replace(facts, approved_sha=approved_sha or ""), pool, trust)
    word = "true" if decision.allowed else "false"
    if os.environ.get("GITHUB_OUTPUT"):
        set_output("allowed", word)
        set_output("head-sha", decision.head_sha if decision.allowed else "")
    add_summary(f"Pool `{pool}`: {'allowed' if decision.allowed else 'not allowed'}: {decision.reason}.")
    if as_json:
        answer = {"allowed": decision.allowed, "head_sha": decision.head_sha, "reason": decision.reason}
        say_json(answer)
    else:
        click.echo(f"{'allowed' if decision.allowed else 'not allowed'}: {decision.reason}")

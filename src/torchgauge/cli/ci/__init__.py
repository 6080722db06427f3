"""``torchgauge ci``: what a workflow's steps call, one verb a step."""

from __future__ import annotations

import click

from torchgauge.cli.lazy_group import LazyGroup

VERBS = {
    "allowed": ("torchgauge.cli.ci.allowed", "check whether a pull request may use a pool"),
    "collect": (
        "torchgauge.cli.ci.collect",
        "merge result sets of a campaign, and list missing shards",
    ),
    "gate": ("torchgauge.cli.ci.gate", "pass or fail a nightly campaign; measure a pull request"),
    "history": ("torchgauge.cli.ci.history", "fetch and push the branch that contains a store"),
    "init": ("torchgauge.cli.ci.init", "write the workflows of a repository from torchgauge.yml"),
    "plan": ("torchgauge.cli.ci.plan", "plan a campaign: cases, jobs, matrix"),
    "report": ("torchgauge.cli.ci.report", "write comments and issues, and report results upstream"),
    "run": ("torchgauge.cli.ci.run", "run one job of a campaign and pack its results"),
    "suspects": ("torchgauge.cli.ci.suspects", "suspected changes: list, measure again, import outcomes"),
    "watch": ("torchgauge.cli.ci.watch", "exit 1 if a nightly campaign is missing or incomplete"),
}


@click.group("ci", cls=LazyGroup, sections={"Commands": VERBS})
def command() -> None:
    """Run the steps of continuous integration, in a workflow or elsewhere."""

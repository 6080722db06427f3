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
    "gate": ("torchgauge.cli.ci.gate", "turn a campaign or a comparison into red or green"),
    "history": ("torchgauge.cli.ci.history", "fetch and save the branch that holds a store"),
    "init": ("torchgauge.cli.ci.init", "write the workflows of a repository from torchgauge.yml"),
    "plan": ("torchgauge.cli.ci.plan", "plan a campaign: cases, jobs, matrix"),
    "report": ("torchgauge.cli.ci.report", "comments, issues, and reports upstream"),
    "run": ("torchgauge.cli.ci.run", "run one job of a campaign and pack its results"),
    "suspects": ("torchgauge.cli.ci.suspects", "what a night suspects: list it, measure it again, settle it"),
    "watch": ("torchgauge.cli.ci.watch", "alarm when a night is missing or incomplete"),
}


@click.group("ci", cls=LazyGroup, sections={"Commands": VERBS})
def command() -> None:
    """Run the steps of continuous integration, in a workflow or elsewhere."""

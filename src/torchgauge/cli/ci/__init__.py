"""``torchgauge ci``: what a workflow's steps call, one verb a step."""

from __future__ import annotations

import click

from torchgauge.cli.lazy_group import LazyGroup

VERBS = {
    "allowed": ("torchgauge.cli.ci.allowed", "say whether a pull request may use a pool"),
    "collect": (
        "torchgauge.cli.ci.collect",
        "put result sets of a campaign together, and say what is missing",
    ),
    "comment": ("torchgauge.cli.ci.comment", "write a pull request's one comment and its check run"),
    "confirm": ("torchgauge.cli.ci.confirm", "measure again what a night suspects, on its pool"),
    "gate": ("torchgauge.cli.ci.gate", "turn a campaign or a comparison into red or green"),
    "history": ("torchgauge.cli.ci.history", "fetch and save the branch that holds a store"),
    "init": ("torchgauge.cli.ci.init", "write the workflows of a repository from torchgauge.yml"),
    "issues": ("torchgauge.cli.ci.issues", "open, update and close issues about what a night found"),
    "plan": ("torchgauge.cli.ci.plan", "plan a campaign: cases, jobs, matrix"),
    "publish": ("torchgauge.cli.ci.publish", "keep a store's history and the site, and never shrink it"),
    "remove": ("torchgauge.cli.ci.remove", "take a run out of a store, with a reason"),
    "report": ("torchgauge.cli.ci.report", "report results upstream"),
    "run": ("torchgauge.cli.ci.run", "run one job of a campaign and pack its results"),
    "settle": ("torchgauge.cli.ci.settle", "take the answers to suspicions into a store"),
    "suspects": ("torchgauge.cli.ci.suspects", "list what a night suspects, and the jobs that measure it"),
    "watch": ("torchgauge.cli.ci.watch", "alarm when a night is missing or incomplete"),
}


@click.group("ci", cls=LazyGroup, sections={"Commands": VERBS})
def command() -> None:
    """Continuous integration: each verb is one step of a workflow, and runs anywhere else as well."""

"""``torchgauge ci report``: what a workflow writes where people look."""

from __future__ import annotations

import click

from torchgauge.cli.lazy_group import LazyGroup

VERBS = {
    "comment": ("torchgauge.cli.ci.comment", "write a pull request's one comment and its check run"),
    "issues": ("torchgauge.cli.ci.issues", "open, update and close issues about what a night found"),
    "upstream": ("torchgauge.cli.ci.upstream", "report results to PyTorch's relay or HUD"),
}


@click.group("report", cls=LazyGroup, sections={"Commands": VERBS})
def command() -> None:
    """Report to people: a comment on a pull request, issues about a night, results upstream."""

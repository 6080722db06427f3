"""``torchgauge ci report``: what a workflow writes where people look."""

from __future__ import annotations

import click

from torchgauge.cli.lazy_group import LazyGroup

VERBS = {
    "comment": ("torchgauge.cli.ci.comment", "write the comment and the check run of a pull request"),
    "issues": ("torchgauge.cli.ci.issues", "open, update and close issues on a nightly campaign"),
    "upstream": ("torchgauge.cli.ci.upstream", "report results to PyTorch's relay or HUD"),
}


@click.group("report", cls=LazyGroup, sections={"Commands": VERBS})
def command() -> None:
    """Comment on a pull request, open issues on a nightly run, report results to PyTorch."""

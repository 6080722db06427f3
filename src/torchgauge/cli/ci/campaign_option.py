"""``--campaign`` and ``--campaign-digest``: the plan of a campaign, and that it is the one that was made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def campaign(what: str = "plan that `ci plan` wrote") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add both options, as ``campaign_file`` and ``campaign_digest``."""

    def decorated(command: Callable[..., Any]) -> Callable[..., Any]:
        digest = click.option(
            "--campaign-digest",
            default="",
            envvar="TORCHGAUGE_CAMPAIGN_DIGEST",
            help="output `digest` of `ci plan` (or TORCHGAUGE_CAMPAIGN_DIGEST)",
        )
        file = click.option(
            "--campaign", "campaign_file", default="campaign.json", show_default=True, help=what
        )
        return file(digest(command))

    return decorated

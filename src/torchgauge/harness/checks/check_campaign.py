"""A campaign of checks: what ``torchgauge check`` was asked for, as a selection of the suite's cases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchgauge.errors import UnknownNameError, UsageError
from torchgauge.harness.planning.selection import Selection, is_wild
from torchgauge.harness.run.campaigns import new_campaign
from torchgauge.harness.run.defaults import check_settings
from torchgauge.harness.run.progress import Progress
from torchgauge.harness.run.runner import Campaign
from torchgauge.suites.conformance.catalogue import catalogue, groups
from torchgauge.suites.conformance.suite import NAME


def check_campaign(options: Mapping[str, Any], progress: Progress) -> Campaign:
    """The campaign that the options of ``torchgauge check`` describe.

    Raises :class:`UsageError` where no device was given, for a group or check that does not exist, and what
    planning raises.
    """
    if not options["device"]:
        raise UsageError("no device was given", hint="--device NAME; torchgauge devices lists them")
    settings, provenance = check_settings(options, calibrate=False)
    selection = Selection(
        suites=(NAME,),
        devices=tuple(options["device"]),
        models=chosen(options["groups"], options["checks"]),
        tier=options["tier"],
    )
    return new_campaign(
        selection,
        settings,
        provenance,
        store=options["store"],
        progress=progress,
        python=options["python"],
    )


def chosen(wanted_groups: tuple[str, ...], checks: tuple[str, ...]) -> tuple[str, ...]:
    """Patterns of the checks that are in any of the groups or match any of ``checks``; empty for all.

    Raises :class:`UnknownNameError` for a group or a plain name that does not exist.
    """
    for group in wanted_groups:
        if group not in groups():
            raise UnknownNameError("group", group, groups(), hint="torchgauge check --list")
    for name in checks:
        if not is_wild(name) and name not in catalogue():
            raise UnknownNameError("check", name, catalogue(), hint="torchgauge check --list")
    return (*(f"{NAME}/{group}.*" for group in wanted_groups), *checks)

"""The page of device checks: capability groups by device, open to the single checks and their reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.pages.subject_links import CAPABILITIES, OTHERS
from torchgauge.records import Subject

if TYPE_CHECKING:
    from torchgauge.results.compat.table import Table


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The page of checks, where the store has any."""
    if all(workload.subject is not Subject.CHECKS for workload, _ in context.latest.entries):
        return
    from torchgauge.dashboard.support_rows import support_table_of  # not for the nights without checks
    from torchgauge.dashboard.support_table import view_of

    table = support_table_of(context, Subject.CHECKS, (CAPABILITIES, OTHERS))
    devices = tuple(dict.fromkeys(column.device for column in table.columns))
    page = context.renderer.page("checks", "checks.html", view=view_of(_named(table)), devices=devices)
    yield "checks.html", page.encode()


def _named(table: Table) -> Table:
    """``table`` with checks of other suites under a title of their own, and without empty sections."""
    return replace(
        table,
        sections=tuple(
            replace(section, title="Other checks", feature="check", part="variant")
            if section.key == OTHERS
            else section
            for section in table.sections
            if section.features
        ),
    )

"""Operator coverage: a matrix of operators by device and dtype, what blocks models, and the reasons."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from torchgauge.dashboard.context import SiteContext
from torchgauge.dashboard.pages.subject_links import OPERATORS, feature_anchor, initial, operators_page
from torchgauge.records import Subject

if TYPE_CHECKING:
    from torchgauge.results.compat.table import Table


@dataclass(frozen=True)
class DetailPage:
    """The operators of one first letter."""

    letter: str
    file: str
    operators: int


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """The matrix, and a page of details per first letter, where the store has operators."""
    if all(workload.subject is not Subject.OPERATORS for workload, _ in context.latest.entries):
        return
    from torchgauge.dashboard.operator_table import matrix_of  # not for the nights without operators
    from torchgauge.dashboard.support_rows import support_table_of
    from torchgauge.dashboard.support_table import view_of

    table = support_table_of(context, Subject.OPERATORS, (OPERATORS,))
    section = table.sections[0]
    letters = sorted({initial(feature.name) for feature in section.features})
    pages = [_only(table, letter) for letter in letters]
    details = tuple(
        DetailPage(letter, f"operators/{letter}.html", len(part.sections[0].features))
        for letter, part in zip(letters, pages, strict=True)
    )
    whole = view_of(replace(table, sections=()))
    devices = tuple(dict.fromkeys(column.device for column in table.columns))
    page = context.renderer.page(
        "operators",
        "operators.html",
        matrix=matrix_of(table, section),
        hrefs={
            feature.name: f"{operators_page(feature.name)}#{feature_anchor(OPERATORS, feature.name)}"
            for feature in section.features
        },
        view=whole,
        details=details,
        devices=devices,
        blocking=context.blocking,
    )
    yield "operators.html", page.encode()
    for detail, part in zip(details, pages, strict=True):
        view = view_of(part)
        text = context.renderer.page(
            "operator_details", detail.file, view=view, detail=detail, details=details
        )
        yield detail.file, text.encode()


def _only(table: Table, letter: str) -> Table:
    section = table.sections[0]
    features = tuple(feature for feature in section.features if initial(feature.name) == letter)
    return replace(table, sections=(replace(section, features=features),))

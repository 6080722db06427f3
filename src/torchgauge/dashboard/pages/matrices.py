"""Version matrices of the store: cases by versions, each with its speed-up over the baseline."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torchgauge.dashboard.pages.ab_runs import BADGES
from torchgauge.errors import TorchgaugeError
from torchgauge.results.matrix.state import find_state, matrix_ids
from torchgauge.results.matrix.table import Table, as_shown, labels_of, table_of
from torchgauge.results.matrix.text import cell_text, failures

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext

INDEX = "matrices.html"
MOST = 20
"""Matrices on the page, the newest first."""


def build(context: SiteContext) -> Iterator[tuple[str, bytes]]:
    """Yield the page if the store has a matrix."""
    ids = matrix_ids(context.store)
    if not ids:
        return
    tables: list[tuple[Table, list[str]]] = []
    problems: list[str] = []
    for name in reversed(ids[-MOST:]):
        try:
            table = table_of(context.store, find_state(context.store, name))
        except TorchgaugeError as error:
            problems.append(error.message)
        else:
            tables.append((as_shown(table), labels_of(table.rows)[0]))
    render = context.renderer.page
    words: dict[str, Any] = {"cell": cell_text, "failures": failures, "badges": BADGES}
    older = len(ids) - len(tables) - len(problems)
    yield INDEX, render("matrices", INDEX, tables=tables, problems=problems, older=older, **words).encode()

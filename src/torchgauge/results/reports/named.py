"""The report of whatever has a name in a store: a comparison or a run."""

from __future__ import annotations

from torchgauge.errors import UsageError
from torchgauge.results.comparing.comparison_store import comparison, comparison_ids
from torchgauge.results.lookup import resolve_either
from torchgauge.results.reports.publisher import Report
from torchgauge.results.reports.report import comparison_report
from torchgauge.results.reports.run_report import run_report
from torchgauge.results.store import Store


def named_report(store: Store, name: str | None) -> Report:
    """The report of comparison or run ``name``, or of the latest comparison where ``name`` is None.

    Raises :class:`UnknownNameError` with suggestions, and :class:`UsageError` in a store without comparisons.
    """
    comparisons = comparison_ids(store)
    if name is None:
        if not comparisons:
            raise UsageError(
                f"the store {store.path} holds no comparison",
                hint="torchgauge ab measures a comparison; torchgauge report RUN reports a run",
            )
        name = comparisons[-1]
    name = resolve_either(store, name)
    if name in comparisons:
        return comparison_report(store, comparison(store, name))
    return run_report(store, store.run(name))

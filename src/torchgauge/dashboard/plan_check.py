"""Every planned case is accounted for, or there is no new site."""

from __future__ import annotations

from torchgauge.dashboard.dashboard_error import DashboardError
from torchgauge.dashboard.history import History
from torchgauge.results.dataset import damaged
from torchgauge.results.store import RunInfo, Store


def check_run(store: Store, info: RunInfo, rows: int, cases: int) -> None:
    """Raise :class:`DamagedTableError` where the rows of a published run are not one per planned case."""
    if info.problem and not info.condition:  # its plan cannot be read
        return
    if rows != info.planned or cases != rows:
        problem = f"it contains {rows} rows of {cases} cases, but {info.planned} cases were planned"
        raise damaged(store.table_path("results", info.run_id), ValueError(problem))


def check_history(window: History, planned: dict[str, int]) -> None:
    """Raise :class:`DashboardError` where a snapshot does not hold what was ``planned`` for it, by id."""
    for snapshot, counted in zip(window.snapshots, window.planned.tolist(), strict=True):
        if counted != planned[snapshot.id]:
            raise DashboardError(
                f"{counted} statuses were counted for {planned[snapshot.id]} cases planned for {snapshot.id}",
                hint="report this: the pages would hide a case",
            )

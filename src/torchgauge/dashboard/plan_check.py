"""Every planned case is accounted for, or there is no new site."""

from __future__ import annotations

from torchgauge.dashboard.dashboard_error import DashboardError
from torchgauge.dashboard.history import History
from torchgauge.results.store import RunInfo


def check_run(info: RunInfo, rows: int, cases: int) -> None:
    """Raise :class:`DashboardError` where the rows of a published run are not one per planned case."""
    if info.problem:
        return
    if rows != info.planned or cases != rows:
        raise DashboardError(
            f"run {info.run_id} planned {info.planned} cases; its table holds {rows} rows of {cases} cases",
            hint="remove the run's files under tables/ and publish it again from its journal",
        )


def check_history(window: History, planned: dict[str, int]) -> None:
    """Raise :class:`DashboardError` where a snapshot does not hold what was ``planned`` for it, by id."""
    for snapshot, counted in zip(window.snapshots, window.planned.tolist(), strict=True):
        if counted != planned[snapshot.id]:
            raise DashboardError(
                f"{counted} statuses stand for {planned[snapshot.id]} cases planned for {snapshot.id}",
                hint="report this: the pages would hide a case",
            )

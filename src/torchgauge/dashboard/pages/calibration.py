"""The newest calibration of a machine: what one matrix product, one copy and one launch took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchgauge.dashboard.pages.environments import plugin_of
from torchgauge.dashboard.plain_rows import Row

if TYPE_CHECKING:
    from torchgauge.dashboard.context import SiteContext


def newest_calibration(context: SiteContext, device: str) -> tuple[str, list[Row]]:
    """The newest run that calibrated the plugin of ``device``, and the rows of it; empty where none did."""
    names = {device, plugin_of(device)}
    for info in context.runs:
        rows = [row for row in context.calibrations.get(info.run_id, ()) if row["device"] in names]
        if rows:
            return info.run_id, rows
    return "", []

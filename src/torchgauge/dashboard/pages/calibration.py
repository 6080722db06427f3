"""The calibration of a machine: what one matrix product, one copy and one launch took."""

from __future__ import annotations

from dataclasses import dataclass

from torchgauge.dashboard.plain_rows import Row
from torchgauge.results import units


@dataclass(frozen=True)
class CalibrationRow:
    """One calibration as text; a missing number is its reason."""

    device: str
    at: str
    gemm: str
    copy: str
    launch: str


def calibration_row(row: Row) -> CalibrationRow:
    """The text of one row of the calibrations."""
    reason = row["absent"] or "not measured"

    def text(value: float | None, unit: str) -> str:
        return reason if value is None else units.quantity(value, unit)

    return CalibrationRow(
        device=row["device"],
        at=row["at"],
        gemm=text(row["gemm_flops"], "FLOP/s"),
        copy=text(row["copy_bytes_per_s"], "B/s"),
        launch=text(row["launch_s"], "s"),
    )

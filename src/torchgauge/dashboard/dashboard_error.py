"""The error of a site that must not be published."""

from __future__ import annotations

from torchgauge.errors import TorchgaugeError


class DashboardError(TorchgaugeError):
    """The store's rows do not add up to what was planned, so that a page would mislead."""

    exit_code = 3

"""The dashboard: a static site built from the store."""

from torchgauge.dashboard.dashboard_error import DashboardError
from torchgauge.dashboard.site import SiteReport, build_site

__all__ = ["DashboardError", "SiteReport", "build_site"]

"""Where pages and sections are: one place that turns names into file names and anchors."""

from __future__ import annotations

from torchgauge.dashboard.board import Entry, Workload
from torchgauge.results.hostile_text import slug


def model_page(group: tuple[str, str]) -> str:
    """The page of one suite and model, relative to the site's root."""
    return f"models/{slug('/'.join(group))}.html"


def workload_anchor(workload: Workload) -> str:
    """The section of one workload on its model's page."""
    return f"workload-{slug(workload.name)}"


def case_anchor(entry: Entry) -> str:
    """The section of one case on its model's page."""
    return f"case-{slug(entry.newest['case_id'])[-8:]}"


def case_link(entry: Entry) -> str:
    """Page and section of one case, relative to the site's root."""
    return f"{model_page(entry.workload.group)}#{case_anchor(entry)}"


def run_anchor(run_id: str) -> str:
    """The section of one run on the page of runs."""
    return f"run-{slug(run_id)}"


def environment_anchor(environment_id: str) -> str:
    """The section of one environment on the page of runs."""
    return f"environment-{slug(environment_id)}"

"""Where pages and sections are: one place that turns names into file names and anchors."""

from __future__ import annotations

from functools import lru_cache

from torchgauge.dashboard.latest_results import Column, Entry
from torchgauge.dashboard.names import device_id
from torchgauge.records import Subject, Workload
from torchgauge.results.hostile_text import slug


def model_page(group: tuple[str, str]) -> str:
    """The page of one suite and model, relative to the site's root."""
    return f"models/{slug('/'.join(group))}.html"


def case_anchor(entry: Entry) -> str:
    """The section of one case on its model's page."""
    return case_anchor_of(entry.workload, entry.column)


def case_anchor_of(workload: Workload, column: Column) -> str:
    """The section of a case, by its names: a row's part, then a column's part.

    A matrix of thousands of cells repeats both parts, so that they cost next to nothing when compressed; a
    hash per case would cost five bytes each.
    """
    return f"{workload_anchor(workload)}-{column_anchor(column)}"


@lru_cache(maxsize=4096)
def workload_anchor(workload: Workload) -> str:
    """The section of one workload on its model's page, with which the anchors of all its cases begin."""
    return f"c{slug(workload.name)[-8:]}"


@lru_cache(maxsize=4096)
def column_anchor(column: Column) -> str:
    """What the anchors of all cases of one column end with."""
    return slug(column.name)[-8:]


def case_link(entry: Entry) -> str:
    """Page and section of one case, relative to the site's root."""
    return f"{model_page(entry.workload.group)}#{case_anchor(entry)}"


def run_anchor(run_id: str) -> str:
    """The section of one run on the page of runs."""
    return f"run-{slug(run_id)}"


@lru_cache(maxsize=4096)
def run_link(run_id: str) -> str:
    """Page and section of one run that is described, relative to the site's root."""
    return f"runs.html#{run_anchor(run_id)}"


def environment_anchor(environment_id: str) -> str:
    """The section of one environment on the page of its device."""
    return f"environment-{slug(environment_id)}"


def new_failures_anchor(date: str, device: str = "", subject: Subject = Subject.MODELS) -> str:
    """The section of a night's new failures on the page of regressions, or of those of one device."""
    return f"new-{date}-{device_id(device)}-{subject.value}" if device else f"new-{date}"


def changed_anchor(kind: str, device: str = "") -> str:
    """The list of what the newest night changed on the page of regressions, or that of one device."""
    return "-".join(["night", slug(kind), *([device_id(device)] if device else [])])


def device_page(device: str) -> str:
    """The page of one device, relative to the site's root."""
    return f"devices/{device_id(device)}.html"


@lru_cache(maxsize=4096)
def environment_link(device: str, environment_id: str) -> str:
    """Page and section of one environment, relative to the site's root."""
    return f"{device_page(device)}#{environment_anchor(environment_id)}"

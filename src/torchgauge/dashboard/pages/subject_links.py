"""Where a case is shown: a model on its own page, a check or an operator on theirs."""

from __future__ import annotations

import re

from torchgauge.dashboard.latest_results import Column, LatestResults
from torchgauge.dashboard.pages import links
from torchgauge.records import Subject, Workload
from torchgauge.results.hostile_text import slug

CAPABILITIES, OPERATORS, OTHERS = "capabilities", "operators", "models"
"""Sections of the support table, as :mod:`torchgauge.results.compat.gathering` calls them."""

CONFORMANCE = "conformance"
"""The suite whose checks are grouped by capability."""

_LETTER = re.compile(r"[a-z]")


def case_link(latest: LatestResults, workload: Workload, column: Column) -> str:
    """Page and section of one case, relative to the site's root."""
    subject = workload.subject
    if subject is Subject.OPERATORS:
        return f"{operators_page(workload.model)}#{feature_anchor(OPERATORS, workload.model)}"
    if subject is Subject.CHECKS:
        return f"checks.html#{check_anchor(workload)}"
    entry = latest.entries.get((workload, column))
    return links.case_link(entry) if entry else links.model_page(workload.group)


def check_anchor(workload: Workload) -> str:
    """The row of a check on the page of checks."""
    if workload.suite == CONFORMANCE:
        return feature_anchor(CAPABILITIES, workload.model.partition(".")[0])
    return feature_anchor(OTHERS, f"{workload.suite}/{workload.model} {workload.mode}")


def feature_anchor(section: str, feature: str) -> str:
    """The row of a feature of a support table."""
    return f"{section}-{slug(feature)}"


def operators_page(operator: str) -> str:
    """The page with the details of ``operator``: operators share one by their first letter."""
    return f"operators/{initial(operator)}.html"


def initial(operator: str) -> str:
    """The first letter after ``nn.functional.`` and the like, or ``other``."""
    first = operator.rpartition(".")[2].lstrip("_")[:1].lower()
    return first if _LETTER.fullmatch(first) else "other"

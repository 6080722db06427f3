"""An entry that is another suite's model: built by that suite, measured under a name and in ways of its own.

Why no second recipe: three suites say already how their models are built, what they need and how they are
stepped. An entry with ``of: suite/model`` takes packages, recipe and everything else of the model from there.
Standard library only: workers import it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torchgauge import registry
from torchgauge.records import Workload
from torchgauge.suites.suite import Suite

OF = "of"
"""The key of a group's recipe under which stands whose model it builds."""
RECIPE = "recipe"


def lender(recipe: Mapping[str, Any]) -> Suite | None:
    """The suite that builds the model of ``recipe``; None where the workload's own does."""
    if OF not in recipe:
        return None
    found: Suite = registry.load(registry.SUITES, str(recipe[OF]).partition("/")[0])
    return found


def as_lender_knows(workload: Workload, recipe: dict[str, Any]) -> tuple[Workload, dict[str, Any]]:
    """``workload`` and ``recipe`` as the suite that builds the model has them."""
    if OF not in recipe:
        return workload, recipe
    suite, _, model = str(recipe[OF]).partition("/")
    return replace(workload, suite=suite, model=model), dict(recipe[RECIPE])

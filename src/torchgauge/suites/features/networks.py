"""Build a model of the suite of features, or run a check of it: each family has a module of its own."""

from __future__ import annotations

from importlib import import_module

from torchgauge.records import Workload
from torchgauge.suites.check import CheckOutcome, CheckSession
from torchgauge.suites.features.family import family_of, module_of
from torchgauge.suites.suite import BuiltWorkload


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """The model that ``workload`` names, by ``build(workload, recipe)`` of its family's module."""
    built: BuiltWorkload = import_module(module_of(family_of(workload.model))).build(workload, recipe)
    return built


def check(workload: Workload, session: CheckSession) -> CheckOutcome:
    """How the check that ``workload`` names ended, by ``check(workload, session)`` of its family's module."""
    said: CheckOutcome = import_module(module_of(family_of(workload.model))).check(workload, session)
    return said

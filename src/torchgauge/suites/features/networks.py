"""Build a model of the suite of features: each family has a module of its own."""

from __future__ import annotations

from importlib import import_module

from torchgauge.records import Workload
from torchgauge.suites.features.family import family_of, module_of
from torchgauge.suites.suite import BuiltWorkload


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """The model that ``workload`` names, by ``build(workload, recipe)`` of its family's module."""
    built: BuiltWorkload = import_module(module_of(family_of(workload.model))).build(workload, recipe)
    return built

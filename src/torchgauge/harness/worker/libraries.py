"""Importing what a model needs, in the worker: missing operator schemas, then libraries, then the suite."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from torchgauge.harness.job import Job
from torchgauge.registry import resolve
from torchgauge.suites.lending import OF, as_lender_knows


def import_builder(job: Job) -> Any:
    """The suite's build function, with its libraries imported.

    In a forked worker all of this was imported by the host. Raises ``ModuleNotFoundError`` for a package
    that is not installed.
    """
    if job.runs_torch:
        from torchgauge.suites.torchvision_schemas import define_missing_schemas

        define_missing_schemas()
        for name in job.preload:
            import_module(name)
    build = resolve(job.builder)
    if job.group is None or OF not in job.group.recipe:
        return build
    return lambda workload, recipe: build(*as_lender_knows(workload, recipe))

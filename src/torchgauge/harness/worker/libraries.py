"""Importing what a model needs, in the worker: missing operator schemas, then libraries, then the suite.

Rows name the copies that were imported.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from torchgauge.devices.installed import TORCH_LIBRARIES
from torchgauge.devices.library import library, shadows
from torchgauge.harness.job import Job
from torchgauge.records import Scalar, Workload
from torchgauge.registry import resolve
from torchgauge.suites.lending import as_lender_knows
from torchgauge.suites.model_code import LIBRARY, SHADOWED
from torchgauge.suites.suite import BuiltWorkload


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
    if job.group is None or job.group.checks:
        return build

    def built(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
        own: BuiltWorkload = build(*as_lender_knows(workload, recipe))
        if own.framework != "torch" or not job.runs_torch:
            return own
        from torchgauge.suites.placing import materialised

        return materialised(own)

    return built


def library_facts(preload: tuple[str, ...] = ()) -> dict[str, Scalar]:
    """Return the copies of torch's libraries and of ``preload`` that are imported, and the shadowed modules.

    A host calls it for its forks.
    """
    imported = {name.partition(".")[0] for name in list(sys.modules)}
    names = {*TORCH_LIBRARIES, *(name.partition(".")[0] for name in preload)} - {"torchgauge"}
    copies = {name: copy.text for name in sorted(names & imported) if (copy := library(name))}
    hidden = "; ".join(shadows(imported))
    facts: dict[str, Scalar] = {f"{LIBRARY}{name}": text for name, text in copies.items()}
    return facts | ({SHADOWED: hidden} if hidden else {})

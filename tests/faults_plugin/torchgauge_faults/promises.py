"""Suite ``promises`` and back ends that break what eager promises beside its numbers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from torchgauge.harness.backends.backend import BackendDescriptor
from torchgauge.harness.backends.prepared import BackendSession, Prepared
from torchgauge.records import Configuration, Workload
from torchgauge.suites.catalog import YamlSuite
from torchgauge.suites.suite import BuiltWorkload

SUITE = YamlSuite(
    name="promises",
    doc="Programs whose results promise more than numbers; for tests only.",
    data=Path(__file__).parent / "promises.yaml",
    builder="torchgauge_faults.promises:build",
)
STATES = YamlSuite(
    name="states",
    doc="Programs with state, and back ends that write into it; for tests only.",
    data=Path(__file__).parent / "states.yaml",
    builder="torchgauge_faults.promises:build_with_state",
)
BROKEN = BackendDescriptor("broken", "runs a module's broken(), if it has one; for tests only", __name__)
DOCUMENTED = BackendDescriptor("documented", "as broken, which documents it; for tests only", __name__)
COPIED = BackendDescriptor("copied", "runs a copy of the module; for tests only", __name__)


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """Build the program that ``workload`` names."""
    from torchgauge_faults import promises_models

    return promises_models.build(workload)


def build_with_state(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:
    """Build the program of the suite ``states`` that ``workload`` names."""
    from torchgauge_faults import states_models

    return states_models.build(workload)


def prepare(subject: Any, configuration: Configuration, session: BackendSession) -> Prepared:
    """Return the broken form of the module, or a call of the module itself."""
    if configuration.backend == "copied":
        import copy

        return Prepared(copy.deepcopy(subject.module))
    call = getattr(subject.module, "broken", None) or partial(subject.module)
    promised = configuration.backend != "documented"
    return Prepared(call, unpromised=frozenset() if promised else frozenset({"reuse", "memory"}))

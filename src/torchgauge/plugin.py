"""The names that an author of a plugin imports: of a device, suite, back end, scenario, metric or check.

Executors and publishers take theirs from here, too. This module is the public interface of the seams: the
how-to pages use nothing else, and a test holds its list. Each name is imported when it is used first, so that
worker code that takes one needs no library of the parent's half.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchgauge.lazy_names import lazy_names

if TYPE_CHECKING:
    from torchgauge.devices.accelerator import AcceleratorSession
    from torchgauge.devices.conformance import check_session
    from torchgauge.devices.descriptor_conformance import check_device
    from torchgauge.devices.device import DeviceDescriptor, Provision, RunnerImage
    from torchgauge.devices.session import Absent, DeviceSession, EventTimer, MemoryReading
    from torchgauge.errors import (
        InfrastructureError,
        MissingDataError,
        MissingPackageError,
        NoNetworkError,
        NotOfferedError,
        TorchgaugeError,
        UsageError,
    )
    from torchgauge.harness.backends.backend import BackendDescriptor
    from torchgauge.harness.backends.prepared import BackendSession, Entries, Look, Prepared
    from torchgauge.harness.executors.executor import Attempted, BudgetSpent, RunNote, Submission
    from torchgauge.harness.scenarios.scenario import ScenarioDescriptor, Subject
    from torchgauge.records import (
        Better,
        Case,
        Cause,
        Compared,
        Configuration,
        DeviceTarget,
        Environment,
        Measurement,
        Metric,
        Modifier,
        Outcome,
        Phase,
        Refusal,
        Result,
        RunSettings,
        Scalar,
        Status,
        View,
        Workload,
        absent,
    )
    from torchgauge.registry import load
    from torchgauge.results.reports.publisher import Publisher
    from torchgauge.results.reports.report import ComparisonReport
    from torchgauge.results.reports.run_report import RunReport
    from torchgauge.suites.capabilities import FORWARD, LOSS, wanted
    from torchgauge.suites.catalog import YamlSuite
    from torchgauge.suites.check import CHECK, CheckOutcome
    from torchgauge.suites.conformance.check_context import CheckContext, check
    from torchgauge.suites.outputs import observe
    from torchgauge.suites.suite import BuiltWorkload, ModelEntry, Suite, Unavailable, Work
    from torchgauge.testing import check_suite

__all__ = [
    "Case", "Configuration", "DeviceTarget", "Workload", "Measurement", "absent", "Metric", "Better",
    "Compared", "View", "Environment", "Outcome", "Result", "Refusal", "Scalar", "Status", "Cause",
    "Phase", "Modifier", "RunSettings", "TorchgaugeError", "UsageError", "InfrastructureError",
    "MissingDataError", "MissingPackageError", "NoNetworkError", "NotOfferedError", "DeviceDescriptor",
    "Provision", "RunnerImage", "Absent", "DeviceSession", "EventTimer", "MemoryReading",
    "AcceleratorSession", "check_session", "check_device", "YamlSuite", "BuiltWorkload", "ModelEntry",
    "Suite", "Unavailable", "Work", "FORWARD", "LOSS", "wanted", "check_suite", "CHECK", "CheckOutcome",
    "CheckContext", "check", "ScenarioDescriptor", "Subject", "observe", "BackendDescriptor",
    "BackendSession", "Entries", "Look", "Prepared", "Attempted", "BudgetSpent", "RunNote", "Submission",
    "load", "Publisher", "ComparisonReport", "RunReport",
]  # fmt: skip
_PLACES = {
    "torchgauge.records": (
        "Case Configuration DeviceTarget Workload Measurement absent Metric Better Compared View "
        "Environment Outcome Result Refusal Scalar Status Cause Phase Modifier RunSettings"
    ),
    "torchgauge.errors": (
        "TorchgaugeError UsageError InfrastructureError MissingDataError MissingPackageError "
        "NoNetworkError NotOfferedError"
    ),
    "torchgauge.devices.device": "DeviceDescriptor Provision RunnerImage",
    "torchgauge.devices.session": "Absent DeviceSession EventTimer MemoryReading",
    "torchgauge.devices.accelerator": "AcceleratorSession",
    "torchgauge.devices.conformance": "check_session",
    "torchgauge.devices.descriptor_conformance": "check_device",
    "torchgauge.suites.catalog": "YamlSuite",
    "torchgauge.suites.suite": "BuiltWorkload ModelEntry Suite Unavailable Work",
    "torchgauge.suites.capabilities": "FORWARD LOSS wanted",
    "torchgauge.testing": "check_suite",
    "torchgauge.suites.check": "CHECK CheckOutcome",
    "torchgauge.suites.conformance.check_context": "CheckContext check",
    "torchgauge.harness.scenarios.scenario": "ScenarioDescriptor Subject",
    "torchgauge.suites.outputs": "observe",
    "torchgauge.harness.backends.backend": "BackendDescriptor",
    "torchgauge.harness.backends.prepared": "BackendSession Entries Look Prepared",
    "torchgauge.harness.executors.executor": "Attempted BudgetSpent RunNote Submission",
    "torchgauge.registry": "load",
    "torchgauge.results.reports.publisher": "Publisher",
    "torchgauge.results.reports.report": "ComparisonReport",
    "torchgauge.results.reports.run_report": "RunReport",
}
"""The public names by the module that defines them."""
__getattr__, __dir__ = lazy_names(
    globals(), {name: f"{place}:{name}" for place, names in _PLACES.items() for name in names.split()}
)

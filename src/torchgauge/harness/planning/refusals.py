"""Why a case is not even tried, as far as the parent can say: by its device, its backend or its suite."""

from __future__ import annotations

from torchgauge import registry
from torchgauge.devices.device import Device
from torchgauge.errors import TorchgaugeError
from torchgauge.harness.backends.backend import EAGER, as_compiled, backend_named
from torchgauge.records import Case, Cause, Refusal, Status
from torchgauge.records.case import MOST_PROCESSES, PROCESSES
from torchgauge.suites.capabilities import SCENARIOS
from torchgauge.suites.suite import ModelEntry, Suite


def refused(case: Case, entry: ModelEntry | None, device: Device) -> Refusal | None:
    """Why ``case`` of the model ``entry`` (None for a check) is not tried; None where it is.

    A backend, scenario or device that raises is a stranger's failure: its cases end as errors.
    """
    workload, configuration = case.workload, case.configuration
    if (entry is None or entry.framework == "torch") and device.torch_type is None:
        return Refusal(Status.UNSUPPORTED, f"device {device.name!r} does not run torch")
    if entry is not None and entry.framework != "torch" and configuration.backend != EAGER:
        return Refusal(Status.UNSUPPORTED, "a workload without torch cannot be compiled")
    if entry is not None and entry.framework != "torch" and configuration.memory_format:
        return Refusal(Status.UNSUPPORTED, "the workload does not use torch and has no memory format")
    asked = dict(workload.shape).get(PROCESSES, 1)
    if not isinstance(asked, int) or not 1 <= asked <= MOST_PROCESSES:
        return Refusal(Status.ERROR, f"{PROCESSES}={asked}: a case runs in 1 to {MOST_PROCESSES} processes")
    said = f"backend {configuration.backend!r}"
    try:
        if entry is not None:
            registry.load(SCENARIOS, workload.mode)
        backend = backend_named(configuration.backend)
        registry.asked(said, backend, "compiler", configuration)
        own = registry.asked(said, backend, "cannot_run", workload, configuration, device)
        judged = as_compiled(configuration)
        reason = registry.asked(f"device {device.name!r}", device, "cannot_run", workload, judged) or own
    except TorchgaugeError as error:  # a stranger's code must not end the run
        return Refusal(Status.ERROR, error.in_a_line)
    return Refusal(Status.UNSUPPORTED, reason) if reason else None


def missing_suite(suite: Suite) -> Refusal | None:
    """Why no case of ``suite`` can be built here; None where they can."""
    if suite.unavailable is None:
        return None
    reason = f"{suite.unavailable.reason}; try: {suite.unavailable.hint}"
    return Refusal(Status.SKIPPED, reason, Cause.MISSING_PACKAGE)

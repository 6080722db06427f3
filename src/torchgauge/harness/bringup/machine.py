"""The parts that need no run: what the device is, whether its package spoils torch, what doctor says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torchgauge.devices.device import Device
from torchgauge.devices.discover import Presence, known_devices
from torchgauge.devices.health import CheckState, diagnose
from torchgauge.devices.import_safety import import_safety
from torchgauge.devices.probe import probe
from torchgauge.harness.bringup.finding import Finding, Kind
from torchgauge.harness.bringup.question import CLOCKS, HERE, IMPORT
from torchgauge.harness.bringup.state import DeviceFacts
from torchgauge.harness.doctor.doctor_run import Calibrated
from torchgauge.harness.doctor.fitness import Verdict, fitness, part_label
from torchgauge.harness.interpreter.foreign_plugins import plugin_devices
from torchgauge.harness.interpreter.interpreter import Interpreter
from torchgauge.harness.interpreter.staging import environment_for
from torchgauge.records import Cause, Result, Status
from torchgauge.suites.calibration import ANSWER

NOT_FOUND, NOT_USABLE, NO_ANSWER = (
    "the device was not found",
    "the device is not usable",
    "the device does not respond",
)
"""What is said of a device on which nothing can be measured: each case would end as the first did."""
SILENT = frozenset({Status.TIMEOUT, Status.CRASH, Status.INFRA})
"""How the first part of a calibration ends on a device that does not answer at all."""


def identity(there: Interpreter, name: str, deadline_s: float) -> tuple[DeviceFacts, tuple[Finding, ...]]:
    """What a deep probe says of the device called ``name``."""
    report = probe(there.path, timeout=deadline_s, deep=True, environment=environment_for(there.path))
    listed = known_devices(there.path, report=report, timeout=deadline_s, plugins=plugin_devices(there))
    command = "torchgauge devices"
    entry = next((each for each in listed if each.name == name), None)
    if entry is None:
        trouble = report.trouble.cause if report.trouble is not None else "no torch device has this name"
        found = Finding(Kind.DANGER, HERE, NOT_FOUND, trouble, command)
        return DeviceFacts(Presence.ABSENT.value), (found,)
    facts = DeviceFacts(
        entry.presence.value,
        entry.label,
        entry.torch_type or "",
        entry.count,
        entry.model,
        entry.provider,
        entry.driver,
        entry.torch.version if entry.torch is not None else "",
    )
    if entry.presence is not Presence.PRESENT:
        why = f"{entry.presence.value}: {entry.reason}" + (f"; try: {entry.fix}" if entry.fix else "")
        return facts, (Finding(Kind.DANGER, HERE, NOT_USABLE, why, command),)
    told = f"number of devices that torch reports: {entry.count}"
    return facts, (Finding(Kind.WORKS, HERE, told, entry.model or entry.label, command),)


def imports(there: Interpreter, name: str, device: Device | None, deadline_s: float) -> tuple[Finding, ...]:
    """Whether torch can be imported with the package of the device, and without it.

    ``deadline_s`` is that of all imports together: each of at most eight may take its part.
    """
    devices = [] if device is None or device.torch_type is None else [device]
    found = import_safety(there.path, name, devices, deadline_s / 3, environment_for(there.path))
    command = f"torchgauge devices --import-safety --device {name}"
    tried = [trial for trial in found.trials if trial.survived is not None]
    bad = tuple(
        Finding(Kind.DANGER, IMPORT, f"import torch fails {trial.way.value}",
                trial.trouble.cause if trial.trouble is not None else "", command)
        for trial in tried if not trial.survived
    )  # fmt: skip
    if bad or not tried:
        return bad
    ways = _listed([trial.way.value for trial in tried])
    return (Finding(Kind.WORKS, IMPORT, f"import torch works {ways}", "", command),)


def _listed(words: Sequence[str]) -> str:
    """``words`` as one phrase."""
    return " and ".join(", ".join(words).rsplit(", ", 1))


def ailments(there: Interpreter, name: str, deadline_s: float) -> tuple[Finding, ...]:
    """What a run lacks on this machine, and where the device hangs."""
    checks = diagnose(
        there.path,
        name,
        timeout=deadline_s,
        plugins=plugin_devices(there),
        environment=environment_for(there.path),
    )
    command = f"torchgauge doctor --device {name}"
    found = []
    for check in checks:
        told = f"{check.message}; try: {check.fix}" if check.fix else check.message
        ours = check.name.startswith(f"device {name}")
        if check.state is CheckState.FAIL:
            subject = NO_ANSWER if check.name == f"device {name} answers" else check.name
            found.append(Finding(Kind.DANGER, HERE if ours else "", subject, told, command))
        elif check.state is CheckState.WARN and not check.name.startswith("device "):
            found.append(Finding(Kind.UNKNOWN, "", check.name, told, command, decides=False))
    return tuple(found)


def calibrated_findings(name: str, found: Calibrated, rows: Iterable[Result]) -> tuple[Finding, ...]:
    """What the calibration, whose ``rows`` the store has, says of the device and of numbers taken here."""
    command = f"torchgauge doctor --device {name}"
    silent = silent_reason(found)
    lying = {row.case.workload.model for row in rows if row.cause is Cause.CLOCK_CONTRADICTION}
    findings = []
    if silent:
        findings.append(Finding(Kind.DANGER, HERE, NO_ANSWER, silent, command))
    for gap in found.gaps:
        label = part_label(gap.part, gap.dtype)
        if gap.part in lying:
            findings.append(Finding(Kind.DANGER, CLOCKS, f"clocks, {label}", gap.reason, command))
        elif gap.status is Status.UNSUPPORTED:
            findings.append(Finding(Kind.NEXT, CLOCKS, label, gap.reason, command, decides=False))
        elif gap.status in (Status.NOT_RUN, Status.SKIPPED):
            continue  # it follows from another one
        elif gap.part != ANSWER or not silent:
            wrong = f"{label}: {gap.status.value}"
            findings.append(Finding(Kind.DANGER, HERE, wrong, gap.reason, command))
    if found.readings:
        parts = len(found.readings)
        findings.append(Finding(Kind.WORKS, HERE, f"{parts} speeds measured", "", command))
        told = f"host and device clocks agree in {parts} speed measurements"
        findings.append(Finding(Kind.WORKS, CLOCKS, told, "", command))
    verdict = fitness(found)
    if verdict.verdict is not Verdict.FIT:
        told = f"fitness of this machine: {verdict.verdict.value}"
        findings.append(Finding(Kind.UNKNOWN, "", told, verdict.summary, command, decides=False))
    return tuple(findings)


def silent_reason(found: Calibrated) -> str:
    """How the device failed to answer at all; empty where it answered, rightly or not."""
    gap = next((each for each in found.gaps if each.part == ANSWER and each.status in SILENT), None)
    return "" if gap is None else f"{gap.status.value}: {gap.reason}"


def unusable(findings: Iterable[Finding]) -> str:
    """Why nothing can be measured on the device, as identity and doctor found; empty where something can."""
    subjects = (NOT_FOUND, NOT_USABLE, NO_ANSWER)
    return next((each.detail for each in findings if each.subject in subjects), "")

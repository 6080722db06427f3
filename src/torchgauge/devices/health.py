"""What ``torchgauge doctor`` shows: each thing that a run needs, whether it is there, and what to type.

Parent side. The speed of the machine is not looked at here: a worker calibrates it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from torchgauge.counted import counted
from torchgauge.devices.calibration_hang import find_hang
from torchgauge.devices.device import Device
from torchgauge.devices.discover import DeviceReport, Presence, known_devices
from torchgauge.devices.host import GIB, available_cores
from torchgauge.devices.minimum import OLDEST_PYTHON, OLDEST_TORCH, release
from torchgauge.devices.probe import TIMEOUT_S, ProbeReport, ProbeState, probe
from torchgauge.errors import UnknownNameError
from torchgauge.processes.host_memory import available_memory

MODEL_LIBRARIES = ("timm", "transformers")
MEMORY_WANTED = 4 * GIB
DISK_WANTED = 5 * GIB


class CheckState(str, Enum):
    """Whether something is as a run needs it."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at; ``fix`` says what to type where it is not ok."""

    name: str
    state: CheckState
    message: str
    fix: str = ""


def diagnose(
    python: str,
    device: str | None = None,
    *,
    timeout: float = TIMEOUT_S,
    plugins: Mapping[str, Device] | None = None,
    environment: Mapping[str, str] | None = None,
) -> list[Check]:
    """Checks of the target interpreter, its torch, this machine and its devices.

    Where ``device`` names one, its absence is a failure; other devices only warn. One deep probe (seconds);
    where the named device is broken, a second child says at which step it hangs, if it does.
    ``plugins`` and ``environment`` are those of :func:`known_devices` and :func:`probe`.
    """
    report = probe(python, timeout=timeout, deep=True, libraries=True, environment=environment)
    checks = [_python(report)]
    if report.state is not ProbeState.NO_INTERPRETER:
        checks += [_torch(report), _autoload(report), _torchvision(report)]
        checks += [_library(report, name) for name in MODEL_LIBRARIES]
    devices = known_devices(python, report=report, timeout=timeout, plugins=plugins)
    checks.append(_compiler(devices))
    checks += [_memory(), _disk(), _load()]
    absent = [e for e in devices if e.presence is Presence.ABSENT and e.name != device]
    checks += [_device(entry, entry.name == device) for entry in devices if entry not in absent]
    checks += [
        check
        for entry in devices
        if entry.name == device and entry.presence is Presence.BROKEN
        for check in _hang(python, entry, timeout, environment)
    ]
    if absent:
        message = f"not on this machine: {', '.join(entry.name for entry in absent)}"
        checks.append(Check("other devices", CheckState.OK, message, "torchgauge devices prints the reason"))
    if device is not None and all(entry.name != device for entry in devices):
        known = UnknownNameError("device", device, (entry.name for entry in devices))
        message = f"{known.message.rstrip('?')}: no plugin and no torch device has this name"
        checks.append(Check(f"device {device}", CheckState.FAIL, message, "torchgauge devices lists them"))
    return checks


def _python(report: ProbeReport) -> Check:
    if report.state is ProbeState.NO_INTERPRETER:
        assert report.trouble is not None
        return Check("python", CheckState.FAIL, report.trouble.cause, report.trouble.fix)
    if release(report.version) < OLDEST_PYTHON:
        message = f"Python {report.version} is too old for a worker"
        return Check("python", CheckState.FAIL, message, "pass --python PATH of a Python 3.10 or later")
    return Check("python", CheckState.OK, f"Python {report.version}")


def _torch(report: ProbeReport) -> Check:
    usable = report.usable
    if usable is None or usable.torch is None:
        trouble = report.trouble
        assert trouble is not None
        return Check("torch", CheckState.FAIL, trouble.cause, trouble.fix)
    build = usable.torch
    message = f"torch {build.version} ({build.flavour}), imported in {build.import_s:.1f} s"
    if release(build.version) < OLDEST_TORCH:
        return Check(
            "torch", CheckState.FAIL, f"{message}: too old", f"{report.python} -m pip install -U torch"
        )
    if build.debug:
        return Check(
            "torch",
            CheckState.WARN,
            f"{message}: a debug build",
            "install a release build: times of a debug build are meaningless",
        )
    return Check("torch", CheckState.OK, message)


def _autoload(report: ProbeReport) -> Check:
    names = ", ".join(f"{item.name} ({item.package} {item.version})" for item in report.extensions)
    if not report.extensions:
        return Check("extensions", CheckState.OK, "import torch loads no device extension")
    if report.trouble is not None:
        return Check("extensions", CheckState.WARN, f"{names}: {report.trouble.cause}", report.trouble.fix)
    return Check("extensions", CheckState.OK, f"import torch loads {names}")


def _torchvision(report: ProbeReport) -> Check:
    usable = report.usable or report
    problem = usable.torchvision_problem
    if dict(report.packages).get("torchvision") is None:
        fix = f"{report.python} -m pip install torchvision"
        return Check("torchvision", CheckState.WARN, "not installed: vision models are skipped", fix)
    if problem is None:
        return Check("torchvision", CheckState.WARN, "not tried: torch is not usable")
    if problem:
        flavour = usable.torch.flavour if usable.torch is not None else "?"
        fix = f"install the torchvision that was built for this torch ({flavour})"
        message = f"torchvision's operators do not load: {problem}; models that use none of them still run"
        return Check("torchvision", CheckState.WARN, message, fix)
    return Check("torchvision", CheckState.OK, f"torchvision {dict(report.packages)['torchvision']}")


def _library(report: ProbeReport, name: str) -> Check:
    version = dict(report.packages).get(name)
    if version is None:
        fix = f"{report.python} -m pip install {name}"
        return Check(name, CheckState.WARN, "not installed: its suite is skipped", fix)
    return Check(name, CheckState.OK, f"{name} {version}")


def _compiler(devices: list[DeviceReport]) -> Check:
    cpu = next((entry for entry in devices if entry.torch_type == "cpu"), None)
    refusals = dict(cpu.compile) if cpu is not None else {}
    if "inductor" not in refusals:
        return Check("inductor on cpu", CheckState.WARN, "not tried: torch is not usable")
    if refusals["inductor"]:
        fix = "install g++ (or clang++) and the headers of this Python, or run --config eager"
        return Check("inductor on cpu", CheckState.WARN, refusals["inductor"], fix)
    return Check("inductor on cpu", CheckState.OK, "a C++ compiler is installed")


def _memory() -> Check:
    available = available_memory()
    if available is None:
        return Check("memory", CheckState.OK, "available memory cannot be read on this system")
    state = CheckState.OK if available >= MEMORY_WANTED else CheckState.WARN
    fix = "" if state is CheckState.OK else "end other programs, or choose small models"
    return Check("memory", state, f"{available / GIB:.1f} GiB available", fix)


def _disk() -> Check:
    folder = tempfile.gettempdir()
    free = shutil.disk_usage(folder).free
    state = CheckState.OK if free >= DISK_WANTED else CheckState.WARN
    fix = "" if state is CheckState.OK else "free disk space, or set TMPDIR to a folder on another disk"
    return Check("disk", state, f"{free / GIB:.1f} GiB free for temporary files", fix)


def _load() -> Check:
    cores = available_cores() or 1
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):
        return Check("load", CheckState.OK, "the load average cannot be read on this system")
    message = f"load {load:.1f} on {counted(cores, 'core')}"
    if load > 0.5 * cores:
        return Check("load", CheckState.WARN, message, "end other programs: load widens confidence intervals")
    return Check("load", CheckState.OK, message)


def _device(entry: DeviceReport, wanted: bool) -> Check:
    name = f"device {entry.name}"
    if entry.presence is Presence.PRESENT:
        return Check(name, CheckState.OK, f"{entry.count} x {entry.model or entry.label}")
    state = CheckState.FAIL if wanted else CheckState.WARN
    return Check(name, state, f"{entry.presence.value}: {entry.reason}", entry.fix)


def _hang(
    python: str, entry: DeviceReport, timeout: float, environment: Mapping[str, str] | None
) -> list[Check]:
    """At which step the device hangs; nothing where it is broken in another way."""
    torch_type = entry.torch_type or entry.name
    found = find_hang(python, torch_type, import_s=timeout, environment=environment)
    if found is None:
        return []
    message = f"hangs at: {found.step}" + (f", in {found.frame}" if found.frame else "")
    fix = "reset the device or restart its driver; another program may hold it"
    return [Check(f"device {entry.name} answers", CheckState.FAIL, message, fix)]

"""Does ``import torch`` survive a device's package: with it, without it, and without the stack below it.

Parent side. Each way is a child process of its own, twice; the first round warms the caches of the file
system, and the quicker of the two is the time of the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from torchgauge.devices.device import Device
from torchgauge.devices.installed import plain, provides
from torchgauge.devices.probe import (
    AUTOLOAD_VARIABLE,
    TIMEOUT_S,
    Extension,
    ProbeReport,
    Trouble,
    probe_once,
)
from torchgauge.processes.passed_variables import passed

ROUNDS = 2
LIBRARY_PATH = "LD_LIBRARY_PATH"


class Way(str, Enum):
    """What of the device is there while torch is imported."""

    AS_IT_IS = "as it is"
    NO_AUTOLOAD = "autoload off"
    NO_PACKAGE = "without the package"
    NO_STACK = "without the stack"


@dataclass(frozen=True)
class ImportTrial:
    """One way to import torch: ``how`` it was arranged, whether torch ``survived`` (None: not tried).

    ``import_s`` are seconds of ``import torch`` alone, None where it did not end well; ``wall_s`` those of
    the whole process. ``trouble`` has the root cause, unwrapped, and what to type.
    """

    way: Way
    how: str
    survived: bool | None = None
    import_s: float | None = None
    wall_s: float = 0.0
    trouble: Trouble | None = None


@dataclass(frozen=True)
class ImportSafety:
    """All ways for one device, or for all extensions where ``device`` is empty."""

    python: str
    device: str
    extensions: tuple[Extension, ...]
    trials: tuple[ImportTrial, ...]

    @property
    def safe(self) -> bool:
        """Whether torch survived every way that was tried."""
        return all(trial.survived is not False for trial in self.trials)


def import_safety(
    python: str,
    name: str,
    devices: Sequence[Device],
    timeout: float = TIMEOUT_S,
    environment: Mapping[str, str] | None = None,
) -> ImportSafety:
    """Import torch in each :class:`Way`; ``devices`` are those whose stack is hidden, ``name`` is for people.

    A failure is a trial with a :class:`Trouble`; nothing is raised.
    """
    given = environment or {}
    first = _import(python, True, timeout, (), given)
    # The device's extensions: those of its name, else all if one of them may have registered the device.
    named = tuple(item for item in first.extensions if not name or _belongs(item, name, devices))
    made = first.torch.privateuse1 if first.torch is not None else name
    extensions = named if named or made != name else first.extensions
    hidden, arranged = _without_stack({**passed(), **given}, devices)
    ways = {
        Way.AS_IT_IS: (True, (), given, "every extension is loaded"),
        Way.NO_AUTOLOAD: (False, (), given, f"{AUTOLOAD_VARIABLE}=0"),
        Way.NO_PACKAGE: (True, _hide(extensions), given, f"hidden: {_packages(extensions)}"),
        Way.NO_STACK: (True, (), {**given, **hidden}, arranged),
    }
    untried = {}
    if not extensions:
        untried[Way.NO_PACKAGE] = (
            "not tried: the device has no extension package, or the package is not installed"
        )
    if not hidden:
        untried[Way.NO_STACK] = (
            "not tried: the device has no visibility variable (such as CUDA_VISIBLE_DEVICES), "
            f"and {LIBRARY_PATH} is not set"
        )
    reports: dict[Way, list[ProbeReport]] = {way: [] for way in ways if way not in untried}
    reports[Way.AS_IT_IS].append(first)
    for _ in range(ROUNDS):
        for way, found in reports.items():
            if len(found) < ROUNDS and all(map(_is_well, found)):
                autoload, options, variables, _how = ways[way]
                found.append(_import(python, autoload, timeout, options, variables))
    trials = tuple(
        ImportTrial(way, untried[way]) if way in untried else _trial(way, how, reports[way])
        for way, (_autoload, _options, _variables, how) in ways.items()
    )
    return ImportSafety(python, name, extensions, _with_fixes(trials, extensions))


def _import(
    python: str, autoload: bool, timeout: float, options: tuple[str, ...], environment: Mapping[str, str]
) -> ProbeReport:
    return probe_once(python, autoload, timeout, ("--import-only", *options), environment)


def _belongs(item: Extension, name: str, devices: Sequence[Device]) -> bool:
    wanted = {plain(package) for device in devices for package in device.provision.distributions}
    return plain(item.package) in wanted or provides(item.package, name) or provides(item.name, name)


def _packages(extensions: Iterable[Extension]) -> str:
    return ", ".join(sorted({item.package or item.name for item in extensions}))


def _hide(extensions: Iterable[Extension]) -> tuple[str, ...]:
    packages = ",".join(sorted({item.package for item in extensions if item.package}))
    return (f"--hide={packages}",) if packages else ()


def _without_stack(variables: Mapping[str, str], devices: Sequence[Device]) -> tuple[dict[str, str], str]:
    """Variables under which the devices cannot be seen nor their libraries found, and the same in words."""
    hidden = {
        name: ""
        for device in devices
        for name in getattr(device, "visibility_variables", ())[:1]  # other classes of devices have none
    }
    if variables.get(LIBRARY_PATH):
        hidden[LIBRARY_PATH] = ""
    return hidden, "emptied: " + ", ".join(sorted(hidden))


def _trial(way: Way, how: str, reports: Sequence[ProbeReport]) -> ImportTrial:
    failed = next((report for report in reports if not _is_well(report)), None)
    if failed is not None:
        return ImportTrial(way, how, survived=False, wall_s=failed.wall_s, trouble=_trouble(failed))
    quickest = min(reports, key=lambda report: report.torch.import_s if report.torch else 0.0)
    assert quickest.torch is not None
    return ImportTrial(way, how, True, quickest.torch.import_s, quickest.wall_s)


def _is_well(report: ProbeReport) -> bool:
    return report.ok and not report.exit_problem


def _trouble(report: ProbeReport) -> Trouble | None:
    """What went wrong: torch was imported where only the exit did not end well."""
    if not report.ok:
        return report.trouble
    return Trouble(
        report.exit_problem,
        "end the process",
        (),
        "",
        "check the atexit handlers of torch and its extensions",
    )


def _with_fixes(trials: tuple[ImportTrial, ...], extensions: Sequence[Extension]) -> tuple[ImportTrial, ...]:
    survived = {trial.way for trial in trials if trial.survived}
    fixed = []
    for trial in trials:
        if trial.trouble is None:
            fixed.append(trial)
            continue
        fix = trial.trouble.fix
        if Way.NO_AUTOLOAD in survived and trial.way is not Way.NO_PACKAGE:
            who = _packages(extensions) or "the extension"
            fix = (
                f"set {AUTOLOAD_VARIABLE}=0 to use torch; {who} should warn, not raise, if there is no driver"
            )
        fixed.append(replace(trial, trouble=replace(trial.trouble, fix=fix)))
    return tuple(fixed)

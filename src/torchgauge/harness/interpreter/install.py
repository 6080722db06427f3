"""Installing what a suite needs into the workers' interpreter, through pip, so that torch is never replaced.

One call of pip for each package: one that fails is a line of the report and not the end. A constraints file
pins torch, and what is built for it, to what is there. Before the packages that may do harm, everything that
is installed by then is pinned as well.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchgauge.counted import counted
from torchgauge.devices.health import Check, CheckState
from torchgauge.devices.probe import spawn
from torchgauge.errors import InfrastructureError, NothingSelectedError, UsageError
from torchgauge.harness.interpreter.packages import installed_in, package_checks
from torchgauge.harness.interpreter.staging import environment_for
from torchgauge.processes.kept_process import scratch
from torchgauge.processes.passed_variables import Purpose, passed
from torchgauge.suites.conflicts import bundled_conflicts, fitting, misfit
from torchgauge.suites.install_needs import Need, needs_of
from torchgauge.suites.suite import ModelEntry

PINNED = ("torch", "torchvision", "numpy", "triton")
"""Distributions that pip must leave as they are: torch, and what is built for it or with it."""
_TRITON = "pytorch-triton"
"""How the names of triton's builds for nightlies and vendors begin."""
FITTING = ("torchaudio", "torchvision")
"""Where absent, pip may bring only the version that fits torch, whatever asks for them."""
_SAID = re.compile(r"fatal: |[\w.]*Error: ")
"""How git and Python begin the line that says why a build failed."""
_CROSS = "\u00d7"
"""How pip begins the line that says which command failed."""
STEP_TIMEOUT_S = 1800.0
"""Some packages are compiled."""


@dataclass(frozen=True)
class Installation:
    """What is going to be installed: the needs in order, and the constraints of all of them."""

    python: str
    suite: str
    needs: tuple[Need, ...]
    models: tuple[str, ...]
    versions: Mapping[str, str]
    constraints: tuple[str, ...]

    def satisfied(self, need: Need) -> bool:
        """Return whether ``need`` pins no version and is installed."""
        return need.bare and bool(version_of(need, self.versions))

    def command(self, need: Need, constraints: str) -> list[str]:
        """What is typed for ``need``, with the path of the constraints file."""
        apart = [] if need.isolated else ["--no-build-isolation"]
        return [self.python, "-m", "pip", "install", "--no-input", "-c", constraints, *apart, *need.texts]


@dataclass(frozen=True)
class Step:
    """One package as it ended: its version before and after, and the first line of pip's reason if any."""

    need: Need
    before: str | None
    after: str | None
    reason: str = ""

    @property
    def failed(self) -> bool:
        """Whether pip did not install it."""
        return bool(self.reason)


@dataclass(frozen=True)
class Installed:
    """How an installation ended; ``skipped`` maps models to the packages that they still lack."""

    steps: tuple[Step, ...]
    skipped: Mapping[str, tuple[str, ...]]
    checks: tuple[Check, ...]

    @property
    def failed(self) -> bool:
        """Whether anything is not as it was asked for."""
        return any(step.failed for step in self.steps)


def plan_installation(python: str, suite: str, entries: Sequence[ModelEntry]) -> Installation:
    """What the models ``entries`` of ``suite`` need in ``python``.

    Raises :class:`UsageError` where pip would have to bring a torch of its own choice, and
    :class:`NothingSelectedError` where the models need nothing.
    """
    versions = installed_in(python)
    if "torch" not in versions:
        raise UsageError(
            f"{python} has no torch installed by pip, so pip would choose the version",
            hint=f"install the torch that you want to measure first: {python} -m pip install torch",
        )
    needs = needs_of(suite, entries)
    if not needs:
        raise NothingSelectedError(
            f"the models of {suite} need no packages besides torch", hint=f"torchgauge run {suite}"
        )
    models = tuple(entry.name for entry in entries)
    return Installation(python, suite, needs, models, versions, constraints_for(versions))


def version_of(need: Need, versions: Mapping[str, str]) -> str:
    """Return the version of ``need`` that is installed; empty where it is absent."""
    # triton's builds for nightlies and vendors have names of their own
    names = (need.name, *(name for name in versions if need.name == "triton" and name.startswith(_TRITON)))
    return next((versions[name] for name in names if name in versions), "")


def constraints_for(versions: Mapping[str, str]) -> tuple[str, ...]:
    """The lines that keep torch and its like as they are."""
    lines = [f"{name}=={versions[name]}" for name in _pinned(versions)]
    for rule in bundled_conflicts():
        if rule.package not in FITTING or (rule.package in PINNED and rule.package in versions):
            continue
        if rule.package in versions and not misfit(rule, versions):
            lines.append(f"{rule.package}=={versions[rule.package]}")
        elif (fits := fitting(rule, versions)) is not None:
            lines.append(fits)
    return tuple(lines)


def install(planned: Installation, say: Callable[[str], None], timeout: float = STEP_TIMEOUT_S) -> Installed:
    """Install everything that ``planned`` names, and look for conflicting packages after it.

    ``say`` is told each package as it ends. Raises :class:`InfrastructureError` where pip is not there.
    """
    _require_pip(planned.python)
    steps: list[Step] = []
    versions = dict(planned.versions)
    frozen = False
    with scratch("install") as folder:
        file = folder / "constraints.txt"
        file.write_text("\n".join(planned.constraints) + "\n", encoding="utf-8")
        for number, need in enumerate(planned.needs, 1):
            if need.last and not frozen:
                frozen = True
                _freeze(file, planned.constraints, versions, planned.needs)
            before = versions.get(need.name)
            reason = ""
            if not planned.satisfied(need):
                reason = need.brought or _misfit(need, versions)
                reason = reason or _pip(planned.command(need, str(file)), folder / "output", timeout)
                versions = installed_in(planned.python)
            steps.append(Step(need, before, versions.get(need.name), reason))
            say(f"[{number}/{len(planned.needs)}] {step_line(steps[-1])}")
    lacking: dict[str, list[str]] = {}
    for step in steps:
        if step.failed:
            for model in step.need.models or planned.models:
                lacking.setdefault(model, []).append(step.need.name)
    return Installed(
        tuple(steps),
        {model: tuple(lacking[model]) for model in planned.models if model in lacking},
        (*_moved(planned, versions), *package_checks(planned.python, versions)),
    )


def plan_text(planned: Installation) -> list[str]:
    """What ``--dry-run`` prints: the constraints and each command."""
    lines = [
        f"into {planned.python}, for {counted(len(planned.models), 'model')} of {planned.suite}",
        "constraints:",
    ]
    lines += [f"  {line}" for line in planned.constraints]
    for need in planned.needs:
        there = "  (is there already)" if planned.satisfied(need) else ""
        last = f"  (last: {need.last})" if need.last else ""
        if need.brought and not there:
            lines.append(f"{need.name} is not installed: {need.brought}")
            continue
        lines.append(f"{shlex.join(planned.command(need, 'CONSTRAINTS'))}{there}{last}")
    return lines


def report_text(ended: Installed) -> list[str]:
    """The table at the end: what is there, what failed and why, which models stay skipped, what conflicts."""
    width = max((len(step.need.name) for step in ended.steps), default=0)
    done = [step for step in ended.steps if not step.failed]
    failed = [step for step in ended.steps if step.failed]
    lines = ["", f"{len(done)} of {counted(len(ended.steps), 'package')} are installed"]
    lines += [f"  {step.need.name:<{width}}  {_change(step)}" for step in done]
    if failed:
        lines += ["", f"{len(failed)} failed"]
        lines += [f"  {step.need.name:<{width}}  {step.reason}" for step in failed]
    if ended.skipped:
        stay = counted(len(ended.skipped), "model stays", "models stay")
        lines += ["", f"{stay} skipped: missing_package"]
        longest = max(map(len, ended.skipped))
        lines += [f"  {name:<{longest}}  {', '.join(lack)}" for name, lack in ended.skipped.items()]
    marks = {CheckState.OK: "ok  ", CheckState.WARN: "warn", CheckState.FAIL: "FAIL"}
    lines.append("")
    for check in ended.checks:
        lines.append(f"{marks[check.state]}  {check.name}: {check.message}")
        lines += [f"        try: {check.fix}"] if check.fix else []
    return lines


def step_line(step: Step) -> str:
    """One package as it ended, in a line."""
    return f"{step.need.name}: failed: {step.reason}" if step.failed else f"{step.need.name}: {_change(step)}"


def _change(step: Step) -> str:
    if step.after is None:
        return "installed"  # a repository whose distribution has another name
    if step.before == step.after:
        return f"{step.after}, was there"
    return f"{step.after}, was {step.before}" if step.before is not None else step.after


def _misfit(need: Need, versions: Mapping[str, str]) -> str:
    """Return why the release that ``need`` pins breaks beside what is there; empty where none is known to."""
    pinned = next((text.partition("==")[2] for text in need.texts if "==" in text), "")
    rules = [rule for rule in bundled_conflicts() if pinned and rule.package == need.name]
    return next((why for rule in rules if (why := misfit(rule, {**versions, need.name: pinned}))), "")


def _freeze(
    file: Path, constraints: Sequence[str], versions: Mapping[str, str], needs: Sequence[Need]
) -> None:
    """Pin everything that is installed, but for what is still to come."""
    to_come = {need.name for need in needs if need.last}
    known = {line.partition("==")[0] for line in constraints if "==" in line}
    pins = [f"{name}=={version}" for name, version in versions.items() if name not in known | to_come]
    file.write_text("\n".join([*constraints, *pins]) + "\n", encoding="utf-8")


def _moved(planned: Installation, versions: Mapping[str, str]) -> list[Check]:
    """Whether anything that was pinned is another one now; pip promises that it is not."""
    return [
        Check(
            name,
            CheckState.FAIL,
            f"changed from {planned.versions[name]} to {versions.get(name, '(none)')}",
            f"{planned.python} -m pip install {name}=={planned.versions[name]}",
        )
        for name in _pinned(planned.versions)
        if versions.get(name) != planned.versions[name]
    ]


def _pinned(versions: Mapping[str, str]) -> list[str]:
    """The pinned distributions among those that are installed, torch first."""
    return [
        *(name for name in PINNED if name in versions),
        *(name for name in versions if name.startswith(_TRITON)),
    ]


def _require_pip(python: str) -> None:
    with scratch("install") as folder:
        output = folder / "output"
        reason = _pip([python, "-m", "pip", "--version"], output, 60.0)
    if reason:
        raise InfrastructureError(f"{python} has no working pip: {reason}", hint=f"{python} -m ensurepip")


def _pip(command: Sequence[str], output: Path, timeout: float) -> str:
    """Run pip; the first line of its reason where it failed, else an empty string."""
    variables = {**passed(Purpose.INSTALL), **environment_for(command[0])}
    try:
        ending = spawn(list(command), variables, timeout, output)
    except OSError as error:
        return f"{command[0]} cannot be started: {error.strerror or error}"
    if ending.returncode == 0:
        return ""
    if ending.returncode is None:
        return f"pip did not end within {timeout:g} s"
    return first_reason(output.read_text(encoding="utf-8", errors="replace"))


def first_reason(text: str) -> str:
    """The first line of pip's output that says why it failed."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(line.endswith("subprocess-exited-with-error") for line in lines):  # what ran says more than that
        what = next((line for line in lines if line.startswith(_CROSS)), "a command of the build failed")
        said = [part for line in lines if _SAID.match(part := line.lstrip("│╰─> "))]
        return " ".join([what.removeprefix(_CROSS).strip(), *said[:1]])[:300]
    for mark in ("ERROR:", "error:"):
        found = next((line for line in lines if line.startswith(mark)), None)
        if found is not None:
            return found.removeprefix(mark).strip()[:300]
    return lines[-1][:300] if lines else "pip said nothing"

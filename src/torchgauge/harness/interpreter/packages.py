"""What is installed in an interpreter, and which of it is known to break models that do not need it.

Parent side. Names and versions come from metadata; no package is imported, here or there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

from torchgauge.devices import library
from torchgauge.devices.health import Check, CheckState
from torchgauge.devices.installed import plain
from torchgauge.devices.probe import spawn
from torchgauge.errors import InfrastructureError
from torchgauge.harness.interpreter.staging import environment_for, is_own
from torchgauge.harness.suspects import Suspect
from torchgauge.processes.kept_process import run, scratch
from torchgauge.processes.passed_variables import passed
from torchgauge.processes.python_command import OFF_THE_PATH, python_command
from torchgauge.suites.conflicts import bundled_conflicts, misfit, suspicious
from torchgauge.suites.suite import Suite

TIMEOUT_S = 60.0
_QUESTION = (
    OFF_THE_PATH
    + """
import json, sys
from importlib import metadata
found = {}
for each in metadata.distributions():
    name = each.metadata["Name"]
    if name:
        found.setdefault(name, each.version)
print("torchgauge-packages " + json.dumps(found))
"""
)
_ANSWER = "torchgauge-packages "


def installed_in(python: str) -> dict[str, str]:
    """Distribution, as indexes spell it, to version, for all that ``python`` would import.

    Raises :class:`InfrastructureError` where it does not answer.
    """
    found = _own_packages() if is_own(python) else _ask(python)
    versions: dict[str, str] = {}
    for name, version in found:
        versions.setdefault(plain(name), version)  # the first on the path is the one that is imported
    return versions


def libraries_in(pythons: Iterable[str], suites: Iterable[Suite]) -> dict[str, str]:
    """Return the copies that ``pythons`` would import of the libraries that ``suites`` preload, by name."""
    tops = {name.partition(".")[0] for suite in suites for name in suite.preload} - {"torch", "torchgauge"}
    copies = {}
    for python in pythons if tops else ():
        variables = {**passed(), **environment_for(python)}
        done = run(
            python_command(python, Path(library.__file__), *sorted(tops)), variables, timeout=TIMEOUT_S
        )
        copies.update({f"{name} of {python}": copy for name, copy in json.loads(done.stdout or "{}").items()})
    return copies


def suspects(versions: Mapping[str, str]) -> tuple[Suspect, ...]:
    """The packages of ``versions`` that may break others, those that are known not to fit with the reason."""
    return tuple(
        Suspect(
            package=rule.package,
            version=versions[rule.package],
            module=rule.module or rule.package.replace("-", "_"),
            fix=rule.fix,
            why=misfit(rule, versions),
            unneeded=rule.unneeded,
            says=rule.says,
        )
        for rule in bundled_conflicts()
        if suspicious(rule, versions)
    )


@cache
def suspects_in(python: str) -> tuple[Suspect, ...]:
    """The suspects of ``python``, asked once in the life of this process; none where it does not answer.

    What it cannot say is no reason to end a run: its models then fail with their own words.
    """
    try:
        return suspects(installed_in(python))
    except InfrastructureError:
        return ()


def package_checks(python: str, versions: Mapping[str, str] | None = None) -> list[Check]:
    """What ``torchgauge doctor`` says of conflicting packages: a line for each, or that there are none."""
    try:
        found = suspects(installed_in(python) if versions is None else versions)
    except InfrastructureError as error:
        return [Check("packages", CheckState.WARN, error.message, error.hint)]
    breaking = {rule.package: rule.breaks for rule in bundled_conflicts()}
    checks = []
    for each in found:
        if each.why:
            what = breaking[each.package]
            message = each.why if what in each.why else f"{each.why}: it breaks {what}"
            checks.append(Check(each.package, CheckState.WARN, message, f"{python} -m {each.remedy}"))
    return checks or [Check("packages", CheckState.OK, "no known conflicts")]


def _own_packages() -> list[tuple[str, str]]:
    found = (each.metadata for each in metadata.distributions())  # parsed at each look
    return [(each["Name"], each["Version"]) for each in found if each["Name"]]


def _ask(python: str) -> list[tuple[str, str]]:
    with scratch("packages") as folder:
        output = folder / "output"
        variables = {**passed(), **environment_for(python)}
        try:
            spawn([python, "-c", _QUESTION], variables, TIMEOUT_S, output)
            text = output.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            raise InfrastructureError(f"{python} cannot be started: {error}") from error
    lines = [line for line in text.splitlines() if line.startswith(_ANSWER)]
    if not lines:
        last = text.strip().splitlines()[-1:] or ["it printed nothing"]
        raise InfrastructureError(
            f"{python} does not list its packages: {last[0][:200]}",
            hint=f"{python} -m pip list shows whether it works",
        )
    return list(json.loads(lines[-1].removeprefix(_ANSWER)).items())

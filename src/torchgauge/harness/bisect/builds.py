"""An ordered list of builds: interpreters, packages to install, or commits with a command that builds them.

The list is a strict YAML file or ``LABEL=PYTHON`` arguments. A build that is not there yet is made when the
search asks for it, in a folder of its own that a later command finds again. Commands are lists of words
and no shell's text; ``{python}``, ``{spec}``, ``{commit}`` and ``{folder}`` in them are replaced.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

from torchgauge.errors import TorchgaugeError, UsageError
from torchgauge.harness.interpreter.interpreter import locate
from torchgauge.processes.kept_process import run
from torchgauge.processes.known_secrets import last_line
from torchgauge.processes.passed_variables import Purpose, passed
from torchgauge.records.codec import digest
from torchgauge.suites.document import read_document
from torchgauge.suites.schema import convert, refuse

Words = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
Text = Annotated[str, msgspec.Meta(min_length=1)]
_INSTALL = ("{python}", "-m", "pip", "install", "{spec}")
_PLACEHOLDERS = ("python", "spec", "commit", "folder")


class BuildFields(msgspec.Struct, forbid_unknown_fields=True):
    """One build: an interpreter that is there, a package that pip installs, or a commit."""

    label: Text
    python: Text | None = None
    spec: Text | None = None
    commit: Text | None = None


class BuildsFields(msgspec.Struct, forbid_unknown_fields=True):
    """A whole file of builds, oldest first, with the commands that make those which are not there.

    ``python`` makes the virtual environments of packages. ``build`` builds a commit in ``source`` and leaves
    an interpreter at ``result``. ``timeout`` is in seconds for each command.
    """

    builds: tuple[BuildFields, ...]
    python: Text | None = None
    install: Words = _INSTALL
    build: Words | None = None
    source: Text = "."
    result: Text = "{folder}/bin/python"
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 3600.0


@dataclass(frozen=True)
class Build:
    """One build and how it comes about; exactly one of ``python``, ``spec`` and ``commit`` is not empty."""

    label: str
    python: str = ""
    spec: str = ""
    commit: str = ""


@dataclass(frozen=True)
class Builds:
    """An ordered list of builds, oldest first, and what makes those that are not there."""

    builds: tuple[Build, ...]
    base_python: str = sys.executable
    install: tuple[str, ...] = _INSTALL
    build: tuple[str, ...] = ()
    source: str = "."
    result: str = "{folder}/bin/python"
    timeout_s: float = 3600.0

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in order."""
        return tuple(build.label for build in self.builds)

    @property
    def digest(self) -> str:
        """Sixteen hex digits over everything that decides what is measured."""
        made = [[each.label, each.python, each.spec, each.commit] for each in self.builds]
        return digest([made, self.base_python, self.install, self.build, self.source, self.result])


class BuildFailedError(TorchgaugeError):
    """A build that cannot be made; the search passes it over and says so."""


def load_builds(path: Path) -> Builds:
    """The builds of the file ``path``; raises :class:`DataFileError` for the first mistake."""
    document = read_document(path)
    fields = convert(document, BuildsFields)
    for index, each in enumerate(fields.builds):
        at = f"$.builds[{index}]"
        ways = [name for name in ("python", "spec", "commit") if getattr(each, name) is not None]
        if len(ways) != 1:
            said = " and ".join(ways) or "no python, spec or commit"
            raise refuse(document, at, f"has {said}", "give exactly one of python, spec and commit")
        if each.commit is not None and fields.build is None:
            raise refuse(document, f"{at}.commit", "is a commit, but the file has no command `build`",
                         "add build: [./build.sh, '{commit}', '{folder}']")  # fmt: skip
    for name in ("install", "build", "result"):
        words = getattr(fields, name) or ()
        for index, word in enumerate((words,) if isinstance(words, str) else words):
            try:
                _filled((word,), dict.fromkeys(_PLACEHOLDERS, ""))
            except (KeyError, ValueError, IndexError):
                known = ", ".join(f"{{{each}}}" for each in _PLACEHOLDERS)
                raise refuse(document, f"$.{name}[{index}]", f"{word!r} has an unknown placeholder",
                             f"use {known}; write a literal brace twice") from None  # fmt: skip
    builds = tuple(
        Build(each.label, each.python or "", each.spec or "", each.commit or "") for each in fields.builds
    )
    problem = _problem(builds)
    if problem:
        hint = "list at least two builds, oldest first, with different labels"
        raise refuse(document, "$.builds", problem, hint)
    return Builds(
        builds,
        base_python=locate(fields.python, "python:") if fields.python else sys.executable,
        install=fields.install,
        build=fields.build or (),
        source=str((path.parent / fields.source).resolve()),
        result=fields.result,
        timeout_s=fields.timeout,
    )


def named_builds(arguments: Sequence[str]) -> Builds:
    """The builds that ``LABEL=PYTHON`` arguments name, oldest first; raises :class:`UsageError`."""
    builds = tuple(Build(label, python=python) for label, python in map(named_build, arguments))
    problem = _problem(builds)
    if problem:
        raise UsageError(problem, hint="--build LABEL=PYTHON twice or more, oldest first, different labels")
    return Builds(builds)


def named_build(argument: str, option: str = "--build") -> tuple[str, str]:
    """Label and interpreter of ``LABEL=PYTHON``; raises :class:`UsageError` where it is none."""
    label, equals, python = argument.partition("=")
    if not (label and equals and python):
        raise UsageError(
            f"{option} {argument!r} is not a build", hint=f"{option} LABEL=PATH, such as {option} 2.12=old"
        )
    return label, locate(python, f"{option} {label}=")


def make_build(builds: Builds, build: Build, folder: Path) -> str:
    """The interpreter of ``build``, made under ``folder`` where it is not there yet.

    Raises :class:`BuildFailedError` with the last words of the command that failed; its log stays in
    ``folder``.
    """
    if build.python:
        try:
            return locate(build.python)
        except UsageError as error:
            raise BuildFailedError(error.message, hint=error.hint) from error
    place = folder.absolute() / digest(
        [build.spec, build.commit, builds.install, builds.build, builds.base_python]
    )
    done = place / "made"
    names = {"folder": str(place), "spec": build.spec, "commit": build.commit, "python": builds.base_python}
    result = str(place / "bin" / "python") if build.spec else _filled((builds.result,), names)[0]
    if not done.is_file():
        place.mkdir(parents=True, exist_ok=True)
        if build.spec:
            _run((builds.base_python, "-m", "venv", str(place)), place, builds.timeout_s, str(place))
            command = _filled(builds.install, {**names, "python": result})
            _run(command, place, builds.timeout_s, str(place))
        else:
            _run(_filled(builds.build, names), place, builds.timeout_s, builds.source)
        if not Path(result).exists():
            raise BuildFailedError(f"the build of {build.label} created no interpreter at {result}",
                                   hint="set `result` to the path of the interpreter")  # fmt: skip
        done.touch()
    return result


def _problem(builds: Sequence[Build]) -> str:
    if len(builds) < 2:
        return f"a search needs at least two builds, but {len(builds)} given"
    labels = [build.label for build in builds]
    twice = next((label for label in labels if labels.count(label) > 1), "")
    if twice:
        return f"two builds have the name {twice!r}"
    ends = [(each.python, each.spec, each.commit) for each in (builds[0], builds[-1])]
    if ends[0] == ends[1]:
        return f"both ends, {labels[0]!r} and {labels[-1]!r}, are the same build"
    return ""


def _filled(words: Sequence[str], names: dict[str, str]) -> tuple[str, ...]:
    return tuple(word.format_map(names) for word in words)


def _run(command: Sequence[str], folder: Path, timeout_s: float, where: str) -> None:
    """Run one command with its output in ``folder``; raises :class:`BuildFailedError`."""
    log = folder / "build.log"
    try:
        with log.open("ab") as output:
            done = run(command, passed(Purpose.INSTALL), timeout=timeout_s, cwd=where, output=output)
    except subprocess.TimeoutExpired as error:
        raise BuildFailedError(f"{command[0]} took longer than {timeout_s:g} s", hint=f"see {log}") from error
    except OSError as error:
        raise BuildFailedError(
            f"{command[0]} cannot be started: {error.strerror or error}", hint=f"see {log}"
        ) from error
    if done.returncode:
        raise BuildFailedError(
            f"{command[0]} ended with status {done.returncode}: {last_line(log)[:300] or 'no output'}",
            hint=f"see {log}",
        )

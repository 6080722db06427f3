"""The interpreter that runs the workers: which one, whether it can, and what to type where it cannot.

Parent side. Everything is asked of child processes with a deadline, before a plan is made: a wrong path, an
old Python and a broken torch are a person's or a machine's trouble, and no row of a store.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from torchgauge.devices.minimum import OLDEST_PYTHON, OLDEST_TORCH, release, spelled
from torchgauge.devices.probe import ProbeReport, ProbeState, how_it_ended, probe, read_stages, spawn
from torchgauge.errors import InfrastructureError, TorchgaugeError, UsageError
from torchgauge.harness.interpreter.staging import environment_for, is_own, tree_for
from torchgauge.processes.kept_process import scratch
from torchgauge.processes.passed_variables import passed
from torchgauge.processes.python_command import python_command
from torchgauge.records import from_plain

START_TIMEOUT_S = 20.0
"""An interpreter that has not said its version by then is none."""
PLUGIN_TIMEOUT_S = 120.0
CHILD = "torchgauge.harness.interpreter.plugin_child"
_QUESTION = "import sys; print('torchgauge-python %d.%d.%d' % sys.version_info[:3])"
"""Runs on every Python there ever was; older ones could not even parse our own files."""
_ANSWER = "torchgauge-python "
_BARE_PIP = re.compile(r"(?<![\w./-])(?<!-m )pip (?=(?:un)?install\b)")


@dataclass(frozen=True)
class Plugin:
    """A plugin that is installed in an interpreter: entry point, package and version."""

    group: str
    name: str
    value: str
    package: str
    version: str


@dataclass(frozen=True)
class Interpreter:
    """What runs the workers of a run; a foreign one has been asked, our own need not be."""

    path: str
    version: str
    plugins: tuple[Plugin, ...] = ()

    @property
    def own(self) -> bool:
        """Whether it runs this process too."""
        return is_own(self.path)

    @cached_property
    def report(self) -> ProbeReport | None:
        """What its torch and devices answer (a child process, seconds); None for our own: it is not asked."""
        return None if self.own else probe(self.path, environment=environment_for(self.path))

    def plugin(self, group: str, name: str) -> Plugin | None:
        """The plugin of this name that is installed there."""
        return next((each for each in self.plugins if (each.group, each.name) == (group, name)), None)

    def pip(self, arguments: str) -> str:
        """The command that runs pip for this interpreter."""
        return f"{self.path} -m pip {arguments}"


def interpreter(
    text: str | None = None, *, option: str = "--python", timeout: float = START_TIMEOUT_S
) -> Interpreter:
    """The interpreter that ``text`` names (an executable or the folder of a virtual environment), or our own.

    ``option`` is what a person named it with. Raises :class:`UsageError` where that is no Python of at least
    the minimum.
    """
    path = sys.executable if text is None else locate(text, option)
    if is_own(path):
        return Interpreter(path, ".".join(map(str, sys.version_info[:3])))
    version = ask_version(path, timeout, option)
    if release(version) < OLDEST_PYTHON:
        raise UsageError(
            f"{path} is Python {version}; workers need {spelled(OLDEST_PYTHON)} or later",
            hint=f"{option} PATH with Python {spelled(OLDEST_PYTHON)} or later",
        )
    listed = ask_plugins(path, "plugins")
    return Interpreter(path, version, tuple(from_plain(Plugin, item) for item in listed))


def locate(text: str, option: str = "--python") -> str:
    """The executable that ``text`` names, from the root; raises :class:`UsageError` where there is none."""
    path = Path(text).expanduser()
    if path.is_dir():
        found = next((path / name for name in ("bin/python", "bin/python3") if (path / name).exists()), None)
        if found is None:
            raise UsageError(
                f"{_typed(option, text)}: this folder is not a virtual environment, it holds no bin/python",
                hint="pass a python executable, or make one: python3 -m venv FOLDER",
            )
        path = found
    elif os.sep not in text and not path.exists():
        path = Path(shutil.which(text) or text)
    if not path.exists():
        gone = f" (a link to {path.readlink()}, which does not exist)" if path.is_symlink() else ""
        raise UsageError(
            f"{_typed(option, text)}: there is no such file{gone}",
            hint="pass a python executable or the folder of a virtual environment",
        )
    if not os.access(path, os.X_OK):
        raise UsageError(
            f"{_typed(option, text)}: this file is not executable", hint="pass a python executable"
        )
    return os.path.abspath(path)  # noqa: PTH100  links are kept: one out of a virtual environment is not followed


def _typed(option: str, text: str) -> str:
    """``--python PATH`` or ``--build LABEL=PATH``, as a person typed it."""
    return f"{option}{text}" if option.endswith("=") else f"{option} {text}"


def ask_version(python: str, timeout: float = START_TIMEOUT_S, option: str = "--python") -> str:
    """The version of ``python`` as it says itself; raises :class:`UsageError` where it is no Python."""
    variables = {**passed(), **environment_for(python)}
    with scratch("python") as folder:
        try:
            ending = spawn([python, "-c", _QUESTION], variables, timeout, folder / "output")
        except OSError as error:
            raise UsageError(
                f"{option} {python}: it cannot be started: {error.strerror or error}",
                hint="pass a python executable",
            ) from error
    lines = [line for line in ending.output.splitlines() if line.startswith(_ANSWER)]
    if lines and ending.returncode == 0:
        return lines[-1].removeprefix(_ANSWER).strip()
    how = how_it_ended(ending).removesuffix(" and no exception")
    if ending.returncode == 0:
        how = "ended without printing the version"
    said = f"\n  it printed: {ending.output.splitlines()[-1][:200]}" if ending.output else ""
    raise UsageError(
        f"{option} {python}: this is not a working Python: the query for its version {how}{said}",
        hint="pass a python executable or the folder of a virtual environment",
    )


def require_torch(target: Interpreter) -> None:
    """Raise where torch is missing or too old (:class:`UsageError`) or broken (:class:`InfrastructureError`).

    Our own interpreter is judged by what is installed: importing its torch in a child would cost every run
    seconds, and its workers say what is broken.
    """
    report = target.report
    if report is None:
        _check_installed(target)
        return
    if report.state is ProbeState.NO_TORCH:
        raise UsageError(f"{target.path} has no torch", hint=target.pip("install torch"))
    installed = dict(report.packages).get("torch")
    if installed is not None:  # one that is too old may well break of our questions
        _check_version(target, installed)
    usable = report.usable
    if usable is None or usable.torch is None:
        raise _broken(target, report)
    _check_version(target, usable.torch.version)


def hint_for(python: str, hint: str) -> str:
    """An install hint whose pip is that of ``python``."""
    if not python or is_own(python):
        return hint
    return _BARE_PIP.sub(lambda _: f"{python} -m pip ", hint)


def ask_plugins(python: str, task: str, *arguments: str) -> Any:
    """What :mod:`.plugin_child` answers in ``python``; raises :class:`PluginAnswerError`."""
    with scratch("plugins") as folder:
        report = folder / "report.jsonl"
        variables = {**passed(), **environment_for(python, tree_for(python, folder))}
        command = python_command(python, CHILD, str(report), task, *arguments)
        ending = spawn(command, variables, PLUGIN_TIMEOUT_S, folder / "output")
        stages = dict(read_stages(report))
    if task in stages:
        return stages[task]
    raised = stages.get("raised", {})
    tail = ending.output.splitlines()[-1] if ending.output else ""
    cause = raised.get("error") or f"the interpreter {how_it_ended(ending)}: {tail}".rstrip(": ")
    raise PluginAnswerError(cause, raised.get("missing", ""))


class PluginAnswerError(InfrastructureError):
    """A plugin of a foreign interpreter that gave no answer; ``missing`` is the module that it lacks."""

    def __init__(self, cause: str, missing: str) -> None:
        super().__init__(cause)
        self.missing = missing


def _check_installed(target: Interpreter) -> None:
    if importlib.util.find_spec("torch") is None:
        raise UsageError(f"{target.path} has no torch", hint=target.pip("install torch"))
    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return  # a build tree on the path: it is there, and says its version in the worker
    _check_version(target, version)


def _check_version(target: Interpreter, version: str) -> None:
    if release(version) < OLDEST_TORCH:
        raise UsageError(
            f"torch {version} of {target.path} is older than {spelled(OLDEST_TORCH)}, the oldest supported",
            hint=target.pip("install --upgrade torch"),
        )


def _broken(target: Interpreter, report: ProbeReport) -> TorchgaugeError:
    trouble = report.trouble
    assert trouble is not None
    lines = [line for line in (*trouble.chain, *trouble.detail.splitlines()[-3:]) if line != trouble.cause]
    more = "".join(f"\n  {line}" for line in lines)
    return InfrastructureError(f"torch of {target.path} is broken: {trouble.cause}{more}", hint=trouble.fix)

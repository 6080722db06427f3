"""A virtual environment for one side of a comparison: what pip can install becomes an interpreter.

A specification is what a person would type behind ``pip install``: ``torch==2.13.0``, the address of a wheel,
a folder with a project, several of them, or options such as ``--index-url``.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.processes.kept_process import run
from torchgauge.processes.known_secrets import known_secrets
from torchgauge.processes.passed_variables import Purpose, passed
from torchgauge.processes.secret_names import hide_told
from torchgauge.results.hostile_text import tail

TIMEOUT_S = 3600.0
_TAIL = 2000


def make_environment(folder: Path, specification: str, also: Sequence[str] = (), install: str = "") -> Path:
    """Make a virtual environment in ``folder`` with ``specification`` and ``also``; its interpreter.

    A checkout is a project without a torch: where ``specification`` is a folder, the command ``install`` of
    its pool brings that in first. Raises :class:`UsageError` for a specification that is empty or badly
    quoted, and :class:`InfrastructureError` with the end of pip's output where it cannot be installed.
    """
    words = _words(specification)
    log = folder.with_name(f"{folder.name}.log")
    folder.parent.mkdir(parents=True, exist_ok=True)
    python = folder / "bin" / "python"
    if install and Path(specification).is_dir():
        python = make_by_command(folder, install, Path(specification), "")
    else:
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], log, "no environment could be created")
    pip = [str(python), "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]
    extra = [word for each in also for word in _words(each)]
    _run([*pip, *words, *extra], log, f"{hide_told(specification)!r} could not be installed")
    return python


def make_by_command(folder: Path, command: str, checkout: Path, torch: str) -> Path:
    """Make a virtual environment in ``folder`` by a pool's ``install`` command; its interpreter.

    The command runs in ``checkout`` as the job of a night runs it: by a shell that ends at the first mistake,
    in the active environment, with the version ``torch`` as ``$TORCH``. Packages of the machine stay visible.
    Raises :class:`InfrastructureError` with the end of what was printed where that fails.
    """
    if not checkout.is_dir():
        raise InfrastructureError(
            f"{checkout} does not exist", hint="check out the measured commit into this folder"
        )
    log = folder.with_name(f"{folder.name}.log")
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = [sys.executable, "-m", "venv", "--clear", "--system-site-packages", str(folder.resolve())]
    _run(made, log, "no environment could be created")
    python = folder.resolve() / "bin" / "python"
    variables = {
        **passed(Purpose.INSTALL),
        "TORCH": torch,
        "VIRTUAL_ENV": str(python.parent.parent),
        "PATH": os.pathsep.join([str(python.parent), os.environ.get("PATH", os.defpath)]),
    }
    variables.pop("PYTHONHOME", None)
    shell = ["bash", "-euo", "pipefail"] if shutil.which("bash") else ["sh", "-eu"]
    _run([*shell, "-c", command], log, f"{hide_told(command)!r} failed", checkout, variables)
    return python


def _words(specification: str) -> list[str]:
    try:
        words = shlex.split(specification)
    except ValueError as error:
        raise UsageError(f"{hide_told(specification)!r}: {error}", hint="use shell quotes") from error
    if not any(not word.startswith("-") for word in words):
        raise UsageError(
            f"{hide_told(specification)!r} contains nothing to install",
            hint="torch==2.13.0, or the URL of a wheel",
        )
    return words


def _run(
    command: Sequence[str],
    log: Path,
    problem: str,
    where: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> None:
    try:
        with log.open("ab") as stream:
            given = passed(Purpose.INSTALL) if variables is None else variables
            done = run(command, given, timeout=TIMEOUT_S, cwd=where, output=stream)
    except subprocess.TimeoutExpired:
        raise InfrastructureError(f"{problem}: timeout after {TIMEOUT_S:.0f} s", hint=f"see {log}") from None
    except OSError as error:
        raise InfrastructureError(f"{problem}: {error.strerror or error}", hint=f"see {log}") from error
    if done.returncode != 0:
        said = tail(known_secrets().hide_bytes(log.read_bytes()).decode(errors="replace")[-_TAIL:]).strip()
        raise InfrastructureError(f"{problem}:\n{said}", hint=f"see {log}, and run the command by hand")

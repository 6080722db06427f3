"""Where the sources of a package lie in an interpreter, and which version they are. Parent side."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from torchgauge.errors import UsageError
from torchgauge.harness.interpreter.interpreter import Interpreter
from torchgauge.harness.refused.finding import Scanned
from torchgauge.harness.refused.scan import scan
from torchgauge.processes.kept_process import run
from torchgauge.processes.passed_variables import passed
from torchgauge.processes.python_command import OFF_THE_PATH

_TIMEOUT_S = 60.0
_QUESTION = """
import importlib.util, json, sys
from importlib import metadata
name = sys.argv[1]
spec = importlib.util.find_spec(name)
folder = list(spec.submodule_search_locations or ()) if spec else []
try:
    version = metadata.version(name)
except metadata.PackageNotFoundError:
    version = ""
print(json.dumps([folder[0] if folder else "", version]))
"""


def scan_package(there: Interpreter, package: str) -> Scanned:
    """Refusals by name in ``package``, as it is installed in ``there``; it is not imported.

    Raises :class:`UsageError` where it is no package that is installed there.
    """
    problem = UsageError(
        f"{package!r} is not a package that {there.path} has",
        hint="--package torch, or another one with a folder of its own",
    )
    if not package.isidentifier():
        raise problem
    try:
        done = run([there.path, "-c", OFF_THE_PATH + _QUESTION, package], passed(), timeout=_TIMEOUT_S)
        done.check_returncode()
        folder, version = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise problem from error
    if not folder:
        raise problem
    return scan(Path(folder), package, version)

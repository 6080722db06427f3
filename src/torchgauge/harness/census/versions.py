"""Which versions of packages an interpreter has, asked without importing them. Parent side."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable

from torchgauge.harness.interpreter.interpreter import Interpreter
from torchgauge.harness.interpreter.staging import environment_for
from torchgauge.processes.kept_process import run
from torchgauge.processes.passed_variables import passed
from torchgauge.suites.census.data import installed_versions, plain

_TIMEOUT_S = 60.0
_QUESTION = """
import json, sys
from importlib import metadata
found = {}
for name in sys.argv[1:]:
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
print(json.dumps(found))
"""


def versions_in(there: Interpreter, packages: Iterable[str]) -> dict[str, str]:
    """Versions of ``packages`` in ``there``, without local parts; what it does not say is absent."""
    names = sorted(packages)
    if there.own:
        return installed_versions(names)
    try:
        variables = {**passed(), **environment_for(there.path)}
        done = run([there.path, "-c", _QUESTION, *names], variables, timeout=_TIMEOUT_S)
        done.check_returncode()
        found: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return {}
    return {name: plain(version) for name, version in found.items()}

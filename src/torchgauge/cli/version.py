"""What ``torchgauge --version`` says: the version, and in a development tree the commit too.

A release is its version. Between two releases many trees have the same one, ``X.Y.Z.dev0``, so a report of a
fault needs the commit; it stands there as PEP 440's local part.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import torchgauge
from torchgauge.processes.kept_process import run
from torchgauge.processes.passed_variables import Purpose, passed

_PATIENCE_S = 10


def described_version(version: str = torchgauge.__version__, root: Path | None = None) -> str:
    """``version``; of a development tree with ``+gCOMMIT``, and ``.dirty`` where tracked files were changed.

    ``root`` is the folder that would hold the checkout: two above the package, unless given. Where that is no
    checkout, or git cannot say, the version stands alone.
    """
    root = root or Path(torchgauge.__file__).parents[2]
    if ".dev" not in version or not (root / ".git").exists():
        return version
    describe = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = run(describe, passed(Purpose.GIT), timeout=_PATIENCE_S)
        done.check_returncode()
    except (OSError, subprocess.SubprocessError):
        return version
    return f"{version}+g{done.stdout.strip().replace('-', '.')}"

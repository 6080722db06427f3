"""The hash of what pip would install as torchgauge, so that workflows install that and nothing else."""

from __future__ import annotations

import json
import sys
from typing import Any

from torchgauge.errors import UsageError
from torchgauge.processes.kept_process import run
from torchgauge.processes.passed_variables import Purpose, passed
from torchgauge.results.hostile_text import tail

HASH = "--hash=sha256:"
_HINT = (
    "set `torchgauge:` of torchgauge.yml to a release, to the URL of a wheel, or to a release with hash:"
    f' "torchgauge==1.2.3 {HASH}..."; `pip hash WHEEL` prints the hash'
)


def hashed(requirement: str) -> str:
    """``requirement`` with the hash of the archive that pip finds for it; as it is where it has one.

    Raises :class:`UsageError` where pip finds none, or something that has no hash, such as a folder.
    """
    if HASH in requirement:
        return requirement
    command = ["install", "--dry-run", "--no-deps", "--ignore-installed", "--quiet", "--report", "-"]
    words = [sys.executable, "-m", "pip", "--disable-pip-version-check", *command, "--", requirement]
    done = run(words, passed(Purpose.INSTALL))
    if done.returncode != 0:
        said = tail(done.stderr.strip() or "no output", 600)
        raise UsageError(
            f"pip does not find {requirement!r} (exit code {done.returncode}):\n{said}", hint=_HINT
        )
    found: dict[str, Any] = json.loads(done.stdout)["install"][0]
    digest = found["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
    if not digest:
        raise UsageError(f"{requirement!r} is not an archive, so it has no hash", hint=_HINT)
    told = found["metadata"]
    exact = requirement if "://" in requirement else f"{told['name']}=={told['version']}"
    return f"{exact} {HASH}{digest}"

"""Made ``data/v5`` once, by the code of version 5; kept to show what that format was.

Version 5 had one attempt at each case: a row had neither a number of its attempt nor the others of its case.
Run it as ``python tests/results/write_version_5.py`` from the root of a checkout of that version.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import stored_runs
from conftest import Build

from torchgauge.records import Cause, Status
from torchgauge.results.store import Store

TARGET = Path(__file__).parent / "data" / "v5"


def main() -> None:
    """Write a published run with a case that was killed from outside, and an A/B run of one launch."""
    shutil.rmtree(TARGET, ignore_errors=True)
    store, build = Store.open(TARGET, create=True), Build()
    killed = {"status": Status.INFRA, "cause": Cause.KILLED, "reason": "killed from outside"}
    build.published(
        store,
        results=[build.result(), replace(build.crashed(), failure=None, modifiers=(), **killed)],
    )
    stored_runs.control_run(store, 1, [0.01])
    for folder in TARGET.glob("*/*/logs"):
        (folder / ".gitkeep").touch()


if __name__ == "__main__":
    main()

"""Made ``data/v4`` once, by the code of version 4; kept to show what that format was.

Version 4 called the setting ``prefetch`` ``ahead``, the ``sharding`` of a schedule ``cut``, the number of an
ABBA block ``quad`` and the cause ``conflicting_package`` ``poison_package``. Run it as
``python tests/results/write_version_4.py`` from the root of a checkout of that version.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import stored_runs
from conftest import Build

from torchgauge.records import Cause, Provenance, RunSettings, Status
from torchgauge.records.schedule import Schedule
from torchgauge.results.store import Store

TARGET = Path(__file__).parent / "data" / "v4"


def main() -> None:
    """Write a published shard with a case that a conflicting package ended, and an A/B run of one launch."""
    shutil.rmtree(TARGET, ignore_errors=True)
    store, build = Store.open(TARGET, create=True), Build()
    told = {
        "status": Status.SKIPPED,
        "cause": Cause.POISON_PACKAGE,
        "reason": "deepspeed breaks transformers",
    }
    build.published(
        store,
        results=[build.result(), replace(build.crashed(), failure=None, modifiers=(), **told)],
        settings=RunSettings(ahead=3),
        provenance=(Provenance("ahead", 3, "flag"),),
        schedule=Schedule("longest", (("linear", 2.0),), whole="aa", cut="bb"),
        shard="1/2",
    )
    stored_runs.control_run(store, 1, [0.01])
    for folder in TARGET.glob("*/*/logs"):
        (folder / ".gitkeep").touch()


if __name__ == "__main__":
    main()

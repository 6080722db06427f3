"""Child: hide packages, try to build every model that needs them as a worker would, print how each ends.

Usage: child_needs.py SUITE PACKAGE.
"""

from __future__ import annotations

import json
import sys

from torchgauge.devices.fake import FakeSession
from torchgauge.devices.hiding import hide
from torchgauge.harness.suspects import Remedies
from torchgauge.harness.worker.verdicts import outcome_of
from torchgauge.records import Phase
from torchgauge.registry import load, resolve
from torchgauge.suites.catalog import workload_for
from torchgauge.suites.suite import Suite


def main(name: str, package: str) -> None:
    hide([package])
    suite: Suite = load("torchgauge.suites", name)
    build = resolve(suite.builder)
    rows = {}
    for entry in suite.models():
        if package not in entry.packages:
            continue
        for mode in entry.batch:
            workload = workload_for(name, entry, mode, size="full", batch_profile="pytorch")
            try:
                build(workload, entry.recipe)
            except Exception as error:  # noqa: BLE001  as in the worker
                said = outcome_of(error, "case", Phase.BUILD, FakeSession(), Remedies(suite.install_hint))
                cause = said.cause.value if said.cause else None
                rows[f"{entry.name}:{mode}"] = [said.status.value, cause, said.reason]
            else:
                rows[f"{entry.name}:{mode}"] = ["built", None, ""]
    print(json.dumps(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The checks of the suite of several processes, by the family that their name begins with."""

from __future__ import annotations

from torchgauge.harness.worker import checkpoint_check, flight_check
from torchgauge.records import Workload
from torchgauge.suites.check import Check, CheckOutcome, CheckSession

FAMILIES: dict[str, Check] = {"flight_recorder": flight_check.check, "checkpoint": checkpoint_check.check}


def check(workload: Workload, session: CheckSession) -> CheckOutcome:
    """The check that ``workload`` names."""
    return FAMILIES[workload.model.partition("-")[0]](workload, session)

"""One part of a full calibration as a check: what the harness calls for each row of ``calibration``."""

from __future__ import annotations

from typing import cast

from torchgauge.devices.calibration import PARTS, PartAbsentError, WrongPartError
from torchgauge.devices.session import DeviceSession
from torchgauge.harness.worker.contention import Contention
from torchgauge.records import Workload
from torchgauge.suites.check import CheckOutcome, CheckSession, NotOnThisDeviceError, WrongAnswerError


def run(workload: Workload, session: CheckSession) -> CheckOutcome:
    """Measure the part that ``workload`` names; its row says how much else the machine did meanwhile."""
    part, samples = PARTS[workload.model], int(dict(workload.shape)["samples"])
    with Contention() as contention:
        try:
            found = part(cast(DeviceSession, session), workload.dtype, samples)
        except PartAbsentError as error:
            raise NotOnThisDeviceError(str(error)) from error
        except WrongPartError as error:
            raise WrongAnswerError(str(error)) from error
        return CheckOutcome(measurements=found, facts=tuple(sorted(contention.facts().items())))

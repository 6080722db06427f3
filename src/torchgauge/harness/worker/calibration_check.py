"""One part of a full calibration as a check: what the harness calls for each row of ``calibration``."""

from __future__ import annotations

import math
import time
from typing import cast

from torchgauge.devices.calibration import PARTS, PartAbsentError, WrongPartError
from torchgauge.devices.session import DeviceSession
from torchgauge.harness.worker.contention import Contention
from torchgauge.harness.worker.stopping import relative_half_width
from torchgauge.records import Workload
from torchgauge.suites.check import CheckOutcome, CheckSession, NotOnThisDeviceError, WrongAnswerError

WIDE = 0.05
"""Relative half-width of an interval beyond which a part is measured once more."""
REST_S, LONGER = 0.5, 4
"""Seconds before a second measurement, and the factor of its samples; a burst of 20 ms matters less in it."""


def run(workload: Workload, session: CheckSession) -> CheckOutcome:
    """Measure the part that ``workload`` names; its row contains the load of other work meanwhile."""
    part, samples = PARTS[workload.model], int(dict(workload.shape)["samples"])
    with Contention() as contention:
        try:
            measurements = part(cast(DeviceSession, session), workload.dtype, samples)
            widths = (relative_half_width(one.samples, 0.95) for one in measurements)
            if any(WIDE < width < math.inf for width in widths):
                time.sleep(REST_S)
                measurements = part(cast(DeviceSession, session), workload.dtype, LONGER * samples)
        except PartAbsentError as error:
            raise NotOnThisDeviceError(str(error)) from error
        except WrongPartError as error:
            raise WrongAnswerError(str(error)) from error
        return CheckOutcome(measurements=measurements, facts=tuple(sorted(contention.facts().items())))

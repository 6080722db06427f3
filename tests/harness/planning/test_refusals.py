"""What the parent refuses before anything is started."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchgauge.devices.cpu import DEVICE
from torchgauge.harness.planning.refusals import refused
from torchgauge.records import Refusal, Status
from torchgauge.suites.suite import ModelEntry
from torchgauge.testing import make_case

ENTRY = ModelEntry("a", ("smoke",), {"inference": 1})


def asked(processes: int | str) -> Refusal | None:
    """What is said of a case that so many processes are to compute."""
    case = make_case()
    workload = replace(case.workload, shape=(("processes", processes),))
    return refused(replace(case, workload=workload), ENTRY, DEVICE)


@pytest.mark.parametrize("processes", [0, -1, 65, 100_000, "two"])
def test_a_number_of_processes_that_no_machine_starts_is_an_error(processes: int | str) -> None:
    """A word would run as one process, and a slip of the pen would fill the machine."""
    found = asked(processes)
    assert found is not None
    assert found.status is Status.ERROR
    assert found.reason == f"processes={processes}: a case runs in 1 to 64 processes"


@pytest.mark.parametrize("processes", [1, 64])
def test_the_least_and_the_most_processes_are_tried(processes: int) -> None:
    """Both ends of what is allowed."""
    assert asked(processes) is None

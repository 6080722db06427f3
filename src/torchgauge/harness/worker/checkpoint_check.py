"""Check ``checkpoint-reshard``: another number of processes loads a distributed checkpoint, to the bit."""

from __future__ import annotations

import json
import time

from torchgauge.harness.worker.case_measurements import of
from torchgauge.harness.worker.checkpoint_rank import Checkpointing
from torchgauge.harness.worker.rank_group import need_devices, rank_group
from torchgauge.processes.kept_process import scratch
from torchgauge.records import Status, Workload, to_json
from torchgauge.suites.check import CheckOutcome, CheckSession, NotOnThisDeviceError

LIMIT_S = 75.0
"""Seconds after which the group is ended: the check itself has 90."""
ROUNDS = 3


def check(workload: Workload, session: CheckSession) -> CheckOutcome:
    """Save with two processes, load with as many ``ranks`` as the shape says, and with one."""
    device, sizes = session.torch_device, dict(workload.sizes)
    if device is None:
        raise NotOnThisDeviceError(f"device {session.name!r} does not run torch, which the processes require")
    count = sizes.pop("ranks")
    need_devices(device.type, session.index + count)
    with scratch("checkpoint") as folder:
        asked = Checkpointing(count, str(folder), ROUNDS, tuple(sizes.items()), device.type, session.index)
        with rank_group(Checkpointing.__module__, to_json(asked), count) as group:
            late = time.monotonic() + LIMIT_S
            while any(each.poll() is None for each in group) and time.monotonic() < late:
                if any(each.poll() for each in group):  # one has failed: the others would wait
                    break
                time.sleep(0.05)
            statuses = [each.poll() for each in group]
        if any(status != 0 for status in statuses):
            said = "none in time" if not any(statuses) else str(statuses)
            return CheckOutcome(Status.ERROR, f"processes exited with {said}; the log has their output")
        found: dict[str, list[float]] = json.loads(asked.answer.read_text(encoding="utf-8"))
    told = f"files that two processes saved and {count} loaded"
    return CheckOutcome(measurements=tuple(of(metric, each, told) for metric, each in found.items()))

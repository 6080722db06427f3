"""Checks ``flight_recorder-*``: a fault is injected into a group of processes, and has to be found out.

Right is that the watchdog tells before the time-out of the call, and that the records of all processes name
the one that is to blame and the call; for a fault after which the call ends well (a process that comes late),
that it does.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass

from torchgauge.counted import counted
from torchgauge.harness.flight_records import Culprits, FlightRecord, culprits
from torchgauge.harness.worker.injected_hang import NOT_RECORDED, Injected
from torchgauge.harness.worker.rank_group import need_devices, rank_group
from torchgauge.processes.kept_process import scratch
from torchgauge.records import Cause, Scalar, Status, Workload, from_plain, to_json
from torchgauge.suites.check import CheckOutcome, CheckSession, NotOnThisDeviceError

LIMIT_S, MEETING_S = 10.0, 45.0
"""Seconds that a call may take, and that processes may take to import torch and to meet."""
CULPRIT, NUMBER = 1, 4
"""Which process errs, and in which call: the group's first one connects it."""


@dataclass(frozen=True)
class Found:
    """What came of a group: who was named, how each process ended, and the longest seconds until all told."""

    named: Culprits | None
    statuses: tuple[int | None, ...]
    told: int
    seconds: float


def check(workload: Workload, session: CheckSession) -> CheckOutcome:
    """Inject the fault that the model is named after among as many ``ranks`` as its shape says."""
    kind, count = workload.model.partition("-")[2], workload.sizes["ranks"]
    device = session.torch_device
    if device is None:
        raise NotOnThisDeviceError(f"device {session.name!r} does not run torch, which the processes require")
    need_devices(device.type, session.index + count)
    with scratch("flight") as folder:
        injected = Injected(kind, CULPRIT, NUMBER, count, LIMIT_S, str(folder), device.type, session.index)
        found = inject(injected)
    if NOT_RECORDED in found.statuses:
        raise NotOnThisDeviceError("this torch has no flight recorder that can be read in process")
    return judged(injected, found)


def judged(injected: Injected, found: Found) -> CheckOutcome:
    """Whether ``found`` names who was ``injected`` as the culprit, and the call."""
    operation = "broadcast" if injected.kind == "operation" else "all_reduce"
    expected = (injected.culprit,), f"{operation} #{injected.number + 1}"  # the first call connects
    facts: dict[str, Scalar] = {"named_after_s": round(found.seconds, 2), "records": found.told}
    if found.named is not None:
        facts["named"] = found.named.why
    wrong = ""
    if found.named is None:
        wrong = f"no rank named by {counted(found.told, 'record')} of {counted(injected.count, 'process')}"
    elif (found.named.ranks, found.named.call) != expected:
        wrong = f"expected rank {injected.culprit} in {expected[1]}, but found: {found.named.why}"
    elif injected.kind == "late" and any(found.statuses):
        wrong = f"the call failed when the late process joined: {found.statuses}"
    status = Status.FAIL_ACCURACY if wrong else Status.PASS
    cause = Cause.TOLERANCE if wrong else None
    return CheckOutcome(status, wrong, cause, facts=tuple(sorted(facts.items())))


def inject(injected: Injected) -> Found:
    """Run the group of ``injected`` until all that live have told, and kill what is left of it."""
    began = time.monotonic()
    with rank_group(Injected.__module__, to_json(injected), injected.count) as group:
        late = began + MEETING_S + injected.limit_s
        while time.monotonic() < late:
            open_ = [
                rank
                for rank, each in enumerate(group)
                if each.poll() is None and (injected.kind == "late" or not injected.record(rank).exists())
            ]
            if not open_:
                break
            time.sleep(0.05)
        seconds = time.monotonic() - began
        statuses = tuple(each.poll() for each in group)
    records: dict[int, FlightRecord | None] = {}
    for rank in range(injected.count):
        file = injected.record(rank)
        told = file.read_text(encoding="utf-8") if file.exists() else ""
        records[rank] = from_plain(FlightRecord, json.loads(told)) if told else None
    told_by = sum(each is not None for each in records.values())
    return Found(culprits(records), statuses, told_by, seconds)

"""What it costs to hold a device's clocks against each other, and whether it accuses devices that are right.

For each kind of simulated device that is right, and each number of busy processes beside it: sessions are
opened, each does the known work, times a row of blocks of a small model and closes the first and the last, as
a run does. Counted are contradictions that were seen, late closings, and the milliseconds of each part.
With ``--lying`` the devices are not waited for, and every session ought to see it. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from statistics import median

from child_run import run_child

DEVICES = ("", "kernel_us=300", "kernel_us=300,events=right", "kernel_us=5000,events=right")
LIES = (
    "kernel_us=300,synchronize_does_not_wait",
    "kernel_us=5000,synchronize_does_not_wait,events=submission",
)
BLOCKS = 20
CHILD = """
import json, sys, time
import torch
from torchgauge.devices import clock_check
from torchgauge.devices.privateuse1 import PrivateUse1Session
from torchgauge.errors import ClockContradictionError
from torchgauge.harness.worker.clock_watch import ClockWatch
from torchgauge.harness.worker.series import Series
from torchgauge.harness.worker.timing import steps_per_block, time_block

sessions, blocks = int(sys.argv[1]), int(sys.argv[2])
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64)).npusim()
data = torch.randn(16, 64).npusim()
seen, known, closing, late, closings = [], [], [], 0, 0
judge = clock_check.in_time
def in_time(wall, beyond):
    global late, closings
    closings += 1
    late += not judge(wall, beyond)
    return judge(wall, beyond)
clock_check.in_time = in_time
with torch.no_grad():
    for number in range(sessions):
        session = PrivateUse1Session("npusim")
        watch = ClockWatch(session)
        series = Series("a", lambda: model(data), closer=watch.closer())
        try:
            began = time.perf_counter()
            watch.begin()
            known.append(time.perf_counter() - began)
            series.inner = steps_per_block(time_block(series.step, 1, session).wall, 0.002)
            began = time.perf_counter()
            watch.close(series)
            closing.append(time.perf_counter() - began)
            timer = session.event_timer()
            for block in range(blocks):
                series.add(time_block(series.step, series.inner, session, timer), block)
            watch.judge([series])
        except ClockContradictionError as error:
            seen.append(error.message)
print(json.dumps({"sessions": sessions, "contradictions": len(seen), "first": seen[:1], "closings": closings,
    "late": late, "known_work_ms": [round(1e3 * each, 2) for each in known],
    "closing_ms": [round(1e3 * each, 2) for each in closing]}))
"""


def look(fault: str, busy: int, sessions: int) -> dict[str, object]:
    """What ``sessions`` of a device with ``fault`` see beside ``busy`` processes."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    try:
        ended = run_child(
            [sys.executable, "-c", CHILD, str(sessions), str(BLOCKS)],
            lambda text: json.loads(text.splitlines()[-1]),
            env={**os.environ, "TORCHGAUGE_NPUSIM_FAULT": fault, "OMP_NUM_THREADS": "1"},
        )
    finally:
        for each in others:
            each.kill()
            each.wait()
    found = ended.results
    for part in ("known_work_ms", "closing_ms"):
        found[part] = round(median(found[part]), 2) if found[part] else None
    return {"device": fault or "plain", "busy": busy, **found}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=40)
    parser.add_argument("--busy", default="0,2,4")
    parser.add_argument("--lying", action="store_true")
    given = parser.parse_args()
    loads = [int(each) for each in given.busy.split(",")]
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    load = os.getloadavg()[0]
    rows = [
        look(fault, busy, given.sessions) for busy in loads for fault in (LIES if given.lying else DEVICES)
    ]
    print(
        json.dumps(
            {"benchmark": "clock_check", "machine": machine, "load_1min": load, "rows": rows}, indent=1
        )
    )


if __name__ == "__main__":
    main()

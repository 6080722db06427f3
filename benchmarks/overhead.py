"""What the harness itself costs per case: the null workload on the fake device, beyond process start.

Prints one JSON object. ``process_start_ms`` is what a worker with an empty group costs from the request to
the report of its end (``fork_ms``, a bare fork and wait, is part of it), measured between the campaigns;
``per_case_ms`` is the wall time that each further case adds to a campaign of one-case groups (plan, journal
with fsync and publication included), less one process start; ``per_further_case_ms`` is what a further case
of a group adds, which starts no process. The limit is 5 ms.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from torchgauge.devices.fake import DEVICE
from torchgauge.harness.job import Job
from torchgauge.harness.planning.configurations import configuration
from torchgauge.harness.planning.plan import load_suites, make_group
from torchgauge.harness.pool.host_process import HostOptions, HostProcess
from torchgauge.harness.pool.worker_setup import WORKER_MODULES
from torchgauge.harness.run.campaigns import plan_of
from torchgauge.harness.run.progress import Progress
from torchgauge.harness.run.runner import Campaign
from torchgauge.records import DeviceTarget, Group, RunSettings, to_json
from torchgauge.results.store import Store
from torchgauge.suites.catalog import workload_for

CASES = 200
ROUNDS = 3
WIDTH = 5
SETTINGS = RunSettings(
    warmup_budget_s=0.0,
    measure_budget_s=1.0,
    min_blocks=10,
    max_blocks=10,
    min_block_s=1e-6,
    memory_probe=False,
    calibrate=False,
)


def groups(count: int, width: int = 1) -> tuple[Group, ...]:
    """``count`` groups, told apart by their seeds, of ``width`` cases with equal configurations each."""
    suite = load_suites(["toy"])["toy"]
    entry = next(model for model in suite.models() if model.framework == "python")
    workload = workload_for("toy", entry, "inference")
    target = DeviceTarget(DEVICE.name)
    eager = configuration("eager")
    configurations = [replace(eager, name=f"eager{i}") for i in range(width)]
    return tuple(
        make_group(replace(workload, seed=seed), entry, configurations, target, DEVICE)
        for seed in range(count)
    )


def campaign_seconds(count: int, folder: Path, width: int = 1) -> float:
    """Wall time of a campaign of ``count`` groups of ``width`` cases, journal and publication included."""
    suites = load_suites(["toy"])
    with (folder / "progress.log").open("w") as log:
        plan = plan_of(groups(count, width), SETTINGS, suites.values())
        store = Store.open(folder / "store", create=True)
        campaign = Campaign(plan, store, {DEVICE.name: DEVICE}, suites, Progress(log), sys.executable)
        start = time.perf_counter()
        report = campaign.run()
        seconds = time.perf_counter() - start
    if report.exit_code != 0 or sum(report.counts.values()) != count * width:
        raise SystemExit(f"the campaign did not pass: {report.counts}")
    return seconds


def fork_seconds(count: int) -> float:
    """Seconds that a bare fork, session, exit and wait of this process take, each."""
    start = time.perf_counter()
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os._exit(0)
        os.waitpid(pid, 0)
    return (time.perf_counter() - start) / count


def empty_worker_seconds(count: int, folder: Path) -> float:
    """Seconds from asking a warm host for a worker with nothing to do until its end is reported, each."""
    module = DEVICE.session.partition(":")[0]
    options = HostOptions(sys.executable, (), (*WORKER_MODULES, module), warm=True)
    host = HostProcess(options, folder / "host.log")
    names = [str(folder / name) for name in ("job", "events", "cursor", "log")]
    empty = Group("0" * 16, ())
    job = Job(
        "measure",
        DeviceTarget(DEVICE.name),
        DEVICE.session,
        SETTINGS,
        *names[1:3],
        group=empty,
        runs_torch=False,
    )
    Path(names[0]).write_text(to_json(job))
    try:
        host.receive(60.0)
        start = time.perf_counter()
        for _ in range(count):
            host.send(cmd="run", job=names[0], log=names[3], log_limit=1000)
            while (host.receive(10.0) or {}).get("ev") != "exited":
                pass
        return (time.perf_counter() - start) / count
    finally:
        host.close()


def main() -> None:
    """Measure and print."""
    per_case, further, starts, forks = [], [], [], []
    with tempfile.TemporaryDirectory() as name:
        campaign_seconds(2, Path(name))
        for _ in range(ROUNDS):
            few = campaign_seconds(10, Path(name))
            starts.append(empty_worker_seconds(100, Path(name)))
            forks.append(fork_seconds(100))
            many = campaign_seconds(10 + CASES, Path(name))
            per_case.append((many - few) / CASES - starts[-1])
            wide = campaign_seconds(10 + CASES // WIDTH, Path(name), WIDTH)
            narrow = campaign_seconds(10 + CASES // WIDTH, Path(name))
            further.append((wide - narrow) / ((10 + CASES // WIDTH) * (WIDTH - 1)))
    print(
        json.dumps(
            {
                "benchmark": "overhead",
                "machine": f"{platform.machine()}, {os.cpu_count()} cores",
                "load_1min": os.getloadavg()[0],
                "cases": CASES,
                "rounds": ROUNDS,
                "fork_ms": round(statistics.median(forks) * 1e3, 3),
                "process_start_ms": round(statistics.median(starts) * 1e3, 3),
                "per_case_ms": round(statistics.median(per_case) * 1e3, 3),
                "per_further_case_ms": round(statistics.median(further) * 1e3, 3),
                "per_case_ms_all": [round(x * 1e3, 3) for x in per_case],
                "limit_ms": 5.0,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()

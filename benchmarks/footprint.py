"""Start-up and memory of the parent: CPU time of ``--help``, peak memory with 10,000 planned cases.

``--help`` is compared with a bare interpreter in alternation (limit: 150 ms of CPU time more). Memory is the
peak of a process that plans, journals and publishes 10,000 cases whose results come from an executor that
starts no process (limit: 200 MB). Prints one JSON object.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from child_run import run_child

ROUNDS = 15
CASES = 10_000
BATCH = 50


def cpu_seconds(*arguments: str) -> float:
    """CPU time of one interpreter with ``arguments``, its children included."""
    return run_child([sys.executable, *arguments], str).cpu_s


def help_seconds() -> dict[str, float]:
    """Median CPU time of ``--help`` beyond the bare interpreter, from alternating runs."""
    bare, ours = [], []
    for _ in range(ROUNDS):
        bare.append(cpu_seconds("-c", "pass"))
        ours.append(cpu_seconds("-m", "torchgauge.cli.main", "--help"))
    extra = statistics.median(o - b for o, b in zip(ours, bare, strict=True))
    return {
        "help_extra_cpu_ms": round(extra * 1e3, 1),
        "bare_cpu_ms": round(statistics.median(bare) * 1e3, 1),
    }


def campaign(folder: Path) -> None:
    """Plan, journal and publish :data:`CASES` cases in this process, then print its peak memory."""
    import overhead

    from torchgauge.harness.planning.plan import load_suites
    from torchgauge.harness.run.campaigns import plan_of
    from torchgauge.harness.run.progress import Progress
    from torchgauge.harness.run.rows import RowContext, row
    from torchgauge.harness.run.runner import Campaign
    from torchgauge.records import Measurement, Outcome, Phase, Status
    from torchgauge.results.store import Store

    suites = load_suites(["toy"])
    plan = plan_of(overhead.groups(CASES), overhead.SETTINGS, suites.values())
    samples = tuple(0.001 + i * 1e-6 for i in range(30))
    names = ("latency", "latency_cpu", "latency_device", "launch_overhead")
    measured = tuple(Measurement(name, "s", samples, tuple(range(30))) for name in names)

    class Instant(Campaign):
        """A campaign whose results are there at once."""

        def _execute(self, *_: object) -> Iterator[object]:
            batch = []
            for planned in self.plan.cases:
                outcome = Outcome(planned.case.key, Status.PASS, Phase.DONE, measurements=measured)
                batch.append(row(self.plan, planned, outcome, RowContext()))
                if len(batch) == BATCH:
                    yield batch
                    batch = []
            if batch:
                yield batch

    with (folder / "log").open("w") as log:
        store = Store.open(folder / "store", create=True)
        report = Instant(plan, store, {}, suites, Progress(log), sys.executable).run()
    if sum(report.counts.values()) != CASES:
        raise SystemExit(f"{report.counts}")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["campaign"]:
        campaign(Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as name:
        command = [sys.executable, __file__, "campaign", name]
        peak = run_child(command, lambda text: int(text.split()[-1])).results
    figures = {
        "benchmark": "footprint",
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load_1min": os.getloadavg()[0],
        **help_seconds(),
        "help_limit_ms": 150.0,
        "cases": CASES,
        "parent_peak_mb": round(peak / 1e6, 1),
        "parent_limit_mb": 200.0,
    }
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()

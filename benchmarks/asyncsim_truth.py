"""What torchgauge measures on the simulated device asyncsim, beside what was planned there.

A real ``torchgauge run`` of ``planned_suite``: chains of kernels of 0.05, 1 and 10 ms, on one stream and on
two, eager and compiled. A number is right within 2 % or 20 microseconds of its plan. Prints a Markdown table,
with ``--json`` one object; ends with 1 where a number is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from statistics import median

from child_run import run_child

SUITE = Path(__file__).parent / "planned_suite"
sys.path.insert(0, str(SUITE))
RELATIVE, ABSOLUTE_S = 0.02, 20e-6
METRICS = ("latency", "latency_device", "launch_overhead")


def measure(folder: Path, models: str, configs: str, seconds: float) -> list:
    """The rows of one run."""
    from planned_models import PLAN

    from torchgauge.results import journal
    from torchgauge.results.store import Store

    variables = {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(SUITE), os.environ.get("PYTHONPATH", "")])),
        "TORCHGAUGE_SIMULATED_DEVICE": "asyncsim",
        "TORCHGAUGE_ASYNCSIM_PLAN": PLAN,
        "OMP_NUM_THREADS": "1",
    }
    command = [sys.executable, "-m", "torchgauge.cli.main", "run", "planned", "--device", "asyncsim"]
    command += ["--models", models, "--config", configs, "--threads", "1", "--measure-seconds", str(seconds)]
    command += ["--no-calibration", "--no-memory-probe", "--quiet-wait", "0", "--prefetch", "1"]
    command += ["--store", str(folder / "store")]

    def rows(_: str) -> list:
        store = Store.open(folder / "store")
        (run_id,) = store.run_ids()
        rows = list(journal.results(store.run(run_id).journal_path))
        if len(rows) != len(store.run(run_id).plan().cases):
            raise ValueError(f"{len(rows)} rows of {len(store.run(run_id).plan().cases)} cases")
        return rows

    return run_child(command, rows, good=(0, 1, 3), env={**os.environ, **variables}).results


def compare(rows: list) -> list[dict]:
    """For each row and metric: planned and measured seconds, and whether one is right by the other."""
    from planned_models import planned_s

    found = []
    for row in rows:
        case = row.case
        plan = planned_s(case.workload.model)
        samples = {each.metric: each.samples for each in row.measurements}
        for metric in METRICS:
            planned = 0.0 if metric == "launch_overhead" else plan
            measured = median(samples[metric]) if samples.get(metric) else float("nan")
            right = abs(measured - planned) <= max(RELATIVE * planned, ABSOLUTE_S)
            status = ", ".join([row.status.value, *(each.value for each in row.modifiers)])
            fact = {"model": case.workload.model, "configuration": case.configuration.name, "metric": metric}
            found.append(
                {**fact, "status": status, "planned_s": planned, "measured_s": measured, "right": right}
            )
    return found


def table(found: list[dict]) -> str:
    """Markdown, in milliseconds."""
    lines = [
        "| model | configuration | metric | planned, ms | measured, ms | off by | |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in found:
        off = each["measured_s"] - each["planned_s"]
        share = f" ({off / each['planned_s']:+.2%})" if each["planned_s"] else ""
        words = f"{each['planned_s'] * 1e3:.3f} | {each['measured_s'] * 1e3:.3f} | {off * 1e6:+.1f} us{share}"
        verdict = "right" if each["right"] else "*missed*"
        lines.append(
            f"| {each['model']} | {each['configuration']} | `{each['metric']}` | {words} | {verdict} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default="*")
    parser.add_argument("--configs", default="eager,aot_eager")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = compare(measure(Path(folder), options.models, options.configs, options.seconds))
    if options.json:
        print(json.dumps({"load": os.getloadavg(), "found": found}))
    else:
        print(table(found))
        print(
            f"\nload {os.getloadavg()[0]:.1f}; right: {sum(each['right'] for each in found)} of {len(found)}"
        )
    return 0 if found and all(each["right"] for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())

"""What two devices at work side by side do to each other's step times, against one after another.

Two simulated devices (they compute on the host, so that they disturb each other as much as any can) measure
the same models in three ways, which take turns: one device after another; both prepared at once and timed one
by one; both prepared and timed at once. Prints one JSON object: for each way, wall seconds of the runs, the
share of rows that are not unsteady, and the ratio of each case's median to its median one after another, as
the geometric mean over cases and as the worst case: of its wall time, and of its CPU time, which says less of
neighbours and is all that a busy machine can tell. One thread each, no calibration.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from child_run import run_child

from torchgauge.results import journal
from torchgauge.results.store import Store

WAYS = {
    "one after another": ("devices_at_once=1",),
    "prepared at once, timed one by one": ("devices_at_once=2",),
    "timed at once": ("devices_at_once=2", "timed_at_once=2"),
}
METRICS = ("latency", "latency_cpu")
MODELS = "mlp,convnet,transformer,embedding"


def measure(options: tuple[str, ...]) -> tuple[float, dict[str, float], float]:
    """Wall seconds, medians by metric and case in seconds, and the share of steady rows, of one run."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder, "store")
        words = [
            "toy",
            "--models",
            MODELS,
            "--device",
            "npusim,npusim.1",
            "--config",
            "eager",
            "--threads",
            "1",
        ]
        words += ["--measure-seconds", "1", "--quiet-wait", "0", "--no-calibration", "--no-memory-probe"]
        words += ["--prefetch", "2", "--store", str(store)]
        for each in options:
            words += ["--executor-option", each]
        variables = {"TORCHGAUGE_NPUSIM_DEVICES": "2", "TORCHGAUGE_LEASES": folder, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "torchgauge", "run", *words]

        def rows_of_all(_: str) -> list:
            opened = Store.open(store)
            (run_id,) = opened.run_ids()
            rows, planned = list(journal.results(opened.run(run_id).journal_path)), opened.run(run_id).plan()
            if len(rows) != len(planned.cases):
                raise ValueError(f"{len(rows)} rows of {len(planned.cases)} cases")
            return rows

        options = {"env": {**os.environ, **variables}, "log": sys.stderr.buffer, "limit_s": 900}
        ended = run_child(command, rows_of_all, **options)
    took, rows = ended.seconds, ended.results
    medians = {
        f"{summary.metric} {row.case_id}": summary.median
        for row in rows
        for summary in row.summaries
        if summary.metric in METRICS and summary.median is not None
    }
    return took, medians, sum(not row.unsteady for row in rows) / len(rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    load = os.getloadavg()[0]
    found: dict[str, list[tuple[float, dict[str, float], float]]] = {way: [] for way in WAYS}
    for _ in range(rounds):
        for way, options in WAYS.items():
            found[way].append(measure(options))
    usual = medians_of(found["one after another"])
    said: dict[str, dict[str, object]] = {}
    for way, runs in found.items():
        now = medians_of(runs)
        said[way] = {
            "wall_s": [round(took, 1) for took, _, _ in runs],
            "steady": round(statistics.mean(steady for _, _, steady in runs), 2),
        }
        for metric in METRICS:
            ratios = [
                now[each] / usual[each] for each in now if each.startswith(f"{metric} ") and each in usual
            ]
            if ratios:
                mean = round(statistics.geometric_mean(ratios), 3)
                said[way][metric] = {"ratio": mean, "worst": round(max(ratios), 3), "cases": len(ratios)}
    print(json.dumps({"load_before": load, "rounds": rounds, "ways": said}, indent=1))


def medians_of(runs: list[tuple[float, dict[str, float], float]]) -> dict[str, float]:
    """The median over ``runs`` of each case's median."""
    cases = set.intersection(*(set(medians) for _, medians, _ in runs))
    return {case: statistics.median(medians[case] for _, medians, _ in runs) for case in sorted(cases)}


if __name__ == "__main__":
    main()

"""Whether the ratios of a version matrix are those of a bare script, cell by cell.

Reads the newest matrix of ``--store``: models of timm, inference, float32. Each case then runs in each
column's environment by ``matrix_bare_step.py``, which imports torch and timm alone: one process at a time,
columns in turns, every second turn backwards. The bare ratio is the geometric mean over ``--launches`` of a
column's median step time over the baseline's, with its 95 % interval (t). Prints Markdown; ends with 1 if
two intervals do not overlap, or if a ratio is missing.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from pathlib import Path

from child_run import run_child
from scipy import stats

from torchgauge.results.matrix.table import Column, Table, read_table

STEP = Path(__file__).with_name("matrix_bare_step.py")
COMMAND = Path(sys.executable).with_name("torchgauge")


def medians(table: Table, given: argparse.Namespace, folder: str) -> dict[tuple[str, int], list[float]]:
    """Return the median step time in seconds of each launch, by case and place of the column."""
    found: dict[tuple[str, int], list[float]] = {}
    for launch in range(given.launches):
        places = range(len(table.columns))
        for row in table.rows:
            for place in places if launch % 2 == 0 else reversed(places):
                column = table.columns[place]
                words = [column.python, str(STEP), row.model, row.configuration, str(given.threads)]
                own = {"TORCHINDUCTOR_CACHE_DIR": str(Path(folder) / column.label.split()[0])}
                ended = run_child(
                    [*words, str(given.seconds)], json.loads, env={**os.environ, **own}, limit_s=600
                )
                found.setdefault((row.case, place), []).append(statistics.median(ended.results))
                print(f"{launch + 1} {column.label} {row.case}", file=sys.stderr, flush=True)
    return found


def ratio(base: list[float], other: list[float]) -> tuple[float, float, float]:
    """Return the geometric mean of the paired ratios with its 95 % interval."""
    logs = [math.log(late / early) for early, late in zip(base, other, strict=True)]
    mean, error = statistics.mean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    reach = stats.t.ppf(0.975, len(logs) - 1) * error
    return math.exp(mean), math.exp(mean - reach), math.exp(mean + reach)


def told(number: float, low: float, high: float) -> str:
    """Return a ratio with its interval."""
    return f"{number:.3f} [{low:.3f}, {high:.3f}]"


def name_of(column: Column) -> str:
    """Return what stands at the head of a column."""
    return f"{column.label}, A/A" if column.repeats else column.label


def main() -> int:
    """Measure, print a line for each cell, count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", required=True, help="store with the matrix")
    parser.add_argument("--launches", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1.0, help="of steps in each launch")
    parser.add_argument("--threads", type=int, default=1)
    given = parser.parse_args()
    show = [str(COMMAND), "matrix", "--show", "latest", "--store", given.store, "--json"]
    table = run_child(show, read_table, good=(0, 1, 3)).results
    with tempfile.TemporaryDirectory() as folder:
        bare = medians(table, given, folder)
    (base,) = (place for place, column in enumerate(table.columns) if column.baseline)
    apart, cells = 0, 0
    print("| case | version | torchgauge | bare script | intervals overlap |\n|---|---|---|---|---|")
    for row in table.rows:
        for place, entry in enumerate(row.entries):
            if place == base:
                continue
            cells += 1
            number, low, high = ratio(bare[row.case, base], bare[row.case, place])
            has = None not in (entry.ratio, entry.low, entry.high)
            overlap = has and entry.low <= high and low <= entry.high
            apart += not overlap
            own = told(entry.ratio, entry.low, entry.high) if has else entry.reason or entry.status
            label = name_of(table.columns[place])
            print(
                f"| {row.case} | {label} | {own} | {told(number, low, high)} | {'yes' if overlap else 'no'} |"
            )
    print(f"\n{cells - apart} of {cells} cells: the intervals overlap")
    return int(apart > 0 or not cells)


if __name__ == "__main__":
    sys.exit(main())

"""Do two identical campaigns agree? Reads two stores of the same cases, nothing is run.

For each case and metric: the log ratio of the two medians, and its 95 % interval from the stored intervals
(half-widths of independent medians add in quadrature on the logarithmic scale). Prints, for latency and for
the speed-up over eager: for how many cases the difference lies in its own interval (the interval holds zero),
for how many it is within 3 %, and the median half-width. Only what passed in both campaigns counts; the
others are named.

``python benchmarks/campaign_agreement.py STORE STORE``; each store's newest row of a case is taken.
"""

from __future__ import annotations

import argparse
import math
from statistics import median

import pandas as pd

from torchgauge.results import frames
from torchgauge.results.store import Store

METRICS = ("latency", "speedup")
NEAR = 0.03


def summaries_of(path: str) -> pd.DataFrame:
    """The newest summaries of both metrics in the store at ``path``, by case key and metric."""
    store = Store.open(path)
    newest = frames.latest(store)[["run_id", "case_key"]]
    found = frames.summaries(store).merge(newest, on=["run_id", "case_key"])
    found = found[found["metric"].isin(METRICS) & found["low"].notna() & (found["median"] > 0)]
    return found.set_index(["case_key", "metric"])


def line_of(metric: str, first: pd.DataFrame, second: pd.DataFrame) -> tuple[str, list[str]]:
    """A row of the table, and what is in one store only."""
    keys = {key for key, name in first.index if name == metric}, {k for k, n in second.index if n == metric}
    inside, near, halves, far = 0, 0, [], []
    for key in sorted(keys[0] & keys[1]):
        one, other = first.loc[(key, metric)], second.loc[(key, metric)]
        difference = math.log(other["median"] / one["median"])
        half = math.hypot(*(math.log(each["high"] / each["low"]) / 2.0 for each in (one, other)))
        inside += abs(difference) <= half
        near += abs(difference) <= NEAR
        halves.append(half)
        if abs(difference) > half:
            far.append(f"{one['case_id']}: {math.expm1(difference):+.1%}, half-width {half:.1%}")
    total = len(halves)
    if not total:
        return f"| {metric} | 0 | - | - | - |", []
    shares = f"{inside / total:.0%} ({inside}) | {near / total:.0%} ({near})"
    lone = [f"{key} is in one store only" for key in sorted(keys[0] ^ keys[1])]
    return f"| {metric} | {total} | {shares} | {median(halves):.2%} |", [*far, *lone]


def main() -> None:
    """Print the table, then the cases that lie outside."""
    parser = argparse.ArgumentParser(description="Do two identical campaigns agree?")
    parser.add_argument("stores", nargs=2, metavar="STORE")
    first, second = (summaries_of(path) for path in parser.parse_args().stores)
    heads = (
        "metric",
        "cases",
        "in its own interval (90 to 99 %)",
        "within 3 % (90 %)",
        "median half-width (3 %)",
    )
    print(f"| {' | '.join(heads)} |")
    print("|---|---|---|---|---|")
    notes = []
    for metric in METRICS:
        line, outside = line_of(metric, first, second)
        print(line)
        notes += outside
    print()
    for note in notes:
        print(f"- {note}")


if __name__ == "__main__":
    main()

"""How often an A/A column of a version matrix agrees with its baseline, and a repeated matrix with the first.

The matrix is measured ``--repeats`` times, each time in a store of its own: the baseline twice (the A/A
column) and one other version. A case of the A/A column agrees where the interval of its ratio holds 1. Of the
other version, ratios and verdicts of the first matrix are compared with those of the last. ``--count`` counts
what the stores have and measures nothing. Prints one JSON object.

Needs both versions from pip, or an ``--environments`` folder that has them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from child_run import run_child

from torchgauge.results.log_ratio import ratio_interval
from torchgauge.results.matrix.table import Entry, Table, read_table

MODELS = (
    "lcnet_050,regnety_002,mobilenetv2_100,tinynet_a,levit_128,deit_tiny_patch16_224.fb_in1k,"
    "BertForMaskedLM,DistilBertForMaskedLM,DistillGPT2,ElectraForCausalLM,MobileBertForMaskedLM,T5Small"
)
COMMAND = Path(sys.executable).with_name("torchgauge")
AGAIN, OTHER = 1, 2
"""The places of the columns beside the baseline."""


def matrix(given: argparse.Namespace, store: Path) -> Table:
    """The matrix of ``store``, measured as far as it is not; with ``--count`` as it is there."""
    if given.count:
        words = [str(COMMAND), "matrix", "--show", "latest", "--store", str(store), "--json"]
        return run_child(words, read_table, log=sys.stderr.buffer).results
    words = [str(COMMAND), "matrix", "timm", "huggingface", "--models", given.models,
             "--torch", f"{given.torch},{given.torch},{given.other}", "--device", given.device,
             "--config", "eager", "--threads", "1", "--no-memory-probe", "--no-warm-compile",
             "--measure-seconds", str(given.measure_seconds), "--max-launches", str(given.max_launches),
             "--max-time", given.max_time, "--store", str(store), "--json"]  # fmt: skip
    if given.environments:
        words += ["--environments", given.environments]
    return run_child(words, read_table, good=(0, 1, 3), log=sys.stderr.buffer).results


def with_ratio(table: Table, place: int) -> dict[str, Entry]:
    """The entries of one column that have a ratio with an interval, by case."""
    found = {row.case: row.entries[place] for row in table.rows}
    return {case: entry for case, entry in found.items() if entry.low is not None}


def agree(one: Entry, other: Entry) -> bool:
    """Whether the intervals of two ratios do not contradict each other."""
    ends = [(each.ratio, each.low, each.high) for each in (one, other)]
    _, low, high = ratio_interval(*ends)
    return bool(low <= 0 <= high)


def main() -> None:
    """Measure what is not there, count, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="matrix-repeat", help="folder of the stores")
    parser.add_argument("--count", action="store_true", help="measure nothing")
    parser.add_argument("--torch", default="2.13.0", help="the baseline, measured twice")
    parser.add_argument("--other", default="2.12.1", help="the version that is compared with it")
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--max-launches", type=int, default=6)
    parser.add_argument("--max-time", default="20m", help="of each matrix")
    parser.add_argument("--measure-seconds", type=float, default=1.0)
    parser.add_argument("--environments", default="")
    given = parser.parse_args()

    tables = [matrix(given, Path(given.out) / f"store-{at}") for at in range(1, given.repeats + 1)]
    cells = [item for table in tables for item in with_ratio(table, AGAIN).items()]
    outside = {
        f"{case}, {entry.verdict}": [entry.ratio, entry.low, entry.high]
        for case, entry in cells
        if not entry.low <= 1 <= entry.high
    }
    first, last = with_ratio(tables[0], OTHER), with_ratio(tables[-1], OTHER)
    both = sorted(first.keys() & last.keys())
    widths = sorted(entry.high / entry.low for _, entry in cells)
    found = {
        "aa_cells": sum(len(table.rows) for table in tables),
        "aa_with_ratio": len(cells),
        "aa_agree": len(cells) - len(outside),
        "aa_outside": outside,
        "aa_verdicts": Counter(entry.verdict for _, entry in cells),
        "aa_interval_high_over_low_median": widths[len(widths) // 2] if widths else None,
        "other_cases_in_both": len(both),
        "other_intervals_agree": sum(agree(first[case], last[case]) for case in both),
        "other_verdicts": {case: [first[case].verdict, last[case].verdict] for case in both},
        "other_same_verdict": sum(first[case].verdict == last[case].verdict for case in both),
        "launches": [
            sorted({row.entries[place].launches for table in tables for row in table.rows})
            for place in (AGAIN, OTHER)
        ],
        "states": [[column.state for column in table.columns[1:]] for table in tables],
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()

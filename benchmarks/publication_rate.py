"""How many rows a second become tables: a finished journal, published as ``results publish`` does.

Prints one line for each shape of rows, with the rows of each table over the CPU time of the whole
publication, since the machine may be busy: ``checks`` and ``operators`` have a row of results each, the
second with an error and a log excerpt, ``models`` seven metrics with thirty samples each. Asked are 10,000
rows/s of any kind. The median of ``--rounds`` is given; ``--profile SHAPE`` shows where the time of one goes.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import ci_ingest
import pandas as pd  # pyarrow imports it on its first table; that is no part of a rate
import pyarrow.parquet as pq

from torchgauge.records import Failure, Phase, Result, Status
from torchgauge.results.publication import publish_run
from torchgauge.results.store import RunFolder, Store
from torchgauge.results.tables import TABLES

CASES = {"checks": 10_000, "operators": 10_000, "models": 1_000}
ASKED = 10_000


def failed(template: Result) -> Result:
    """``template`` as a row of an operator that a device lacks."""
    failure = Failure(
        "NotImplementedError",
        "Could not run 'aten::op' with arguments from the 'fake' backend",
        "torch/_ops.py:1",
        "aten::op",
        "00ff00ff00ff00ff",
        "Traceback (most recent call last):\n" + 12 * '  File "torch/_ops.py", line 1158, in __call__\n',
    )
    return replace(
        template,
        status=Status.ERROR,
        phase=Phase.EAGER,
        reason="the device has no kernel for aten::op",
        failure=failure,
        log_excerpt=20 * "W1125 00:00:00 torch/_ops.py:1158] falling back\n",
    )


def journal(folder: Path, shape: str) -> RunFolder:
    """A finished run of the shape."""
    plain = ci_ingest.row
    if shape == "operators":
        ci_ingest.row = lambda case, _, seed: failed(plain(case, "checks", seed))
    try:
        return ci_ingest.journal(folder, "models" if shape == "models" else "checks", CASES[shape])
    finally:
        ci_ingest.row = plain


def main() -> None:
    """Measure each shape."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--profile", choices=CASES)
    asked = parser.parse_args()
    assert pd.__version__
    for shape in [asked.profile] if asked.profile else CASES:
        with tempfile.TemporaryDirectory() as folder:
            run = journal(Path(folder) / "store", shape)
            store, taken = Store.open(Path(folder) / "store"), []
            publish_run(store, run)
            profile = cProfile.Profile()
            for _ in range(1 if asked.profile else asked.rounds):
                plan = run.plan()  # which the run has at hand
                begin = time.process_time()
                if asked.profile:
                    profile.enable()
                publish_run(store, run, plan, again=True)
                profile.disable()
                taken.append(time.process_time() - begin)
            seconds = statistics.median(taken)
            counts = {name: pq.read_metadata(store.table_path(name, run.run_id)).num_rows for name in TABLES}
            rates = ", ".join(f"{name} {count / seconds:,.0f}" for name, count in counts.items() if count > 2)
            total = sum(counts.values()) / seconds
            verdict = "met" if total >= ASKED else f"missed by {1 - total / ASKED:.0%}"
            print(f"{shape}: {total:,.0f} rows/s of {seconds:.2f} s ({rates}); asked: {ASKED:,}: {verdict}")
        if asked.profile:
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()

"""What one more observation and one profiled step after the rounds cost, and the shares that they show.

Runs ``torchgauge run``, keeps the events of its workers and reads from them the seconds between the end of
the rounds and the end of the process: ``again`` is the second observation, ``look`` the profiled steps. What
else is in the run's wall time is the rest of a campaign.

    python benchmarks/observation_cost.py --out table.md timm huggingface toy --tier smoke --device cpu \
        --config eager,inductor
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from campaign_phases import Tap

from torchgauge.records import Phase, Result
from torchgauge.results import journal
from torchgauge.results.store import Store

PARTS = {Phase.ACCURACY.value: "again", Phase.CHECK.value: "look"}


def main() -> None:
    """Run, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    options, words = parser.parse_known_args()
    with tempfile.TemporaryDirectory() as folder:
        store, kept = Path(folder) / "store", Path(folder) / "kept"
        command = [sys.executable, "-m", "torchgauge.cli.main", "run", *words, "--ahead", "1"]
        began = time.monotonic()
        with Tap(store, kept):
            subprocess.run([*command, "--store", str(store)], check=False)
        wall_s = time.monotonic() - began
        (run_id,) = Store.open(store).run_ids()
        rows = list(journal.results(Store.open(store).run(run_id).journal_path))
        lines = table(rows, seconds(kept), wall_s)
    options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


def seconds(kept: Path) -> dict[str, float]:
    """Seconds by part, of all workers."""
    found: dict[str, float] = defaultdict(float)
    for file in kept.glob("*.events"):
        events = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        phases = [event for event in events if event["ev"] == "phase"]
        measured = False
        for event, following in pairwise(phases):
            part = PARTS.get(event["phase"])
            if measured and part is not None:
                found[part] += following["t"] - event["t"]
            measured = measured or event["phase"] == Phase.MEASURE.value
    return dict(found)


def table(rows: list[Result], parts: dict[str, float], wall_s: float) -> list[str]:
    """Cases, seconds, and the compiled cases with the smallest share first."""
    lines = [f"{len(rows)} cases in {wall_s:.0f} s"]
    for part, took in sorted(parts.items()):
        lines.append(
            f"{part}: {took:.1f} s, {took / len(rows):.2f} s per case, {took / wall_s:.1%} of the run"
        )
    shares = []
    for row in rows:
        facts = dict(row.facts)
        lines += [f"{row.status.value}: {row.case_id}: {row.reason}"] if row.reason else []
        if "compiled_share" in facts:
            shares.append((float(facts["compiled_share"]), row.case_id, row.degraded))
        elif "compiled_share_unknown" in facts:
            lines.append(f"unknown: {row.case_id}: {facts['compiled_share_unknown']}")
    lines += ["", "| compiled share | case | degraded |", "|---:|---|---|"]
    return lines + [f"| {share:.4f} | `{case}` | {why} |" for share, case, why in sorted(shares)]


if __name__ == "__main__":
    main()

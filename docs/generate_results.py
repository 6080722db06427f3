"""Print the results of stores as CSV: machine, dates and commands as comments, then a row for each case.

``python docs/generate_results.py --store STORE... > docs/results/NAME.csv``. Only published rows count, the
newest of each case. A row that did not pass has its reason. Latencies are medians in seconds with the
half-width of their 95 % interval; fewer than six rounds have none. A row of another model than its name
has no number.
"""

from __future__ import annotations

import argparse
import csv
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from torchgauge.records import UNCOUNTED, Modifier, Status
from torchgauge.results import frames, units
from torchgauge.results.store import Store

FACTS = {
    "cpu.model": "processor",
    "cpu.cores_available": "cores",
    "host.memory_bytes": "memory",
    "device.model": "device",
    "host.system": "system",
    "python.version": "Python",
    "torch.version": "torch",
    "package.torchvision": "torchvision",
    "package.timm": "timm",
    "package.transformers": "transformers",
    "compiler.cxx": "C++ compiler",
}
"""Facts of the environment that a reader needs first; the store has all of them."""
WORKLOAD = ["suite", "model", "mode", "batch", "parameters"]
COLUMNS = [*WORKLOAD, "configuration", "status", "latency_s", "half_width_percent", "speedup", "low", "high"]


def lines(stores: Sequence[Store], suites: Sequence[str] = ()) -> Iterator[str]:
    """Yield comments and rows; rows of ``suites`` alone where any are named."""
    rows = pd.concat([frames.latest(store) for store in stores]).drop_duplicates("case_key", keep="last")
    if suites:
        rows = rows[rows["suite"].isin(suites)].copy()
    texts = ["reason", "cause", "facts"]
    rows[texts] = rows[texts].fillna("").astype(object)
    yield from _how(rows, stores)
    summaries = pd.concat([frames.summaries(store) for store in stores])
    table = _table(rows, summaries)
    yield from table.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_MINIMAL).splitlines()


def _how(rows: pd.DataFrame, stores: Sequence[Store]) -> Iterator[str]:
    """Yield the machine, and date and command of every run that a row is from."""
    environments = pd.concat([frames.environments(store) for store in stores])
    used = environments[environments["environment_id"].isin(set(rows["environment_id"].dropna()))]
    facts = []
    for key, name in FACTS.items():
        values = sorted({_fact(key, text) for text in used.loc[used["key"] == key, "value"]})
        facts += [f"{name} {' / '.join(values)}"] if values else []
    yield f"# machine: {', '.join(facts)}"
    for store in stores:
        for run_id in sorted(set(rows["run_id"]) & set(store.run_ids())):
            plan = store.run(run_id).plan()
            own = rows[rows["run_id"] == run_id]
            load = [json.loads(text).get("load_1min") for text in own["facts"] if text]
            known = sorted(value for value in load if value is not None)
            between = f", load {known[0]:g} to {known[-1]:g}" if known else ""
            date = pd.Timestamp(plan.created_at, unit="s", tz="UTC").strftime("%Y-%m-%d %H:%M UTC")
            yield f"# date: {date}, {len(own)} cases{between}"
            yield f"# command: {shlex.join(_portable(plan.command))}"


def _portable(command: Sequence[str]) -> list[str]:
    """Return ``command`` without the folders of the machine that it was typed on."""
    return [Path(word).name if word.startswith("/") else word for word in command]


def _fact(key: str, text: str) -> str:
    value = json.loads(text)
    return units.quantity(float(value), "B") if key.endswith("_bytes") else str(value)


def _table(rows: pd.DataFrame, summaries: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each case, by suite, mode and model."""
    keys = ["run_id", "case_key"]
    own_model = np.array([Modifier.OTHER_MODEL not in marks for marks in rows["modifiers"]], bool)
    passed = (rows["status"] == Status.PASS).to_numpy() & own_model
    for metric in ("latency", "speedup"):
        own = summaries[summaries["metric"] == metric].set_index(keys)[["median", "low", "high"]]
        rows = rows.join(own.add_prefix(f"{metric}_"), on=keys)
    measured = [name for name in rows.columns if name.startswith(("latency_", "speedup_"))]
    rows.loc[~passed, measured] = np.nan
    middle, low, high = (rows[f"latency_{end}"].astype(float) for end in ("median", "low", "high"))
    rows = rows.assign(
        status=[_status(*row) for row in zip(rows["status"], rows["modifiers"], strict=True)],
        latency_s=[_rounded(value) for value in middle],
        half_width_percent=(50 * (high - low) / middle).round(1),
        speedup=rows["speedup_median"].astype(float).round(3),
        low=rows["speedup_low"].astype(float).round(3),
        high=rows["speedup_high"].astype(float).round(3),
        note=[_note(row) for _, row in rows.iterrows()],
        parameters=rows["parameters"].astype("Int64"),
        order=rows["configuration"] != "eager",
    )
    return rows.sort_values(["suite", "mode", "model", "order", "configuration"])[[*COLUMNS, "note"]]


def _status(status: str, modifiers: Sequence[str]) -> str:
    """Return the status, and beside a pass the modifiers that exclude the row from the count of passes."""
    marks = [each.value for each in sorted(UNCOUNTED) if status == Status.PASS and each in modifiers]
    return ", ".join([status, *marks])


def _rounded(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4g}"


def _note(row: pd.Series) -> str:
    """Return the reason of a row that did not pass, else its modifiers, and the origin of its inputs."""
    why = ", ".join(row["modifiers"]) if row["status"] == Status.PASS else row["reason"] or row["cause"]
    inputs = json.loads(row["facts"]).get("inputs") if row["facts"] else None
    note = "; ".join(filter(None, [why, f"inputs: {inputs}" if inputs else ""]))
    return " ".join(note.replace("#", "No. ").split())[:300]


def main() -> None:
    """Print the file."""
    parser = argparse.ArgumentParser(description="Print the results of stores as CSV.")
    parser.add_argument("--store", action="append", required=True, help="may be given several times")
    parser.add_argument("--suite", action="append", default=[], help="these alone; may be repeated")
    parser.add_argument(
        "--call",
        action="append",
        default=[],
        metavar="FOLDER=NAME",
        help="replacement for a folder of this machine",
    )
    given = parser.parse_args()
    text = "\n".join(lines([Store.open(path) for path in given.store], given.suite))
    for folder, _, name in (call.partition("=") for call in given.call):
        text = text.replace(folder, name)
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()

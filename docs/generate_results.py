"""A page of ``docs/results`` from stores: what was run, where, by which command, and how each model ended.

``python docs/generate_results.py --title "..." --store STORE... > docs/results/PAGE.md``. Only published rows
count, the newest of each case; a model without a row is not on the page, and one that did not pass stands
there with its reason. What has the status ``pass`` and is not counted among the passes has a column of its
own, and a row of another model than its name says gives no number. Latencies are medians with their 95 %
interval; fewer than six rounds have none. Only a speed-up that has an interval, of a row whose step times
count and that is counted among the passes, is counted as faster, slower or undecided; the others stand apart.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from torchgauge.records import UNCOUNTED, Modifier, Status, counts_as_pass, times_count
from torchgauge.results import frames, units
from torchgauge.results.matrix.state import find_state
from torchgauge.results.matrix.table import table_of
from torchgauge.results.matrix.text import markdown_of
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
AGAINST_EAGER = (
    "Faster and slower: the whole 95 % interval of the speed-up lies above or below 1. Apart, and in none of",
    "the numbers before: what has fewer than six rounds and so no interval, what was not counted as a",
    "pass, and what is marked as unsteady.",
    "",
    "| suite | mode | configuration | models | geometric mean | faster | slower | undecided | apart |",
    "|---|---|---|---|---|---|---|---|---|",
)
FEW = "fewer than six rounds: no interval"
WORKLOAD = ["suite", "model", "mode", "dtype", "size", "batch"]


def page(title: str, stores: Sequence[Store], suites: Sequence[str] = ()) -> Iterator[str]:
    """Lines of the page; of ``suites`` alone where any are named."""
    rows = pd.concat([frames.latest(store) for store in stores]).drop_duplicates("case_key", keep="last")
    if suites:
        rows = rows[rows["suite"].isin(suites)].copy()
    texts = ["reason", "cause", "facts"]
    rows[texts] = rows[texts].fillna("").astype(object)
    summaries = pd.concat([frames.summaries(store) for store in stores])
    yield f"# {title}"
    yield ""
    yield "Made by `docs/generate_results.py` from the stores of these runs; nothing here was typed by hand."
    yield ""
    yield from _how(rows, stores)
    yield from _counts(rows)
    yield from _speedups(rows, summaries)
    for (suite, mode), found in rows.groupby(["suite", "mode"], sort=True):
        yield from _models(str(suite), str(mode), found, summaries)


def matrix_page(title: str, store: Store, name: str) -> Iterator[str]:
    """Lines of the page of one version matrix."""
    yield f"# {title}"
    yield ""
    yield "Made by `docs/generate_results.py` from the store of this matrix; nothing here was typed by hand."
    yield ""
    yield from markdown_of(table_of(store, find_state(store, name))).splitlines()[2:]


def _how(rows: pd.DataFrame, stores: Sequence[Store]) -> Iterator[str]:
    """Dates, commands and machine of every run that a row is from."""
    yield "## How it was measured"
    yield ""
    for store in stores:
        for run_id in sorted(set(rows["run_id"]) & set(store.run_ids())):
            plan = store.run(run_id).plan()
            own = rows[rows["run_id"] == run_id]
            load = [json.loads(text).get("load_1min") for text in own["facts"] if text]
            known = sorted(value for value in load if value is not None)
            between = f"; load of the machine {known[0]:g} to {known[-1]:g}" if known else ""
            date = pd.Timestamp(plan.created_at, unit="s", tz="UTC").strftime("%Y-%m-%d %H:%M UTC")
            yield f"- {date}, {len(own)} cases{between}:"
            yield f"  `{shlex.join(_portable(plan.command))}`"
    yield ""
    environments = pd.concat([frames.environments(store) for store in stores])
    used = environments[environments["environment_id"].isin(set(rows["environment_id"].dropna()))]
    yield "| fact | value |"
    yield "|---|---|"
    for key, name in FACTS.items():
        values = sorted({_fact(key, text) for text in used.loc[used["key"] == key, "value"]})
        if values:
            yield f"| {name} | {_cell('; '.join(values))} |"
    yield ""


def _portable(command: Sequence[str]) -> list[str]:
    """``command`` without the folders of the machine that it was typed on."""
    return [Path(word).name if word.startswith("/") else word for word in command]


def _fact(key: str, text: str) -> str:
    value = json.loads(text)
    return units.quantity(float(value), "B") if key.endswith("_bytes") else str(value)


def _counts(rows: pd.DataFrame) -> Iterator[str]:
    """How many cases ended how, by suite, mode and configuration."""
    endings = [_ending(*row) for row in zip(rows["status"], rows["modifiers"], strict=True)]
    rows = rows.assign(ending=endings)
    statuses = [str(ending) for ending in rows["ending"].value_counts().index]
    yield "## How many ran"
    yield ""
    yield f"| suite | mode | configuration | cases | {' | '.join(f'`{status}`' for status in statuses)} |"
    yield "|---" * (4 + len(statuses)) + "|"
    for names, found in rows.groupby(["suite", "mode", "configuration"], sort=True):
        counts = [str((found["ending"] == status).sum()) for status in statuses]
        yield f"| {' | '.join(map(str, names))} | {len(found)} | {' | '.join(counts)} |"
    yield ""


def _ending(status: str, modifiers: Sequence[str]) -> str:
    """The status, and beside a pass that is not counted what keeps it out."""
    marks = [each.value for each in sorted(UNCOUNTED) if status == Status.PASS and each in modifiers]
    return ", ".join([status, *marks])


def _speedups(rows: pd.DataFrame, summaries: pd.DataFrame) -> Iterator[str]:
    """Geometric mean of the speed-up over eager, and how many models it is certain for either way."""
    every = _metric(rows, summaries, "speedup")
    if every.empty:
        return
    marks = every.merge(rows[["case_key", "status", "modifiers"]], on="case_key", suffixes=("_", ""))
    fit = [
        counts_as_pass(status, modifiers) and times_count(status, modifiers)
        for status, modifiers in zip(marks["status"], marks["modifiers"], strict=True)
    ]
    every = every.assign(counts=np.array(fit, bool) & every["low"].notna().to_numpy())
    yield "## Against eager"
    yield ""
    yield from AGAINST_EAGER
    for names, found in every.groupby(["suite", "mode", "configuration"], sort=True):
        own = found[found["counts"]]
        mean = f"{np.exp(np.log(own['median'].astype(float)).mean()):.2f}x" if len(own) else "none"
        faster, slower = int((own["low"] > 1).sum()), int((own["high"] < 1).sum())
        counts = [faster, slower, len(own) - faster - slower, len(found) - len(own)]
        yield f"| {' | '.join([*map(str, names), str(len(own)), mean, *map(str, counts)])} |"
    yield ""


def _metric(rows: pd.DataFrame, summaries: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The summaries of ``metric`` that belong to ``rows`` and to the models that these name."""
    posing = [Modifier.OTHER_MODEL in marks for marks in rows["modifiers"]]
    rows = rows[~np.array(posing, bool)]
    own = summaries[(summaries["metric"] == metric) & summaries["median"].notna()]
    return own.merge(rows[["run_id", "case_key"]], on=["run_id", "case_key"])


def _models(suite: str, mode: str, rows: pd.DataFrame, summaries: pd.DataFrame) -> Iterator[str]:
    """A line for each workload: each configuration's latency, or how and why it did not run."""
    latency = _metric(rows, summaries, "latency").set_index("case_key")
    speedup = _metric(rows, summaries, "speedup").set_index("case_key")
    configurations = sorted(set(rows["configuration"]), key=lambda name: (name != "eager", name))
    yield f"## {suite}, {mode}"
    yield ""
    heads = ["model", "batch", "parameters", *configurations, "speed-up", "note"]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for _, found in sorted(rows.groupby(WORKLOAD, sort=True), key=lambda item: str(item[0][1]).lower()):
        first, by_name = found.iloc[0], found.set_index("configuration")
        cells, ratios, notes = [], [], []
        for name in configurations:
            if name not in by_name.index:
                cells.append("not planned")
                continue
            row = by_name.loc[name]
            timed = row["status"] == "pass" and Modifier.OTHER_MODEL not in row["modifiers"]
            cells.append(_timing(latency, row) if timed else f"`{_ending(row['status'], row['modifiers'])}`")
            if row["case_key"] in speedup.index:
                one = speedup.loc[row["case_key"]]
                between = "" if pd.isna(one["low"]) else f" [{one['low']:.2f}, {one['high']:.2f}]"
                ratios.append(f"{one['median']:.2f}{between}")
                notes += [] if between else [FEW]
            if row["status"] != "pass":
                notes.append(f"{name}: {row['reason'] or row['cause']}")
            elif len(row["modifiers"]):
                notes.append(f"{name}: {', '.join(row['modifiers'])}")
        notes += _inputs(found)
        said = "; ".join(dict.fromkeys(notes))
        parameters = "" if pd.isna(first["parameters"]) else f"{int(first['parameters']):,}"
        line = [str(first["model"]), str(first["batch"]), parameters, *cells, ", ".join(ratios), said[:300]]
        yield f"| {' | '.join(map(_cell, line))} |"
    yield ""


def _timing(latency: pd.DataFrame, row: pd.Series) -> str:
    if row["case_key"] not in latency.index:
        return "pass"
    found = latency.loc[row["case_key"]]
    middle = units.quantity(found["median"], "s")
    if pd.isna(found["low"]):
        return f"{middle}, n = {found['n']}"
    return f"{middle} ± {50 * (found['high'] - found['low']) / found['median']:.1f} %"


def _inputs(rows: pd.DataFrame) -> list[str]:
    """Where inputs came from, as far as a row says so."""
    said = [json.loads(text).get("inputs") for text in rows["facts"] if text]
    return sorted({f"inputs: {text}" for text in said if text})


def _cell(text: str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description="A page of docs/results from stores.")
    parser.add_argument("--title", required=True, help="heading of the page")
    parser.add_argument("--store", action="append", required=True, help="may be given several times")
    parser.add_argument("--matrix", metavar="ID", help="a version matrix of the store instead (or `latest`)")
    parser.add_argument("--suite", action="append", default=[], help="these alone; may be repeated")
    parser.add_argument(
        "--call",
        action="append",
        default=[],
        metavar="FOLDER=NAME",
        help="how the page names a folder of this machine",
    )
    given = parser.parse_args()
    stores = [Store.open(path) for path in given.store]
    lines = matrix_page(given.title, stores[0], given.matrix) if given.matrix else None
    text = "\n".join(lines or page(given.title, stores, given.suite))
    for folder, _, name in (call.partition("=") for call in given.call):
        text = text.replace(folder, name)
    sys.stdout.write(text.rstrip() + "\n")


if __name__ == "__main__":
    main()

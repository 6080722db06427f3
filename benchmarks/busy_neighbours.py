"""What ``torchgauge run`` publishes beside busy neighbours, and how far that is from a user's own process.

``--part neighbours`` runs six models as a user would, beside 0, 1, 2 and 4 processes that never rest, in
random order, ``--rounds`` times. Every latency is to lie within 10 % of the quiet one (median of the quiet
runs) or to be marked ``unsteady``; beside one neighbour at most 20 % may be marked. ``--part bare``
alternates launches of ``torchgauge run`` (its own number of threads, and torch's) with processes that only
build the model and time it in a loop, with torch's settings and with one thread: like is to differ by at
most 2 %.

Each measurement is a line of the file that ``--into`` names, and the tables are made of all its lines, so a
long benchmark may be run in pieces. A store is made for each run in a temporary folder and removed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

MODELS = (
    "timm/resnet18",
    "timm/lcnet_050",
    "timm/regnety_002",
    "huggingface/BertForMaskedLM",
    "huggingface/DistillGPT2",
    "huggingface/ElectraForCausalLM",
)
NEIGHBOURS = (0, 1, 2, 4)
NEAR, PARITY, MOST_MARKED = 0.10, 0.02, 0.20
BARE_S = 3.0
QUICK = ("--no-memory-probe", "--no-warm-compile", "--no-calibration")
CHOSEN = ("OMP_", "GOMP_", "KMP_", "MKL_", "MALLOC_")
"""Beginnings of variables that would be no default."""


def main() -> None:
    """Measure what is asked for, then print the tables of everything in the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("neighbours", "bare", "report"), default="report")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--into", type=Path, default=Path("busy-neighbours.jsonl"))
    parser.add_argument("--step", metavar="MODEL", help="(the bare process itself)")
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(bare_loop(options.step, options.threads)))
        return
    models = tuple(options.models.split(","))
    parts = {"neighbours": beside_neighbours, "bare": beside_bare, "report": lambda *_: iter(())}
    with options.into.open("a", encoding="utf-8") as file:
        for line in parts[options.part](models, options.rounds):
            print(json.dumps({**line, "load_1min": round(os.getloadavg()[0], 2)}), file=file, flush=True)
    lines = [json.loads(text) for text in options.into.read_text(encoding="utf-8").splitlines()]
    report([line for line in lines if line["part"] == "neighbours"], neighbour_table)
    report([line for line in lines if line["part"] == "bare"], bare_table)


# --- measuring -------------------------------------------------------------------------------


def beside_neighbours(models: tuple[str, ...], rounds: int) -> Iterator[dict[str, object]]:
    """One run of all models beside each number of neighbours, in random order, ``rounds`` times."""
    for _ in range(rounds):
        for count in random.sample(NEIGHBOURS, len(NEIGHBOURS)):
            began = time.perf_counter()
            with neighbours(count):
                rows = published(models)
            seconds = round(time.perf_counter() - began, 1)
            yield {"part": "neighbours", "neighbours": count, "seconds": seconds, "rows": rows}


def beside_bare(models: tuple[str, ...], rounds: int) -> Iterator[dict[str, object]]:
    """Launches of each kind for each model, in random order, ``rounds`` times."""
    own = os.process_cpu_count() if hasattr(os, "process_cpu_count") else len(os.sched_getaffinity(0))
    for _ in range(rounds):
        for model in random.sample(models, len(models)):
            found: dict[str, object] = {}
            for kind in random.sample(("ours", f"ours {own}", "bare", "bare 1"), 4):
                if kind.startswith("ours"):
                    extra = ("--threads", str(own)) if kind != "ours" else ()
                    found[kind] = published((model,), extra)[model]
                else:
                    found[kind] = bare_process(model, 1 if kind == "bare 1" else 0)
            yield {"part": "bare", "model": model, "own": own, "found": found}


def published(models: tuple[str, ...], extra: tuple[str, ...] = ()) -> dict[str, dict[str, object]]:
    """What a run of ``models`` publishes of each."""
    from torchgauge.results import journal
    from torchgauge.results.store import Store

    with tempfile.TemporaryDirectory() as folder:
        words = ("run", *models, "--device", "cpu", "--config", "eager", *QUICK, *extra, "--store", folder)
        subprocess.run(
            [sys.executable, "-m", "torchgauge.cli.main", *words],
            env=defaults(),
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        store = Store.open(Path(folder))
        rows = [row for run in store.run_ids() for row in journal.results(store.run(run).journal_path)]
    return {f"{row.case.workload.suite}/{row.case.workload.model}": facts_of(row) for row in rows}


def facts_of(row: object) -> dict[str, object]:
    """What counts of one row: its latency with interval, its blocks, whether and why it is unsteady."""
    from torchgauge.records import Modifier, Result

    assert isinstance(row, Result)
    latency = next((each for each in row.summaries if each.metric == "latency"), None)
    sizes = {each.metric: len(each.samples) for each in row.measurements}
    facts = dict(row.facts)
    return {
        "status": row.status.value,
        "latency": latency.median if latency else None,
        "low": latency.low if latency else None,
        "high": latency.high if latency else None,
        "blocks": sizes.get("latency", 0),
        "left_out": sizes.get("latency_contended", 0),
        "threads": facts.get("threads"),
        "others_cores": facts.get("others_cores"),
        "unsteady": facts.get(Modifier.UNSTEADY.value, "") if Modifier.UNSTEADY in row.modifiers else "",
    }


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """``count`` processes that never rest."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def defaults() -> dict[str, str]:
    """The environment without what would choose threads, spinning or memory."""
    return {name: value for name, value in os.environ.items() if not name.startswith(CHOSEN)}


def bare_process(model: str, threads: int) -> dict[str, object]:
    """What a process of its own measures, without anything of the harness's."""
    command = [sys.executable, __file__, "--step", model, "--threads", str(threads)]
    text = subprocess.check_output(command, env=defaults(), text=True, stderr=subprocess.DEVNULL)
    found: dict[str, object] = json.loads(text)
    return found


def bare_loop(name: str, threads: int) -> dict[str, object]:
    """The median wall time of a step as a user would take it: build, warm up, loop."""
    import torch

    from torchgauge.harness.planning.plan import load_suites
    from torchgauge.registry import resolve
    from torchgauge.suites.catalog import workload_for

    suite_name, model = name.split("/")
    suite = load_suites([suite_name])[suite_name]
    entry = next(each for each in suite.models() if each.name == model)
    built = resolve(suite.builder)(workload_for(suite_name, entry, "inference"), entry.recipe)
    if threads:
        torch.set_num_threads(threads)
    times: list[float] = []
    with torch.no_grad():
        warm = time.perf_counter() + BARE_S / 3
        while time.perf_counter() < warm:
            built.module(*built.args, **built.kwargs)
        end = time.perf_counter() + BARE_S
        while time.perf_counter() < end:
            began = time.perf_counter()
            built.module(*built.args, **built.kwargs)
            times.append(time.perf_counter() - began)
    return {"latency": median(times), "blocks": len(times), "threads": torch.get_num_threads()}


# --- judging ---------------------------------------------------------------------------------


def report(lines: list[dict], table) -> None:
    """Print a table of ``lines`` and the machine, where there are any."""
    if lines:
        loads = [line["load_1min"] for line in lines]
        machine = f"{platform.machine()}, {os.cpu_count()} cores"
        print(f"\n{machine}; {len(lines)} lines, load {min(loads)} to {max(loads)}")
        table(lines)


def neighbour_table(lines: list[dict]) -> None:
    """By number of neighbours: how far from quiet, how many are marked, and what misses the goal."""
    quiet = quiet_latencies(lines)
    print(
        "neighbours | latencies | marked | unmarked beyond 10 % | worst unmarked | worst of all | s per run"
    )
    for count in sorted({line["neighbours"] for line in lines}):
        some = [line for line in lines if line["neighbours"] == count]
        rows = [
            (model, row)
            for line in some
            for model, row in line["rows"].items()
            if row["latency"] and model in quiet
        ]
        off = [(abs(row["latency"] / quiet[model] - 1), row["unsteady"]) for model, row in rows]
        plain = [error for error, unsteady in off if not unsteady]
        marked = len(off) - len(plain)
        cells = (
            str(count),
            str(len(off)),
            f"{marked} ({marked / max(1, len(off)):.0%})",
            str(sum(error > NEAR for error in plain)),
            f"{max(plain, default=0):.1%}",
            f"{max((error for error, _ in off), default=0):.1%}",
            f"{median(line['seconds'] for line in some):.0f}",
        )
        print(" | ".join(cells))
        for model, row in rows:
            if not row["unsteady"] and abs(row["latency"] / quiet[model] - 1) > NEAR:
                print(f"  {model}, quiet {quiet[model] * 1e3:.1f} ms: {row}")


def quiet_latencies(lines: list[dict]) -> dict[str, float]:
    """By model the median over the runs beside no neighbour, of what is not marked where there is any."""
    found: dict[str, list[dict]] = {}
    for line in lines:
        for model, row in line["rows"].items() if line["neighbours"] == 0 else ():
            found.setdefault(model, []).extend([row] if row["latency"] else [])
    steady = {model: [row for row in rows if not row["unsteady"]] or rows for model, rows in found.items()}
    return {model: median(row["latency"] for row in rows) for model, rows in steady.items() if rows}


def bare_table(lines: list[dict]) -> None:
    """By model: the median over launches of each kind over its pair, and the range of the bare launches."""
    own = lines[0]["own"]
    kinds = (("ours", "bare 1"), (f"ours {own}", "bare"), ("ours", "bare"))
    print("model | launches | bare ms (range) | " + " | ".join(" / ".join(kind) for kind in kinds))
    every: dict[tuple[str, str], list[float]] = {kind: [] for kind in kinds}
    for model in sorted({line["model"] for line in lines}):
        found = [line["found"] for line in lines if line["model"] == model]
        bare = [each["bare"]["latency"] * 1e3 for each in found]
        for first, second in kinds:
            ratios = (each[first]["latency"] / each[second]["latency"] for each in found)
            every[first, second].append(median(ratios))
        cells = " | ".join(f"{ratios[-1]:.3f}" for ratios in every.values())
        print(f"{model} | {len(found)} | {median(bare):.2f} ({min(bare):.2f} to {max(bare):.2f}) | {cells}")
    for kind, ratios in every.items():
        near = sum(abs(ratio - 1) <= PARITY for ratio in ratios)
        print(f"{' / '.join(kind)}: within {PARITY:.0%} in {near} of {len(ratios)} models")


if __name__ == "__main__":
    main()

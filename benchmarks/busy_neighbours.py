"""What ``torchgauge run`` publishes beside busy neighbours, and how far that is from a user's own process.

``--part neighbours`` runs each of six models as a user would, beside 0, 1, 2 and 4 processes that never rest,
in random order, ``--rounds`` times. Every latency is to lie within 10 % of the quiet one (median of the quiet
runs) or to be marked ``unsteady``; beside one neighbour at most 20 % may be marked. ``--part bare``
alternates launches of ``torchgauge run`` (its own number of threads, and torch's) with processes that only
build the model and time it in a loop, with torch's settings and with one thread: like is to differ by at
most 2 %.

Each measurement is a line of the file that ``--into`` names, and the tables are made of all its lines, so a
long benchmark may be run in pieces. Each begins once the rest of the machine has used less than a tenth of a
core for a second, or after ``--calm`` seconds; what it used right before and right after is in the line, and
tables leave out lines with more than that. A store is made for each run in a temporary folder and removed.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median

from child_run import run_child

from torchgauge.devices.cpu_times import CpuTimes, allowed_cpus
from torchgauge.records import Modifier, Result
from torchgauge.results import journal
from torchgauge.results.store import Store

MODELS = (
    "timm/resnet18",
    "timm/lcnet_050",
    "timm/regnety_002",
    "huggingface/BertForMaskedLM",
    "huggingface/DistillGPT2",
    "huggingface/ElectraForCausalLM",
)
NEIGHBOURS = (0, 1, 2, 4)
NEAR, PARITY = 0.10, 0.02
BARE_S = 3.0
CALM_CORES, LOOK_S = 0.1, 1.0
"""Cores that the rest of the machine may use, and seconds for which it is looked at."""
QUICK = ("--no-memory-probe", "--no-warm-compile", "--no-calibration")
CHOSEN = ("OMP_", "GOMP_", "KMP_", "MKL_", "MALLOC_")
"""Beginnings of variables that would be no default."""
Measure = Callable[[], dict[str, object]]


def main() -> None:
    """Measure what is asked for, then print the tables of everything in the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=("neighbours", "bare", "report"), default="report")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--neighbours", default=",".join(map(str, NEIGHBOURS)))
    parser.add_argument("--into", type=Path, default=Path("busy-neighbours.jsonl"))
    parser.add_argument("--calm", type=float, default=60.0)
    parser.add_argument("--step", metavar="MODEL", help="(the bare process itself)")
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(bare_loop(options.step, options.threads)))
        return
    models = tuple(options.models.split(","))
    counts = tuple(map(int, options.neighbours.split(",")))
    parts = {
        "neighbours": partial(beside_neighbours, counts),
        "bare": beside_bare,
        "report": lambda *_: iter(()),
    }
    with options.into.open("a", encoding="utf-8") as file:
        for measure in parts[options.part](models, options.rounds):
            before = wait_for_calm(options.calm)
            line = {**measure(), "others": round(max(before, busy_cores()), 2)}
            print(json.dumps(line), file=file, flush=True)
    every = [json.loads(text) for text in options.into.read_text(encoding="utf-8").splitlines()]
    lines = [line for line in every if line["others"] <= CALM_CORES]
    print(f"{len(every) - len(lines)} of {len(every)} lines are left out: the machine was not calm")
    report([line for line in lines if line["part"] == "neighbours"], neighbour_table)
    report([line for line in lines if line["part"] == "bare"], bare_table)


# --- measuring -------------------------------------------------------------------------------


def beside_neighbours(counts: tuple[int, ...], models: tuple[str, ...], rounds: int) -> Iterator[Measure]:
    """A run of each model beside each of ``counts`` neighbours, in random order, ``rounds`` times."""

    def measure(model: str, count: int) -> dict[str, object]:
        began = time.perf_counter()
        with neighbours(count):
            row = published(model)
        seconds = round(time.perf_counter() - began, 1)
        return {"part": "neighbours", "model": model, "neighbours": count, "seconds": seconds, "row": row}

    for _ in range(rounds):
        for model in random.sample(models, len(models)):
            for count in random.sample(counts, len(counts)):
                yield partial(measure, model, count)


def beside_bare(models: tuple[str, ...], rounds: int) -> Iterator[Measure]:
    """Launches of each kind for each model, in random order, ``rounds`` times."""
    own = len(allowed_cpus())

    def measure(model: str) -> dict[str, object]:
        found: dict[str, object] = {}
        for kind in random.sample(("ours", f"ours {own}", "bare", "bare 1"), 4):
            if kind.startswith("ours"):
                found[kind] = published(model, () if kind == "ours" else ("--threads", str(own)))
            else:
                found[kind] = bare_process(model, 1 if kind == "bare 1" else 0)
        return {"part": "bare", "model": model, "own": own, "found": found}

    for _ in range(rounds):
        for model in random.sample(models, len(models)):
            yield partial(measure, model)


def wait_for_calm(seconds: float) -> float:
    """Wait until the machine is calm, or ``seconds`` have passed; the cores in use then."""
    end = time.perf_counter() + seconds
    while (busy := busy_cores()) > CALM_CORES and time.perf_counter() < end:
        pass
    return busy


def busy_cores() -> float:
    """Cores in use by anybody for the next second; nothing where the system does not tell."""
    before = CpuTimes.read()
    time.sleep(LOOK_S)
    after = CpuTimes.read()
    share = after.busy_share(before) if before is not None and after is not None else None
    return (share or 0.0) * len(allowed_cpus())


def published(model: str, extra: tuple[str, ...] = ()) -> dict[str, object]:
    """What a run of ``model`` publishes of it."""
    with tempfile.TemporaryDirectory() as folder:
        words = ("run", model, "--device", "cpu", "--config", "eager", *QUICK, *extra, "--store", folder)
        command = [sys.executable, "-m", "torchgauge.cli.main", *words]
        return run_child(command, lambda _: only_row(Path(folder)), env=defaults()).results


def only_row(folder: Path) -> dict[str, object]:
    """Return the facts of the row of the only run of the store in ``folder``, which has one."""
    store = Store.open(folder)
    (run_id,) = store.run_ids()
    (row,) = journal.results(store.run(run_id).journal_path)
    return facts_of(row)


def facts_of(row: Result) -> dict[str, object]:
    """What counts of one row: its latency with interval, its blocks, whether and why it is unsteady."""
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
    return run_child(command, json.loads, env=defaults()).results


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


def report(lines: list[dict], table: Callable[[list[dict]], None]) -> None:
    """Print a table of ``lines`` and the machine, where there are any."""
    if lines:
        print(f"\n{platform.machine()}, {len(allowed_cpus())} cores; {len(lines)} lines")
        table(lines)


def neighbour_table(lines: list[dict]) -> None:
    """By number of neighbours: how far from quiet, how many are marked, and what misses the goal."""
    quiet = quiet_latencies(lines)
    lines = [line for line in lines if line["model"] in quiet and line["row"]["latency"]]
    print(
        "neighbours | latencies | marked | unmarked beyond 10 % | worst unmarked | worst of all | s per run"
    )
    for count in sorted({line["neighbours"] for line in lines}):
        some = [line for line in lines if line["neighbours"] == count]
        off = {id(line): abs(line["row"]["latency"] / quiet[line["model"]] - 1) for line in some}
        plain = [line for line in some if not line["row"]["unsteady"]]
        beyond = [line for line in plain if off[id(line)] > NEAR]
        marked = len(some) - len(plain)
        cells = (
            str(count),
            str(len(some)),
            f"{marked} ({marked / len(some):.0%})",
            str(len(beyond)),
            f"{max((off[id(line)] for line in plain), default=0):.1%}",
            f"{max(off.values()):.1%}",
            f"{median(line['seconds'] for line in some):.0f}",
        )
        print(" | ".join(cells))
        for line in beyond:
            print(f"  {line['model']}, quiet {quiet[line['model']] * 1e3:.2f} ms: {line['row']}")


def quiet_latencies(lines: list[dict]) -> dict[str, float]:
    """By model the median over the runs beside no neighbour: those that are not marked, if there are such."""
    found: dict[str, dict[bool, list[float]]] = {}
    for line in lines:
        if line["neighbours"] == 0 and line["row"]["latency"]:
            by_mark = found.setdefault(line["model"], {True: [], False: []})
            by_mark[bool(line["row"]["unsteady"])].append(line["row"]["latency"])
    return {model: median(values[False] or values[True]) for model, values in found.items()}


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

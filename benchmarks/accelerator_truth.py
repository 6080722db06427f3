"""Compare a row's times on an accelerator with those of a bare loop with the device's own events.

``accelerator_truth.py DEVICE`` measures programs of known length (a sleeping kernel, a large product, a copy,
a hundred launches) in turns: a bare loop in a process of its own, ``torchgauge run``, the bare loop again,
``--turns`` times. The bare loop takes wall time between two synchronisations and device time between two
events, over as many steps as last 50 ms. Prints, per program, the ratio of the row's medians to the mean of
the bare loops before and after it. Exits with 1 if a ratio of ``latency`` or ``latency_device`` differs from
1 by more than 0.5 %, and by more than the bare loops differ from each other.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from child_run import run_child

SUITE = Path(__file__).with_name("accelerator_suite")
PACKAGE = Path(__file__).resolve().parent.parent / "src"
PROGRAMS = ("sleep", "matmul", "copy", "launches")
METRICS = ("latency", "latency_device", "launch_overhead")
TARGET = 0.005
BLOCK_S, WARM_S, BLOCKS = 0.05, 1.0, 30


def bare(device: str) -> dict[str, dict[str, float]]:
    """Return the medians of each program in a loop without torchgauge."""
    import torch

    sys.path.insert(0, str(SUITE))
    from accelerator_models import programs

    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    target = torch.device(device)
    backend = torch.get_device_module(target)
    medians: dict[str, dict[str, float]] = {}
    with torch.no_grad():
        for name, (program, host_inputs) in programs().items():
            inputs = tuple(tensor.to(target) for tensor in host_inputs)
            module = program.to(target).eval()
            began, count = time.perf_counter(), 0
            while time.perf_counter() - began < WARM_S:
                module(*inputs)
                backend.synchronize()
                count += 1
            steps = max(1, round(BLOCK_S / (WARM_S / count)))
            blocks = []
            for _ in range(BLOCKS):
                first, last = (backend.Event(enable_timing=True) for _ in range(2))
                backend.synchronize()
                first.record()
                start = time.perf_counter()
                for _ in range(steps):
                    module(*inputs)
                last.record()
                backend.synchronize()
                wall = (time.perf_counter() - start) / steps
                events = first.elapsed_time(last) / 1e3 / steps
                blocks.append((wall, events, wall - events))
            medians[name] = {
                metric: median(values)
                for metric, values in zip(METRICS, zip(*blocks, strict=True), strict=True)
            }
    return medians


def rows(device: str, store: Path) -> dict[str, dict[str, float]]:
    """Return the medians of each program as ``torchgauge run`` stores them."""
    from torchgauge.results.query import query
    from torchgauge.results.store import Store

    command = [sys.executable, "-m", "torchgauge.cli.main", "run", "accelerator", "--device", device]
    command += ["--models", ",".join(PROGRAMS), "--config", "eager", "--mode", "inference", "--json"]
    command += ["--store", str(store), "--no-calibration", "--no-memory-probe"]
    ended = run_child(command, lambda text: json.loads(text)["run_id"], good=(0,), env=environment())
    samples = query(Store.open(store), [], "samples", ended.results)
    models = query(Store.open(store), [], "results", ended.results).set_index("case_key")["model"]
    return {
        str(model): {metric: float(own[own["metric"] == metric]["value"].median()) for metric in METRICS}
        for model, own in samples.groupby(samples["case_key"].map(models))
    }


def environment() -> dict[str, str]:
    """Return the environment of both sides' processes, in which ``accelerator_suite`` is installed."""
    paths = [str(PACKAGE), str(SUITE), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def main() -> None:
    """Measure, print, and exit with 1 if a time differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--bare", action="store_true", help="print one bare loop's medians (used inside)")
    arguments = parser.parse_args()
    if arguments.bare:
        print(json.dumps(bare(arguments.device)))
        return

    def bare_loop() -> dict[str, dict[str, float]]:
        command = [sys.executable, __file__, arguments.device, "--bare"]
        return run_child(command, json.loads, good=(0,), env=environment()).results

    wrong = False
    with tempfile.TemporaryDirectory() as folder:
        before = bare_loop()
        for turn in range(arguments.turns):
            ours, after = rows(arguments.device, Path(folder, f"store-{turn}")), bare_loop()
            for program in PROGRAMS:
                line: dict[str, Any] = {"turn": turn, "program": program}
                for metric in METRICS:
                    loops = (before[program][metric], after[program][metric])
                    line[metric] = {"bare": loops, "torchgauge": ours[program][metric]}
                    if metric != "launch_overhead":
                        ratio = ours[program][metric] / (sum(loops) / 2.0)
                        spread = abs(loops[0] / loops[1] - 1.0)
                        line[metric] |= {"ratio": ratio, "bare_spread": spread}
                        wrong |= not abs(ratio - 1.0) <= max(TARGET, spread)
                print(json.dumps(line), flush=True)
            before = after
    sys.exit(int(wrong))


if __name__ == "__main__":
    main()

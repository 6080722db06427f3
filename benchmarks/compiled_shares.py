"""The share of eager's work that compiled code takes over in each live model, and what is compared of it.

Each model has a process of its own: it is built, observed twice by eager and once compiled, and looked at as
the worker does after timing. A line per model: the share, the elements that are compared, the verdict.

    python benchmarks/compiled_shares.py --backend aot_eager --mode inference huggingface timm
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from dataclasses import replace
from importlib import import_module
from typing import Any

from torchgauge.records import Tolerance, Workload
from torchgauge.registry import load, resolve

LOOSE = Tolerance(1e-2, 1e-2, 3.0, "a rough check that the two runs are of one model")


def main() -> None:
    """Look at every live model of the suites."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("suites", nargs="+")
    parser.add_argument("--backend", default="aot_eager")
    parser.add_argument("--mode", default="inference")
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds for one model")
    options = parser.parse_args()
    import torch

    from torchgauge.suites.torchvision_schemas import define_missing_schemas

    torch.set_num_threads(1)
    define_missing_schemas()
    for name in options.suites:
        suite = load("torchgauge.suites", name)
        os.environ.update(suite.environment)
        for module in suite.preload:
            import_module(module)
        live = [each for each in suite.models() if "standard" in each.tiers and each.framework == "torch"]
        for entry in live:
            if options.mode in entry.batch:
                _fork(suite, entry, options)


def _fork(suite: Any, entry: Any, options: argparse.Namespace) -> None:
    began = time.monotonic()
    process = multiprocessing.get_context("fork").Process(target=_look, args=(suite, entry, options))
    process.start()
    process.join(options.timeout)
    if process.is_alive():
        process.kill()
        process.join()
    if process.exitcode:
        print(f"| `{suite.name}/{entry.name}` | ended with {process.exitcode} |", flush=True)
    print(f"<!-- {time.monotonic() - began:.0f} s -->", flush=True)


def _look(suite: Any, entry: Any, options: argparse.Namespace) -> None:
    import torch

    from torchgauge.harness.worker import compilation, compiled_share
    from torchgauge.harness.worker.accuracy import compare
    from torchgauge.harness.worker.observer import Observer
    from torchgauge.harness.worker.subjects import make_subject
    from torchgauge.suites.outputs import elements

    session = load("torchgauge.devices", "cpu").session
    session = resolve(session)("cpu", 0)
    workload = Workload(
        suite.name, entry.name, options.mode, batch=entry.batch[options.mode], shape=entry.shape, size="small"
    )
    built = resolve(suite.builder)(workload, dict(entry.recipe))
    scenario: Any = import_module(f"torchgauge.harness.scenarios.{options.mode}_steps")
    scenario.enter()
    subject = make_subject(built, workload, session, torch.device("cpu"))
    observer = Observer(scenario, subject)
    eager, again = observer.observe(), observer.observe()
    call = torch.compile(subject.module, backend=options.backend)
    found = observer.observe(call)
    first, second = observer.complete(eager, found)
    verdict = compare(first, second, None, LOOSE, own_scale=False)
    same = compare(*observer.complete(eager, again), None, LOOSE, own_scale=False)

    def step(run: Any) -> Any:
        return scenario.step(replace(subject, call=compiled_share.marked(run, compiled_share.MODEL)))

    share = compiled_share.look(step(call), step(subject.module), session)
    counts = compilation.counters()
    shown = share if isinstance(share, str) else f"{share:.4f}"
    print(
        f"| `{suite.name}/{entry.name}` | {shown} | {counts.graphs} | {counts.breaks} | {elements(eager):,} |"
        f" {'right' if verdict.ok and same.ok else verdict.detail or same.detail} |"
        f" {'writes' if observer.writes else ''} |",
        flush=True,
    )


if __name__ == "__main__":
    main()

"""Whether rows of attention agree with what the peers' own ways of timing give, in one run and in turns.

A peer is a way of timing and what it times. PyTorch's ``benchmarks/transformer`` (``sdpa.py``,
``attention_bias_benchmarks.py``, ``score_mod.py``) times one call of ``scaled_dot_product_attention``, or of
``torch.compile(flex_attention)``, after five others: with ``torch.utils.benchmark``'s adaptive timer, or with
Triton's ``do_bench``. The scripts name a GPU and need Triton, so their ways are restated; for ``do_bench``
stands the function that inductor times with on the host.
transformers' ``benchmark_v2`` reads the clock around one call, twenty times. Ours times the call of the suite
``features``, prepared by the backend, in the worker's rounds.

Each round times every case in every way, in random order; the ratio of medians is taken round by round.
Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import time
import warnings
from statistics import median

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"  # torch's timer synchronises whatever registered itself

import torch
from torch._inductor.runtime.benchmarking import Benchmarker
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.benchmark import Timer

from torchgauge.devices.cpu import DEVICE
from torchgauge.harness.backends.backend import backend_named
from torchgauge.harness.backends.prepared import BackendSession, prepare
from torchgauge.harness.planning.configurations import bundled
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.harness.worker.series import Series
from torchgauge.harness.worker.stopping import interval_rank
from torchgauge.harness.worker.timing import measure, warm_up
from torchgauge.records import RunSettings, Workload
from torchgauge.registry import resolve
from torchgauge.suites.features.networks import build

LIMIT = 0.03
SIZES = {"heads": 8, "head_width": 64, "seq": 512}
CASES = (
    ("sdpa", "none", "float32"),
    ("sdpa", "causal", "float32"),
    ("sdpa", "bool", "float32"),
    ("sdpa", "causal", "bfloat16"),
    ("flex", "noop", "float32"),
    ("flex", "causal", "float32"),
)


def adaptive(step):
    """Five calls, then torch's adaptive timer for a tenth of a second at least; its median in seconds."""
    for _ in range(5):
        step()
    return Timer("step()", globals={"step": step}).adaptive_autorange(min_run_time=0.1).median


def one_by_one(step):
    """What inductor times candidates with on the host; the median in seconds."""
    return Benchmarker().benchmark_cpu(step) * 1e-3


def twenty(step):
    """The clock around one call, twenty times after five; the median in seconds."""
    for _ in range(5):
        step()
    walls = []
    for _ in range(20):
        began = time.perf_counter()
        step()
        walls.append(time.perf_counter() - began)
    return median(walls)


def ours(step, session, budget_s):
    """The median of a row: the worker's warm-up and rounds of the one call; seconds."""
    settings = RunSettings(measure_budget_s=budget_s, warmup_budget_s=budget_s, quiet_wait_s=0.0)
    series = Series("ours", step, settled=True)
    warm_up(series, session, settings)
    measure([series], session, settings)
    return median(series.wall)


def calls(kind, mask, dtype, session):
    """The suite's call as its backend prepares it, and the peer's, with the same inputs."""
    shape = tuple(sorted({**SIZES, "mask": mask}.items()))
    workload = Workload("features", f"attention.{kind}-peer", "inference", dtype, shape=shape)
    built = build(workload, {})
    number = getattr(torch, dtype)
    module = built.module.to(number)
    args = tuple(each.to(number) for each in built.args)
    if kind == "sdpa":
        mine = lambda: module(*args)  # noqa: E731  the scenario's step is such a lambda
        told = {"is_causal": mask == "causal", "attn_mask": module.dense}
        return mine, lambda: scaled_dot_product_attention(*args, **told)
    configuration = bundled()["flex"].configuration
    subject = Subject(module, module, args, {}, None, session, 0)
    preparing = BackendSession(session, lambda call: lambda: call(*args))
    made = prepare(backend_named("flex"), subject, configuration, preparing)
    seen = (lambda b, h, q, k: q >= k) if mask == "causal" else None
    blocks = create_block_mask(seen, 1, 1, SIZES["seq"], SIZES["seq"], "cpu") if seen else None
    compiled = torch.compile(flex_attention, dynamic=False)
    return lambda: made.call(*args), lambda: compiled(*args, None, blocks)


def interval(ratios):
    """Median ratio with its 95 % interval, by order statistics."""
    logs, rank = sorted(map(math.log, ratios)), interval_rank(len(ratios), 0.95)
    low, high = (logs[rank - 1], logs[-rank]) if rank else (-math.inf, math.inf)
    return [round(math.exp(each), 4) for each in (median(logs), low, high)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=120, help="of rounds, after all is compiled")
    parser.add_argument("--budget-s", type=float, default=0.25, help="of ours, for a case of a round")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # as torch.utils.benchmark does
    torch.set_grad_enabled(False)
    session = resolve(DEVICE.session)(DEVICE.name, 0)
    ways = {"adaptive": adaptive, "one by one": one_by_one, "twenty": twenty}
    pairs = {case: calls(*case, session) for case in CASES}
    found = {case: {way: [] for way in ways} for case in CASES}
    seconds = {case: [] for case in CASES}
    order, until = random.Random(0), time.perf_counter() + given.seconds
    while time.perf_counter() < until:
        for case in order.sample(CASES, len(CASES)):
            walls = {}
            for way in order.sample(["ours", *ways], len(ways) + 1):
                mine, theirs = pairs[case]
                walls[way] = ours(mine, session, given.budget_s) if way == "ours" else ways[way](theirs)
            seconds[case].append(walls["ours"])
            for way in ways:
                found[case][way].append(walls["ours"] / walls[way])
    rows = [
        {
            "case": " ".join(case),
            "ours_ms": round(median(seconds[case]) * 1e3, 4),
            **{way: interval(ratios) for way, ratios in found[case].items()},
        }
        for case in CASES
    ]
    off = {way: max(abs(row[way][0] - 1) for row in rows) for way in ways}
    print(
        json.dumps(
            {
                "torch": torch.__version__,
                "processor": platform.processor() or platform.machine(),
                "rounds": len(seconds[CASES[0]]),
                "most_off": {way: round(value, 4) for way, value in off.items()},
                "limit": LIMIT,
                "met": {way: value <= LIMIT for way, value in off.items()},
                "rows": rows,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()

"""Whether rows of suite ``quant`` agree with torchao's own way to measure, in one run and in turns.

The peer quantises the same layers with ``quantize_``, compiles them, and lets ``torch.utils.benchmark`` take
the median of adaptive blocks, as torchao's micro benchmarks do. Ours is what the backend prepares, in the
worker's rounds. Each round times each once, in random order, and the ratio of medians is taken round by
round. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
from copy import deepcopy
from statistics import median

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch
from attention_peers import LIMIT, interval, ours
from torch.utils.benchmark import Timer
from torchao.quantization import quantize_

from torchgauge.devices.cpu import DEVICE
from torchgauge.harness.backends.backend import backend_named
from torchgauge.harness.backends.prepared import BackendSession, prepare
from torchgauge.harness.planning.configurations import configuration
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.records import Workload
from torchgauge.registry import resolve
from torchgauge.suites.quant.networks import build
from torchgauge.suites.quant.offered import found

CASES = ("inductor", "torchao-int8-weight-only", "torchao-int8-dynamic-activation-int8-weight")


def pair(name, workload, session, cache):
    """Our call and torchao's way, of the same layers."""
    built = build(workload, {})
    module, args = built.module.bfloat16(), tuple(each.bfloat16() for each in built.args)
    theirs = deepcopy(module)
    made = configuration(name)
    subject = Subject(module, module, args, {}, None, session, 0)
    preparing = BackendSession(session, lambda call: lambda: call(*args), cache=cache)
    call = prepare(backend_named(made.backend), subject, made, preparing).call
    call = subject.run_by(call).call
    if name != "inductor":
        quantize_(theirs, found(name.removeprefix("torchao-")).kind())
    compiled = torch.compile(theirs)
    return lambda: call(*args), lambda: compiled(*args)


def adaptive(step, budget_s):
    """The median of torch's own timer, as torchao reads it; seconds."""
    return Timer(stmt="step()", globals={"step": step}).blocked_autorange(min_run_time=budget_s).median


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--budget-s", type=float, default=0.3, help="of each way, for a case of a round")
    parser.add_argument("--rows", type=int, default=1, help="M of the product")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    session = resolve(DEVICE.session)(DEVICE.name, 0)
    shape = (("inner", 2816), ("rows", given.rows), ("width", 1024))
    workload = Workload("quant", "linear-peer", "inference", "bfloat16", shape=shape)
    with tempfile.TemporaryDirectory() as cache:
        pairs = {name: pair(name, workload, session, cache) for name in CASES}
        for mine, theirs in pairs.values():  # what a later compilation forgot is made anew from the cache
            torch.testing.assert_close(mine(), theirs(), atol=2e-2, rtol=2e-2)
        ratios, seconds = {name: [] for name in CASES}, {name: [] for name in CASES}
        order = random.Random(0)
        for _ in range(given.rounds):
            for name in order.sample(CASES, len(CASES)):
                mine, theirs = pairs[name]
                walls = {}
                for way in order.sample(["ours", "torchao"], 2):
                    mean = ours(mine, session, given.budget_s) if way == "ours" else None
                    walls[way] = adaptive(theirs, given.budget_s) if mean is None else mean
                seconds[name].append(walls["ours"])
                ratios[name].append(walls["ours"] / walls["torchao"])
    rows = [
        {"case": name, "ours_ms": round(median(seconds[name]) * 1e3, 4), "ratio": interval(ratios[name])}
        for name in CASES
    ]
    off = max(abs(row["ratio"][0] - 1) for row in rows)
    said = {"torch": torch.__version__, "rows_M": given.rows, "rounds": given.rounds}
    print(json.dumps({**said, "most_off": round(off, 4), "limit": LIMIT, "met": off <= LIMIT, "rows": rows}))


if __name__ == "__main__":
    main()

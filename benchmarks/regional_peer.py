"""Whether rows of compile.regional agree with a plain script of torch, in one run and in turns.

The peer is what PyTorch's recipe on regional compilation does: compile the model, or each of its blocks, and
read the clock around one call. Ours is the model of the suite ``features`` that the backend prepares, in the
worker's rounds. Both have the same weights and inputs. Each round times each once, in random order, and
the ratio of medians is taken round by round. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
from statistics import median

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch
from attention_peers import LIMIT, interval, ours, twenty

from torchgauge.devices.cpu import DEVICE
from torchgauge.harness.backends.backend import backend_named
from torchgauge.harness.backends.prepared import BackendSession, prepare
from torchgauge.harness.planning.configurations import bundled
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.records import Workload
from torchgauge.registry import resolve
from torchgauge.suites.features.compile_regional import Block
from torchgauge.suites.features.networks import build

SIZES = {"blocks": 12, "width": 256, "heads": 4, "seq": 128}
CASES = ("eager", "inductor", "inductor-regional", "inductor-nested")


class Region(Block):
    """A block as a script marks it."""

    forward = torch.compiler.nested_compile_region(Block.forward)


def by_hand(name, module):
    """``module`` as a script would compile it."""
    if name == "inductor":
        return torch.compile(module)
    if name == "inductor-regional":
        for block in module.blocks:
            block.compile()
    if name == "inductor-nested":
        for block in module.blocks:
            block.__class__ = Region
        return torch.compile(module)
    return module


def pair(name, workload, session, cache):
    """Our call and the script's."""
    built, theirs = build(workload, {}), build(workload, {})
    configuration = bundled()[name].configuration
    subject = Subject(built.module, built.module, built.args, {}, None, session, 0)
    preparing = BackendSession(session, lambda call: lambda: call(*built.args), cache=cache)
    made = prepare(backend_named(configuration.backend), subject, configuration, preparing)

    def mine():
        return made.call(*built.args)

    compiled = by_hand(name, theirs.module)
    return mine, lambda: compiled(*theirs.args)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--budget-s", type=float, default=0.5, help="of ours, for a case of a round")
    parser.add_argument("--sizes", type=json.loads, default=SIZES, help="of the stack, as JSON")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    session = resolve(DEVICE.session)(DEVICE.name, 0)
    workload = Workload(
        "features", "compile.regional-peer", "inference", "float32", shape=tuple(sorted(given.sizes.items()))
    )
    with tempfile.TemporaryDirectory() as cache:
        pairs = {name: pair(name, workload, session, cache) for name in CASES}
        for mine, theirs in pairs.values():  # what a later compilation forgot is made anew from the cache
            torch.testing.assert_close(mine(), theirs(), atol=1e-4, rtol=1e-4)
        found = {name: [] for name in CASES}
        seconds = {name: [] for name in CASES}
        order = random.Random(0)
        for _ in range(given.rounds):
            for name in order.sample(CASES, len(CASES)):
                walls = {}
                for way in order.sample(["ours", "script"], 2):
                    mine, theirs = pairs[name]
                    walls[way] = ours(mine, session, given.budget_s) if way == "ours" else twenty(theirs)
                seconds[name].append(walls["ours"])
                found[name].append(walls["ours"] / walls["script"])
    rows = [
        {"case": name, "ours_ms": round(median(seconds[name]) * 1e3, 4), "ratio": interval(found[name])}
        for name in CASES
    ]
    off = max(abs(row["ratio"][0] - 1) for row in rows)
    print(
        json.dumps(
            {
                "torch": torch.__version__,
                "rounds": given.rounds,
                "most_off": round(off, 4),
                "limit": LIMIT,
                "met": off <= LIMIT,
                "rows": rows,
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()

"""Whether rows of scenario ``generate`` agree with transformers' own ``generate``, in one run and in turns.

The peer is how transformers' benchmark script times text: ``model.generate`` with the clock around the call.
It asks a streamer for nothing, stops nowhere early, and its cache is the one that is named: a growing one
(its default) or a static one. Ours is the loop of the scenario over its static cache, timed by the worker's
rounds. Both run the same weights and prompt uncompiled and must give the same ids. Each round times each
once, in random order, and the ratio of medians is taken round by round. Prints one JSON object.

    python benchmarks/llm_peer.py
"""

from __future__ import annotations

import argparse
import json
import os
import random
from statistics import median

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from attention_peers import LIMIT, interval, ours, twenty

from torchgauge.devices.cpu import DEVICE
from torchgauge.harness.scenarios.generate_steps import enter, step
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.records import Workload
from torchgauge.registry import resolve
from torchgauge.suites.llm.models import build

MODELS = {
    "llama-tiny": ({"architecture": "llama", "tiny": True}, 1),
    "llama": ({"architecture": "llama"}, 1),
    "llama-batch8": ({"architecture": "llama"}, 8),
    "gpt2": ({"architecture": "gpt2"}, 1),
}
CACHES = ("static", "dynamic")


def calls(recipe, batch, sizes, session):
    """The scenario's step, and the peer's call by its cache."""
    workload = Workload("llm", "peer", "generate", "float32", batch, shape=tuple(sorted(sizes.items())))
    built = build(workload, recipe)
    module, prompt = built.module, built.kwargs["input_ids"]
    subject = Subject(module, module, (), built.kwargs, None, session, 0, built=built)

    def peer(cache):
        return module.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=sizes["output"],
            min_new_tokens=sizes["output"],
            do_sample=False,
            use_cache=True,
            pad_token_id=0,
            cache_implementation=cache,
        )

    return step(subject), {cache: lambda cache=cache: peer(cache) for cache in CACHES}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=13)
    parser.add_argument("--budget-s", type=float, default=0.5, help="of ours, for a case of a round")
    parser.add_argument("--prompt", type=int, default=32)
    parser.add_argument("--output", type=int, default=16)
    parser.add_argument("--models", default=",".join(MODELS))
    given = parser.parse_args()
    torch.set_num_threads(1)
    enter()
    session = resolve(DEVICE.session)(DEVICE.name, 0)
    sizes, order, rows = {"prompt": given.prompt, "output": given.output}, random.Random(0), []
    for name in given.models.split(","):
        mine, peers = calls(*MODELS[name], sizes, session)
        for cache, theirs in peers.items():
            assert torch.equal(theirs()[:, given.prompt :], mine()), (name, cache)
        found, seconds = {cache: [] for cache in CACHES}, []
        for _ in range(given.rounds):
            ways = {"ours": lambda mine=mine: ours(mine, session, given.budget_s)}
            ways |= {cache: lambda call=call: twenty(call) for cache, call in peers.items()}
            walls = {way: ways[way]() for way in order.sample(list(ways), len(ways))}
            seconds.append(walls["ours"])
            for cache in CACHES:
                found[cache].append(walls["ours"] / walls[cache])
        ratios = {f"over {cache} cache": interval(found[cache]) for cache in CACHES}
        rows.append({"model": name, "ours_ms": round(median(seconds) * 1e3, 3), **ratios})
        print(json.dumps(rows[-1]), flush=True)
    print(json.dumps({"torch": torch.__version__, "rounds": given.rounds, **sizes, "limit": LIMIT}))


if __name__ == "__main__":
    main()

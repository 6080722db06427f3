"""Whether rows of suite ``executorch`` agree with ExecuTorch's own way to measure, in one run and in turns.

The peer loads the very same file by ``executorch.runtime`` and calls ``execute`` in a loop: a few calls to
warm up, then as many as the budget takes, the clock read around each. Its number is what ExecuTorch's
benchmark apps report: the mean, and the mean of the middle 80 %. Ours is what the backend prepares, in the
worker's rounds. Each round times each once, in random order, and the ratio is taken round by round. A
generated token has a row too: ours in the scenario's loop, theirs with the same tokens in their places.
Prints a JSON object for each case when it is known, and one for all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import tempfile
import time
import warnings
from functools import partial
from importlib.metadata import version
from pathlib import Path
from statistics import median

os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"

import torch
from attention_peers import LIMIT, interval, ours
from executorch.runtime import Runtime, Verification
from torch.utils import _pytree as pytree

from torchgauge import registry
from torchgauge.devices.cpu import DEVICE
from torchgauge.harness.backends.backend import backend_named
from torchgauge.harness.backends.prepared import BackendSession, prepare
from torchgauge.harness.planning.configurations import configuration
from torchgauge.harness.scenarios.generate_steps import step
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.records import Workload
from torchgauge.registry import resolve

CASES = {
    "partly, portable": ("executorch", "partly", "executorch-portable", 32),
    "partly, XNNPACK": ("executorch", "partly", "executorch-xnnpack", 32),
    "partly, XNNPACK, 8 bits": ("executorch", "partly", "executorch-xnnpack-int8", 32),
    "lcnet_050, XNNPACK": ("timm", "lcnet_050", "executorch-xnnpack", 1),
}
TOKEN = "llama-tiny, XNNPACK, a token"
PROMPT, OUTPUT, WARM_UP = 4, 60, 5


def built_of(suite, model, batch, mode="inference", shape=()):
    """What ``suite`` builds of ``model``."""
    known = registry.load(registry.SUITES, suite)
    entry = next(each for each in known.models() if each.name == model)
    shape = tuple(sorted({**dict(entry.shape), **dict(shape)}.items()))
    workload = Workload(suite, model, mode, "float32", batch=batch, shape=shape)
    return resolve(known.builder)(workload, dict(entry.recipe))


def program_at(folder):
    """The only program below ``folder``, loaded as in ExecuTorch's examples."""
    (path,) = Path(folder).rglob("model.pte")
    return Runtime.get().load_program(path, verification=Verification.Minimal).load_method("forward")


def prepared(built, name, session, folder, step_of):
    """What the backend makes of ``built``, and its subject."""
    made = configuration(name)
    subject = Subject(built.module, built.module, built.args, built.kwargs, None, session, 0, built=built)
    preparing = BackendSession(session, partial(step_of, subject), cache=folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return prepare(backend_named(made.backend), subject, made, preparing).call, subject


def pair(case, session, folder):
    """Our call, and theirs of the same file."""
    suite, model, name, batch = CASES[case]
    built = built_of(suite, model, batch)
    run = lambda subject, call: lambda: call(*subject.args, **subject.kwargs)  # noqa: E731
    call, subject = prepared(built, name, session, folder, run)
    inputs = tuple(pytree.tree_leaves((subject.args, subject.kwargs)))
    method = program_at(folder)
    torch.testing.assert_close(pytree.tree_leaves(run(subject, call)())[0], method.execute(inputs)[0])
    return run(subject, call), partial(looped, lambda _: method.execute(inputs))


def token_pair(session, folder):
    """A generated token in the scenario's loop, and theirs: seconds of one, from a function of the budget."""
    built = built_of("llm", "llama-tiny", 1, "generate", {"prompt": PROMPT, "output": OUTPUT}.items())
    run = lambda subject, call: step(subject.run_by(call))  # noqa: E731
    call, subject = prepared(built, "executorch-xnnpack", session, folder, run)
    generation, method = step(subject.run_by(call)), program_at(folder)
    ids = torch.cat([subject.kwargs["input_ids"], generation()], dim=1)
    rows = [(ids[:, i : i + 1].contiguous(), torch.tensor([i])) for i in range(PROMPT + OUTPUT - 1)]
    found = [method.execute(each)[0][:, -1].argmax(-1) for each in rows]
    assert torch.equal(torch.stack(found[PROMPT - 1 :], dim=1), ids[:, PROMPT:])

    def ours_of(budget_s):
        generation.times.clear()
        until = time.perf_counter() + budget_s
        while not generation.times or time.perf_counter() < until:
            generation()
        return median(each.rest for each in generation.times) / (OUTPUT - 1)

    return ours_of, partial(looped, lambda i: method.execute(rows[PROMPT + i % (OUTPUT - 1)]))


def looped(call, budget_s):
    """Seconds of a call: the mean, and that of the middle 80 %."""
    for i in range(WARM_UP):
        call(i)
    walls, until = [], time.perf_counter() + budget_s
    while not walls or time.perf_counter() < until:
        began = time.perf_counter()
        call(len(walls))
        walls.append(time.perf_counter() - began)
    walls.sort()
    cut = len(walls) // 10
    middle = walls[cut : len(walls) - cut]
    return {"mean": sum(walls) / len(walls), "trimmed mean": sum(middle) / len(middle)}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--budget-s", type=float, default=0.1, help="of each way, for a case of a round")
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    session = resolve(DEVICE.session)(DEVICE.name, 0)
    said = {"torch": torch.__version__, "executorch": version("executorch"), "rounds": given.rounds}
    order, most = random.Random(0), 0.0
    for case in (*CASES, TOKEN):
        with tempfile.TemporaryDirectory() as folder:
            if case == TOKEN:
                mine, theirs = token_pair(session, folder)
            else:
                call, theirs = pair(case, session, folder)
                mine = partial(ours, call, session)
            seconds, ratios = [], {"mean": [], "trimmed mean": []}
            for _ in range(given.rounds):
                found = {}
                for way in order.sample(["ours", "theirs"], 2):
                    found[way] = (mine if way == "ours" else theirs)(given.budget_s)
                seconds.append(found["ours"])
                for name, each in ratios.items():
                    each.append(found["ours"] / found["theirs"][name])
        row = {"case": case, "ours_ms": round(median(seconds) * 1e3, 4)}
        row |= {name: interval(each) for name, each in ratios.items()}
        most = max(most, abs(row["trimmed mean"][0] - 1))
        print(json.dumps(row), flush=True)
    print(json.dumps({**said, "most_off": round(most, 4), "limit": LIMIT, "met": most <= LIMIT}))


if __name__ == "__main__":
    main()

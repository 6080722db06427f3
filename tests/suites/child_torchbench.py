"""Build and observe models of a checkout, each in a fork: prints one JSON list.

Arguments: cases as JSON lists ``[model, mode, recipe, batch, seed]``. The checkout is in the environment.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from importlib import import_module
from typing import Any

import torch
import torch._dynamo.utils

from torchgauge.devices.cpu import DEVICE
from torchgauge.harness.scenarios.scenario import implementation_for
from torchgauge.harness.suspects import Remedies
from torchgauge.harness.worker.accuracy import spread
from torchgauge.harness.worker.reference import SeedWatch, float64_reference
from torchgauge.harness.worker.subjects import make_subject
from torchgauge.harness.worker.verdicts import outcome_of
from torchgauge.records import Phase, Workload
from torchgauge.registry import resolve
from torchgauge.suites.torchbench import step_state as torchbench_state
from torchgauge.suites.torchbench.models import build
from torchgauge.suites.torchbench.suite import SUITE


def look(model: str, mode: str, recipe: dict[str, Any], batch: int, seed: int = 7) -> dict[str, Any]:
    """What becomes of one model: its notes and observations, or its outcome."""
    workload = Workload("torchbench", model, mode=mode, batch=batch, seed=seed)
    phase = Phase.BUILD
    compiled = recipe.pop("compiled", False)
    torchbench_state.MAX_ARRAY_BYTES = recipe.pop("array_bytes", torchbench_state.MAX_ARRAY_BYTES)
    try:
        built = build(workload, recipe)
        seed = torch.manual_seed(3).initial_seed()
        phase = Phase.EAGER
        scenario = import_module(implementation_for(mode, SUITE))
        scenario.enter()
        reference = float64_reference(built, workload, scenario, True)
        subject = make_subject(built, workload, SeedWatch(torch.manual_seed), "cpu")
        first, second = scenario.observe(subject), scenario.observe(subject)
        step = scenario.step(subject)
        step()
        step()
        if compiled:
            subject = replace(subject, call=torch.compile(subject.module, backend="eager"))
        third = scenario.observe(subject)
        graphs = int(torch._dynamo.utils.counters["stats"]["unique_graphs"]) if compiled else 0
        weights = [p.detach().sum().item() for p in built.module.parameters()]
    except Exception as error:  # noqa: BLE001  the outcome is what is looked at
        session = resolve(DEVICE.session)("cpu", 0)
        outcome = outcome_of(error, "case", phase, session, Remedies())
        return {
            "status": outcome.status.value,
            "cause": outcome.cause.value if outcome.cause else "",
            "reason": outcome.reason,
        }
    return {
        "status": "pass",
        "keys": list(first),
        "gap": max(spread(first, second), spread(first, third)),
        "reference": reference.name,
        "notes": list(built.notes),
        "facts": built.facts,
        "stands_for": built.stands_for,
        "items": built.items_per_step,
        "seed": seed,
        "graphs": graphs,
        "weights": weights,
        "input_sum": float(sum(value.double().sum() for value in built.args)),
        "inputs": [len(built.args), sorted(built.kwargs)],
        "training": bool(getattr(built.module, "training", False)),
        "dropout": [part.p for part in built.module.modules() if isinstance(part, torch.nn.Dropout)],
    }


def forked(case: list[Any]) -> dict[str, Any]:
    """``look`` in a process of its own."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        with os.fdopen(write, "w") as pipe:
            json.dump(look(*case), pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(text)  # type: ignore[no-any-return]


print(json.dumps([forked(json.loads(text)) for text in sys.argv[1:]]))

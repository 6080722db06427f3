"""The campaigns of a bringup's parts: those of check, ops and run, as a first look at a device needs them."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from torchgauge.harness.bringup.part import Part
from torchgauge.harness.bringup.state import Asked
from torchgauge.harness.checks.check_campaign import check_campaign
from torchgauge.harness.checks.ops_run import ops_campaign
from torchgauge.harness.interpreter.foreign_plugins import suites_of
from torchgauge.harness.interpreter.interpreter import Interpreter
from torchgauge.harness.planning.selection import Selection
from torchgauge.harness.run.campaigns import new_campaign
from torchgauge.harness.run.defaults import default_prefetch, sources_of
from torchgauge.harness.run.progress import Progress
from torchgauge.harness.run.runner import Campaign
from torchgauge.records import Deadlines, RunSettings
from torchgauge.suites.distributed.suite import SUITE as DISTRIBUTED

CASE_S = 30.0
"""Seconds that one check or operator may take: a device that hangs there hangs for good."""
PHASE_S = 90.0
"""Seconds that one phase of a model may take; each of the small ones needs a few."""
MEASURE_S = 0.3
"""Seconds for which a model is timed: the question is whether it runs, and on what, not how fast."""
MODEL_SUITES = ("toy", "timm", "huggingface")
MODES = ("inference", "training")
DTYPES = ("float32", "bfloat16", "float16", "int64")


def campaign_of(part: Part, asked: Asked, there: Interpreter, store: str, left_s: float) -> Campaign:
    """A new campaign of ``part``, which has ``left_s`` seconds; raises what planning it raises."""
    progress, threads = Progress(), asked.threads
    shared: dict[str, Any] = {
        "device": (asked.device,),
        "store": store,
        "python": asked.python or None,
        "threads": threads,
        "timeout": CASE_S,
    }
    if part is Part.CHECK:
        return check_campaign({**shared, "groups": (), "checks": asked.checks, "tier": "full"}, progress)
    if part in (Part.OPS, Part.ALL_OPS):
        return _operators(part, asked, shared, progress)
    if part is Part.COLLECTIVES:
        selection = Selection(
            suites=(DISTRIBUTED.name,), devices=(asked.device,), configurations=("eager",)
        )  # torch.compile has a question of its own
        settings = _settings(left_s, threads, 1)
    else:
        available = suites_of(there, asked.suites or MODEL_SUITES)
        named = tuple(name for name, suite in available.items() if suite.unavailable is None)
        selection = Selection(
            suites=named,
            devices=(asked.device,),
            models=asked.models,
            modes=MODES,
            configurations=("eager",),
            dtypes=("float32",),
        )
        settings = _settings(left_s, threads, default_prefetch())
    sources = sources_of(settings, {"threads"} if threads else set(), PHASE_S)
    return new_campaign(
        selection, settings, sources, store=store, progress=progress, python=asked.python or None
    )


def _operators(part: Part, asked: Asked, shared: dict[str, Any], progress: Progress) -> Campaign:
    every = part is Part.ALL_OPS
    options = {
        **shared,
        "patterns": asked.ops,
        "tier": "full" if every else "smoke",
        "dtype": ("float32",) if every else DTYPES,
        "variant": ("forward", "backward") if every else ("forward",),
        "samples": 4,
        "shard": "1/1",
        "resume": None,
    }
    return ops_campaign(options, progress)[0]


def _settings(left_s: float, threads: int | None, prefetch: int) -> RunSettings:
    usual = Deadlines()
    limits = {item.name: min(getattr(usual, item.name), PHASE_S) for item in fields(Deadlines)}
    return replace(
        RunSettings(),
        threads=threads,
        measure_budget_s=MEASURE_S,
        quiet_wait_s=0.0,
        memory_probe=False,
        warm_compile=False,
        deadlines=Deadlines(**limits),
        budget_s=left_s,
        prefetch=prefetch,
    )

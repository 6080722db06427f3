"""What only a fresh process can tell of one case: compile time with a filled cache, and peak memory.

Why one process for both: each needs one that has run nothing else, and starting the model again is what both
cost. The first call of a compiled case is the warm compilation; memory is that of the steps after it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

from torchgauge.devices.session import DeviceSession
from torchgauge.harness.events import EventWriter
from torchgauge.harness.job import Job
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.harness.turn import Turn
from torchgauge.harness.worker import compilation
from torchgauge.harness.worker.case_measurements import single
from torchgauge.harness.worker.libraries import import_builder
from torchgauge.harness.worker.memory import RssProbe, peak_of_steps
from torchgauge.records import Measurement, Phase
from torchgauge.suites.suite import BuiltWorkload


def probe_afresh(job: Job, session: DeviceSession, events: EventWriter) -> None:
    """Build the one case of ``job``, time its first step, and report the peak of the steps after it."""
    if job.group is None:
        raise ValueError("a fresh process needs a group")
    planned = job.group.cases[0]
    events.phase(Phase.BUILD, planned.case.key)
    build = import_builder(job)
    rss = RssProbe()
    built: BuiltWorkload = build(job.group.workload, job.group.recipe)
    step, subject = (built.module, None) if built.framework == "python" else _torch_step(job, session, built)
    compiled = planned.case.configuration.compiled
    events.phase(Phase.COMPILE if compiled else Phase.WARMUP, planned.case.key)
    with Turn(job.turn, events).held():
        seconds = compilation.timed_call(step, session)
        found = _compilation(seconds) if compiled and job.settings.warm_compile else []
        if job.settings.memory_probe:
            events.phase(Phase.MEASURE, planned.case.key)
            found.append(peak_of_steps(step, session, rss, subject))
    events.emit("fresh", case=planned.case.key, measurements=found)
    events.phase(Phase.DONE, planned.case.key)


def _compilation(seconds: float) -> list[Measurement]:
    hits = compilation.counters().cache_hits
    return [
        single("compile_warm", seconds, "first call of a new process, filled cache"),
        single("cache_hits", hits, "fxgraph and autograd cache"),
    ]


def _torch_step(job: Job, session: DeviceSession, built: BuiltWorkload) -> tuple[Callable[[], Any], Subject]:
    from torchgauge.harness.worker.subjects import make_subject

    assert job.group is not None
    workload = job.group.workload
    scenario = built.steps or import_module(job.scenario)
    scenario.enter()
    subject = make_subject(built, workload, session, session.torch_device)
    configuration = job.group.cases[0].case.configuration
    compilation.use_cache(job.kept or job.cache, configuration)
    call = compilation.compiled(subject.module, configuration)
    return scenario.step(replace(subject, call=call)), subject

"""What only a fresh process can tell of one case: compile time with a filled cache, and peak memory.

Why one process for both: each needs one that has run nothing else, and starting the model again is what both
cost. The first call of a compiled case is the warm compilation; memory is that of the steps after it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from torchgauge.devices.session import DeviceSession
from torchgauge.harness.backends.backend import backend_named
from torchgauge.harness.backends.prepared import BackendSession, Prepared, prepare
from torchgauge.harness.events import EventWriter
from torchgauge.harness.job import Job
from torchgauge.harness.scenarios.scenario import Subject
from torchgauge.harness.timing_lock_client import TimingLockClient
from torchgauge.harness.worker.libraries import import_builder
from torchgauge.harness.worker.memory import RssProbe, peak_of_steps
from torchgauge.records import Phase
from torchgauge.suites.suite import BuiltWorkload


def probe_afresh(job: Job, session: DeviceSession, events: EventWriter) -> None:
    """Build the one case of ``job``, prepare it, and report the peak of the steps after its first."""
    if job.group is None:
        raise ValueError("a fresh process needs a group")
    planned = job.group.cases[0]
    events.phase(Phase.BUILD, planned.case.key)
    build = import_builder(job)
    rss = RssProbe()
    built: BuiltWorkload = build(job.group.workload, job.group.recipe)
    subject, step_of = _stepped(job, session, built)
    backend = backend_named(planned.case.configuration.backend)
    stage = partial(events.stage, planned.case.key)
    given = BackendSession(session, step_of, cache=job.cache, kept=job.kept, fresh=True, stage=stage)
    compiled = planned.case.configuration.compiled
    events.phase(Phase.COMPILE if compiled else Phase.WARMUP, planned.case.key)
    with TimingLockClient(job.timing_lock, events).held():
        made = (
            Prepared(built.module)
            if subject is None
            else prepare(backend, subject, planned.case.configuration, given)
        )
        with made.context():
            step = step_of(made.call)
            if not given.called:
                step()
            found = [*made.measurements] if job.settings.warm_compile else []
            if job.settings.memory_probe:
                events.phase(Phase.MEASURE, planned.case.key)
                stepped = subject.run_by(made.call) if subject is not None else None
                found.append(peak_of_steps(step, session, rss, stepped))
        made.close()
    events.emit(
        "fresh",
        case=planned.case.key,
        measurements=found,
        degraded=made.degraded if job.settings.warm_compile else [],
        facts=made.evidence if job.settings.warm_compile else {},
    )
    events.phase(Phase.DONE, planned.case.key)


def _stepped(
    job: Job, session: DeviceSession, built: BuiltWorkload
) -> tuple[Subject | None, Callable[[Callable[..., Any]], Callable[[], Any]]]:
    """The subject of ``built``, None where it needs no torch, and what makes its step with another call."""
    if built.framework == "python":
        return None, lambda call: call
    from torchgauge.harness.worker.subjects import make_subject

    assert job.group is not None
    scenario = import_module(job.scenario)
    scenario.enter()
    subject = make_subject(built, job.group.workload, session, session.torch_device)
    if memory_format := job.group.cases[0].case.configuration.memory_format:
        from torchgauge.harness.worker.memory_format import lay_out

        lay_out(subject, memory_format)
    step = scenario.step if hasattr(scenario, "step") else lambda one: partial(scenario.observe, one)
    return subject, lambda call: step(subject.run_by(call))

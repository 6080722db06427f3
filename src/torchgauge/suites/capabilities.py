"""What a model can do, by name: a scenario says what it needs, and a builder sees what is wanted of it.

Why not modes: a builder that lists the modes that it knows is closed to every scenario that comes later.
"""

from __future__ import annotations

from torchgauge import registry
from torchgauge.errors import InfrastructureError
from torchgauge.records import Workload
from torchgauge.suites.suite import ModelEntry

SCENARIOS = "torchgauge.scenarios"
FORWARD = "forward"
"""One forward pass; every model can."""
LOSS = "loss"
"""A scalar to differentiate, of the outputs of a forward pass in training mode."""
GENERATE = "generate"
"""Text, token by token: see ``harness/scenarios/generate_steps.py``."""
COLLECTIVE = "collective"
"""A call in which several processes take part: see ``harness/scenarios/collective_steps.py``."""
OFFERED_BY = {LOSS: "training", FORWARD: "inference"}
"""The mode in a suite's data file that says that a model has a capability, and with which batch."""


def needs_of(mode: str) -> frozenset[str] | None:
    """What the scenario behind ``mode`` needs of any model; None where only models that list it have it.

    A broken one is planned as if it needed a forward pass, so that rows say what is wrong with it. Raises
    :class:`UnknownNameError`.
    """
    try:
        needs = getattr(registry.load(SCENARIOS, mode), "needs", None)
    except InfrastructureError:
        return frozenset({FORWARD})
    return None if needs is None else frozenset(needs)


def wanted(workload: Workload) -> frozenset[str]:
    """What a builder is to make its model able to do; raises :class:`UnknownNameError`."""
    return needs_of(workload.mode) or frozenset({FORWARD})


def offered_as(entry: ModelEntry, mode: str) -> str | None:
    """The mode of ``entry`` whose batch the scenario behind ``mode`` takes; None where it cannot run it.

    A model that lists the mode says its batch; any other lends that of the mode that shows what is needed.
    """
    if mode in entry.batch:
        return mode
    if entry.framework != "torch":  # what needs no torch is called, and nothing else
        return None
    needs = needs_of(mode) if mode in registry.names(SCENARIOS) else None
    if not needs or any(OFFERED_BY.get(each, each) not in entry.batch for each in needs):
        return None
    return next(OFFERED_BY.get(each, each) for each in (*OFFERED_BY, *sorted(needs)) if each in needs)

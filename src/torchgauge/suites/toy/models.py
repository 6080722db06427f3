"""Build the toy models in the worker; the two python models need no torch and measure the harness itself."""

from __future__ import annotations

import random
from collections.abc import Callable

from torchgauge.records import Workload
from torchgauge.suites.suite import BuiltWorkload


def build(workload: Workload, recipe: dict[str, object]) -> BuiltWorkload:  # noqa: ARG001  # a toy needs no recipe
    """The toy model that ``workload`` names."""
    python = _PYTHON.get(workload.model)
    if python is not None:
        return BuiltWorkload(module=python(workload), items_per_step=workload.batch, framework="python")
    from torchgauge.suites.toy import networks as toy_networks

    return toy_networks.build(workload)


def _noop(_: Workload) -> Callable[[], int]:
    def step() -> int:
        """Do nothing: what is left is the harness."""
        return 0

    return step


def _sum(workload: Workload) -> Callable[[], float]:
    values = random.Random(workload.seed).choices(range(1000), k=64 * workload.batch)  # noqa: S311  # data, no secret

    def step() -> float:
        total = 0.0
        for value in values:
            total += value * 0.5
        return total

    return step


_PYTHON: dict[str, Callable[[Workload], Callable[[], object]]] = {"noop": _noop, "sum": _sum}

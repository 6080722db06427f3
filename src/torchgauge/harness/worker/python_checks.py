"""Checks of workloads that need no torch: the null system that shows what the harness itself costs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from torchgauge.records import Accuracy, Cause, Phase
from torchgauge.suites.suite import BuiltWorkload

if TYPE_CHECKING:
    from torchgauge.harness.worker.group_run import GroupRun


def check_python(run: GroupRun, built: BuiltWorkload) -> dict[int, Callable[[], Any]] | None:
    """Two runs must return equal values; the plan has refused compiled configurations already."""
    first, second = _call(built), _call(built)
    run.enter(Phase.ACCURACY)
    for state in run.live:
        state.accuracy = Accuracy(reference="second run", detail="equal" if first == second else "differs")
        if first != second:
            run.end_wrong(state, Cause.NONDETERMINISTIC_EAGER, f"{first!r} and then {second!r}")
    return {state.index: lambda: _call(built) for state in run.live}


def _call(built: BuiltWorkload) -> Any:
    return built.module(*built.args, **built.kwargs)

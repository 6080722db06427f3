"""A built workload made ready to run: moved to a device and a dtype, with its inputs."""

from __future__ import annotations

from typing import Any

from torchgauge.harness.outputs import move
from torchgauge.harness.scenarios.scenario import Seeded, Subject
from torchgauge.records import Workload
from torchgauge.suites.suite import BuiltWorkload


def make_subject(
    built: BuiltWorkload, workload: Workload, session: Seeded, device: Any, dtype: Any, *, module: Any = None
) -> Subject:
    """The subject of ``built`` on ``device`` in ``dtype``; ``module`` is moved instead of the built one."""
    moved = (built.module if module is None else module).to(device=device, dtype=dtype)
    return Subject(
        module=moved,
        call=moved,
        args=move(built.args, device, dtype),
        kwargs=move(built.kwargs, device, dtype),
        loss=built.loss,
        session=session,
        seed=workload.seed,
    )

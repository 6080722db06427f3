"""A built workload made ready to run: moved to a device and a dtype, with its inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torchgauge.harness.scenarios.scenario import Seeded, Subject
from torchgauge.records import AUTOCAST, Workload
from torchgauge.suites.suite import BuiltWorkload


def make_subject(
    built: BuiltWorkload,
    workload: Workload,
    session: Seeded,
    device: Any,
    *,
    dtype: Any = None,
    apart: bool = False,
) -> Subject:
    """The subject of ``built`` on ``device``, in the workload's precision or all in ``dtype``.

    One that is ``apart`` leaves the built module where it is.
    """
    autocast = autocast_of(workload, device) if dtype is None else None
    dtype = weight_dtype(workload) if dtype is None else dtype
    placed = built.place(device, dtype, apart=apart)
    return Subject(
        module=placed.module,
        call=placed.module,
        args=placed.args,
        kwargs=placed.kwargs,
        loss=built.loss,
        session=session,
        seed=workload.seed,
        autocast=autocast,
        built=built,
        kept=placed.kept,
    )


def weight_dtype(workload: Workload) -> Any:
    """The ``torch.dtype`` of weights and floating-point inputs."""
    import torch

    return torch.float32 if workload.dtype.startswith(AUTOCAST) else getattr(torch, workload.dtype)


def autocast_of(workload: Workload, device: Any) -> Callable[[], Any] | None:
    """What makes the autocast region of one step; None where the workload has none."""
    if not workload.dtype.startswith(AUTOCAST):
        return None
    import torch

    kind = torch.device(device).type
    low = getattr(torch, workload.dtype.removeprefix(AUTOCAST))
    return partial(torch.autocast, device_type=kind, dtype=low)

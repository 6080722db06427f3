"""A profiler's trace of a few more steps of a case, as Chrome and Perfetto read it. Runs in the worker."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torchgauge.devices.session import DeviceSession
from torchgauge.suites.suite import HOST

STEPS = 4
"""One that the profiler warms up in, and three that it records, each marked ``ProfilerStep#``."""


def write_trace(step: Callable[[], Any], session: DeviceSession, path: Path | None) -> None:
    """Run :data:`STEPS` steps under PyTorch's profiler and write its trace to ``path``, if that is given.

    It records the host and, for another device, each activity that this torch supports here.
    """
    from torch.profiler import ProfilerActivity, profile, schedule

    host = session.torch_device is None or session.torch_device.type == HOST
    plan = schedule(wait=0, warmup=1, active=STEPS - 1, repeat=1)
    activities = [ProfilerActivity.CPU] if host else None
    with profile(activities=activities, schedule=plan, record_shapes=True) as profiler:
        for _ in range(STEPS):
            step()
            session.synchronize()
            profiler.step()
    if path is None:
        return
    aside = path.with_name(f".{os.getpid()}-{path.name}")  # torch packs what ends with .gz
    try:
        profiler.export_chrome_trace(str(aside))
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)

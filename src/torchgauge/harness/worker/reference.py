"""The yardstick: a float64 copy of the model on the host, where it fits."""

from __future__ import annotations

import copy
import gc
import os
from dataclasses import dataclass
from typing import Any

import torch

from torchgauge.harness.worker.accuracy import nonfinite
from torchgauge.harness.worker.subjects import make_subject
from torchgauge.records import Workload
from torchgauge.suites.host import HOST
from torchgauge.suites.outputs import Observation
from torchgauge.suites.suite import BuiltWorkload

COPIES = 6
"""A float64 training observation holds about six copies of the parameters at eight bytes each."""


@dataclass(frozen=True)
class Reference:
    """What results are compared with: ``fp64`` on the host, and eager on the host in the same dtype.

    ``host`` is None where the device under test is the host itself.
    """

    name: str
    fp64: Observation | None
    host: Observation | None


class HostSession:
    """The part of a device session that a reference run needs."""

    def seed(self, seed: int) -> None:
        """Seed the host's generator."""
        torch.manual_seed(seed)


def float64_reference(built: BuiltWorkload, workload: Workload, scenario: Any, on_host: bool) -> Reference:
    """Run the reference of ``workload``; says in ``name`` which one it is."""
    host = None
    if not on_host:
        host = _observe(built, workload, scenario)
    if not _fits(built.module):
        alone = "eager alone" if on_host else f"{workload.dtype} eager on the host"
        return Reference(f"{alone}: a float64 copy does not fit", None, host)
    try:
        fp64 = _observe(built, workload, scenario, torch.float64)
    except (RuntimeError, TypeError, NotImplementedError) as error:
        first = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        return Reference(f"eager alone: no float64 run ({first})", None, host)
    if nonfinite(fp64):
        return Reference("eager alone: the float64 run is not finite", None, host)
    return Reference("float64 on the host", fp64, host)


def _observe(built: BuiltWorkload, workload: Workload, scenario: Any, dtype: Any = None) -> Observation:
    module = None if hasattr(built.steps, "place") else copy.deepcopy(built.module)
    subject = make_subject(built, workload, HostSession(), HOST, dtype=dtype, module=module)
    seen: Observation = scenario.observe(subject)
    del subject
    gc.collect()
    return seen


def _fits(module: Any) -> bool:
    count = sum(p.numel() for p in module.parameters())
    try:
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return True
    return bool(count * 8 * COPIES < 0.8 * free)

"""A store as vendors have them: two devices with checks, operators and models, in one folder or in two."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # the runner imports test files by path

import stored_runs as stored

from torchgauge.records import (
    Case,
    Cause,
    Configuration,
    DeviceTarget,
    Failure,
    Modifier,
    Result,
    Status,
    Workload,
)
from torchgauge.results.store import Store

EAGER = Configuration("eager", "eager")


def check(name: str, device: str, status: Status = Status.PASS, **changes: Any) -> Result:
    """A row of one check."""
    return _row(Workload("conformance", name, "check"), device, status, **changes)


def op(
    name: str, device: str, status: Status = Status.PASS, dtype: str = "float32", variant: str = "forward",
    **changes: Any,
) -> Result:  # fmt: skip
    """A row of one operator in one variant and dtype."""
    return _row(Workload("ops", name, variant, dtype), device, status, **changes)


def model(name: str, device: str, status: Status = Status.PASS, **changes: Any) -> Result:
    """A row of one toy model in inference."""
    return _row(Workload("toy", name), device, status, **changes)


def _row(workload: Workload, device: str, status: Status, **changes: Any) -> Result:
    case = Case(workload, EAGER, DeviceTarget(device))
    return stored.result(case, latency=None, status=status, **changes)


def host_rows(device: str = "host") -> list[Result]:
    """The device that has everything but one check, and to which a stream does not apply."""
    beside = {"reason": "not applicable to the host: it has no streams"}
    return [
        check("tensor.copy", device),
        check("tensor.views", device),
        check("stream.make", device, Status.UNSUPPORTED, **beside),
        check("optim.capturable", device, Status.UNSUPPORTED, reason="the host captures nothing"),
        op("add", device),
        op("add", device, dtype="bfloat16"),
        op("conv", device),
        model("mlp", device),
    ]


def other_rows(device: str = "other") -> list[Result]:
    """The device that lacks a view and a convolution, and on which a model falls back."""
    missing = Failure("NotImplementedError", "no kernel", missing_op="aten::conv", fingerprint="ff00")
    return [
        check("tensor.copy", device),
        check("tensor.views", device, Status.ERROR, reason="a view is a copy", expected=Status.PASS),
        check("stream.make", device),
        check("optim.capturable", device, Status.CRASH, cause=Cause.SIGNAL, reason="SIGSEGV"),
        op("add", device),
        op("add", device, Status.FAIL_ACCURACY, "bfloat16", cause=Cause.TOLERANCE, reason="sample 1 differs"),
        op("conv", device, Status.ERROR, failure=missing, reason="no kernel for aten::conv"),
        model("mlp", device, modifiers=(Modifier.DEGRADED,), facts=FALLBACK),
    ]


FALLBACK = (
    ("degraded", "1 operator (12% of the step) ran on the host: aten::topk"),
    ("fallback_ops", 1),
    ("fallback_calls", 3),
    ("fallback_share", 0.12),
    ("fallback_names", "aten::topk"),
)


def publish(path: Path, run_id: str, results: list[Result], torch: str = "2.9.0", **changes: Any) -> Path:
    """Publish one run in the store at ``path``; ``days`` moves it after the first one."""
    days = changes.pop("days", 0.0)
    at = stored.BEGIN + days * stored.DAY
    where = [
        stored.environment(device, torch, **changes)
        for device in dict.fromkeys(each.case.device.name for each in results)
    ]
    moved = [replace(each, started_at=at) for each in results]
    stored.run(Store.open(path, create=True), run_id, moved, where, at=at)
    return path


def two_stores(folder: Path) -> list[str]:
    """A store of each device."""
    here = publish(folder / "here", "run-a", host_rows())
    there = publish(folder / "there", "run-b", other_rows(), extension__x="torch-other 1.2", days=3)
    return [str(here), str(there)]

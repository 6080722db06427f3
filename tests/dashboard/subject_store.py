"""Stores with checks, operators, new failures and findings of trend, and a corpus of hostile text."""

from __future__ import annotations

from pathlib import Path

from store_builder import CPU, DAY, EAGER, NOW, NPU, RunBuilder, environment, failure, realistic_store, result

from torchgauge.records import Case, DeviceTarget, Status, Workload
from torchgauge.results.store import Store
from torchgauge.results.trends.trend_findings import Finding, Look, TrendFilter, TrendFindings
from torchgauge.results.trends.trend_outcomes import TrendState

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "]]>&bad;<!--",
    "=cmd|' /C calc'!A0",
    "![x](javascript:alert(1))",
    "\x1b[31mred\x1b[0m\x00\x08",
    "left\u202eright\ufffe\uffff",
    "<a href='https://example.invalid'>Plotly</a>",
    "{{ 7 * 7 }}",
    "x" * 100_000,
)
"""Names and reasons as a hostile store has them."""


def check(name: str, suite: str = "conformance") -> Workload:
    return Workload(suite, name, "check")


def operator(name: str, variant: str = "forward", dtype: str = "float32") -> Workload:
    return Workload("ops", name, variant, dtype)


def subject_store(path: Path) -> Path:
    """Two devices with checks and operators, and a model on each."""
    run = RunBuilder("20260101T100000Z-checks", NOW - 3_600)
    run.environments += [environment("cpu"), environment("npusim")]
    for device in (CPU, NPU):
        for name in ("tensor.copy", "tensor.views"):
            result(run, Case(check(name), EAGER, device))
        for dtype in ("float32", "bfloat16"):
            for name in ("add", "nn.functional.conv1d"):
                result(run, Case(operator(name, dtype=dtype), EAGER, device))
        result(run, Case(Workload("toy", "mlp"), EAGER, device))
    result(
        run, Case(check("stream.make"), EAGER, CPU), Status.UNSUPPORTED, reason="not applicable to the host"
    )
    result(run, Case(check("stream.make"), EAGER, NPU))
    result(run, Case(check("stream.wait"), EAGER, NPU), Status.CRASH, reason="SIGSEGV in a stream")
    missing = failure("aten::topk is not implemented")
    result(run, Case(operator("topk"), EAGER, CPU))
    result(
        run, Case(operator("topk"), EAGER, NPU), Status.ERROR, failure=missing, reason="no kernel for topk"
    )
    result(run, Case(operator("topk", "backward"), EAGER, NPU))
    run.write(path)
    return path


def night(
    path: Path, number: float, statuses: dict[str, Status], device: DeviceTarget = CPU, **more: object
) -> str:
    """One run of toy models ``number`` days before the last one, with the status of each model."""
    run = RunBuilder(f"night-{number:03}", NOW - (30 - number) * DAY)
    for name, status in statuses.items():
        result(run, Case(Workload("toy", name), EAGER, device), status, **more)
    run.write(path)
    return run.run_id


def finding(name: str, **changes: object) -> Finding:
    """A change for the worse of a toy model; ``changes`` replace any field."""
    case = Case(Workload("toy", name), EAGER, CPU)
    fields: dict[str, object] = {
        "key": "0123456789abcdef", "case_key": case.key, "case_id": case.id, "suite": "toy", "model": name,
        "device": "cpu", "configuration": "eager", "metric": "latency", "unit": "s", "machine": "m",
        "worse": True, "size": 0.25, "low": 0.2, "high": 0.3, "before": 1e-3, "after": 1.25e-3, "score": 9.0,
        "good_run": "night-001", "suspect_run": "night-002", "safe_run": "night-001",
        "latest_run": "night-002", "good_torch": "2.13", "suspect_torch": "2.14",
        "good_at": NOW - 29 * DAY, "suspect_at": NOW - 28 * DAY, "nights_since": 20,
        "state": TrendState.SUSPECTED, **changes,
    }  # fmt: skip
    return Finding(**fields)  # type: ignore[arg-type]


def keep_findings(path: Path, *findings: Finding) -> None:
    """Write ``findings`` as what trend found last."""
    from torchgauge.records.codec import to_json

    look = Look(TrendFilter("latency"), "night-002", NOW - 28 * DAY, NOW, 3, 2, findings)
    folder = Store.open(path, create=True).path / "trend"
    folder.mkdir(exist_ok=True)
    (folder / "findings.json").write_text(to_json(TrendFindings(looks=(look,))))


def features(path: Path) -> None:
    """A run with a case of the suite of features."""
    run = RunBuilder("20260101T100000Z-features", NOW - 3_600, environments=[environment("cpu")])
    result(run, Case(Workload("features", "attention.sdpa-small"), EAGER, CPU))
    run.write(path)


def store_of_every_page(path: Path) -> None:
    """A store from which every kind of page is made: models, checks, operators, changes, comparisons."""
    realistic_store(path)
    subject_store(path)
    for number, status in ((2, Status.PASS), (3, Status.CRASH)):
        night(path, number, {"mlp": status})
    keep_findings(path, finding("mlp"))

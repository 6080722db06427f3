"""The script that asks whether two campaigns agree counts what is inside, near and wide."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(
    0, str(Path(__file__).resolve().parents[1] / "results")
)  # the runner imports test files by path

import stored_runs as stored

from torchgauge.results.store import Store

ROOT = Path(__file__).resolve().parents[2]


def told(tmp_path: Path, factors: dict[str, float]) -> str:
    """What the script prints of a campaign and one whose models take ``factors`` times as long."""
    for name, times in (("a", dict.fromkeys(factors, 1.0)), ("b", factors)):
        rows = [stored.result(stored.case(model), 1e-3 * factor) for model, factor in times.items()]
        stored.run(Store.open(tmp_path / name, create=True), "r1", rows, stored.environment())
    script = ROOT / "benchmarks" / "campaign_agreement.py"
    command = [sys.executable, script, tmp_path / "a", tmp_path / "b"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_cases_are_counted_and_those_outside_are_named(tmp_path: Path) -> None:
    """One equal, one within 3 % and outside its narrow interval, one far away."""
    said = told(tmp_path, {"same": 1.0, "near": 1.02, "far": 1.5})
    assert "| latency | 3 | 33% (1) | 67% (2) |" in said
    assert "toy/far:inference:float32:b1:eager@fake: +50.0%" in said
    assert "toy/near" in said
    assert "toy/same" not in said

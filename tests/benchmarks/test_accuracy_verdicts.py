"""The comparison of verdicts runs, and every difference on a toy model falls into an explained class."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "accuracy_verdicts.py"
EXPLAINED = {"shape", "non-finite result", "non-finite eager", "cosine", "tolerance", "own scale"}


@pytest.mark.full
@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_every_difference_has_a_class(tmp_path: Path) -> None:
    """Right results pass both rules; of hundreds of wrong ones most fail both, and the rest is explained."""
    out = tmp_path / "verdicts.jsonl"
    call("run", "--suite", "toy", "--model", "mlp", "--mode", "training", "--targets", "2", "--out", str(out))
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [line["state"] for line in lines if line["kind"] == "end"] == ["done"]
    pairs = [line for line in lines if line["kind"] == "pair"]
    honest = [pair for pair in pairs if pair["plant"] in {"eager again", "aot_eager"}]
    assert len(honest) == 4
    assert all(pair["ours"] and pair["theirs"] for pair in honest)
    assert sum(not pair["ours"] and not pair["theirs"] for pair in pairs) > 50
    assert {pair["why"] for pair in pairs if pair["ours"] != pair["theirs"]} <= EXPLAINED
    printed = call("table", str(out))
    assert "unexplained" not in printed
    assert f"| all | {sum(pair['ours'] and pair['theirs'] for pair in pairs)} |" in printed


def call(*arguments: str) -> str:
    """What the script prints."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout

"""The comparison with bare upstream code: agreement ends with 0, a difference that nobody explains with 1."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torchbench_against_upstream as against

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "suites"))

import fake_torchbench

SCRIPT = Path(against.__file__)
WORDS = ("--models", "llama", "--modes", "inference", "--config", "eager,aot_eager")
ONLY_BARE = """
    def eval(self):
        import sys

        if "torchgauge" not in sys.modules:
            raise RuntimeError("fails without torchgauge")
        return (self.model(*self.example_inputs),)
"""


def compare(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the script over the checkout in ``folder``; ``words`` overrule :data:`WORDS`."""
    where = ("--torchbench", str(folder / "checkout"), "--out", str(folder / "out"))
    command = [sys.executable, str(SCRIPT), *WORDS, *words, *where]
    return subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)


def cells(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return the verdict of each case that the script prints."""
    rows = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| llama")]
    return {row[0].removeprefix("| "): row[1] for row in rows}


@pytest.mark.torch
def test_a_difference_that_nobody_explains_ends_with_1(tmp_path: Path) -> None:
    """The same model agrees first; a second start repeats nothing, and edited code differs."""
    fake_torchbench.write(tmp_path / "checkout")
    done = compare(tmp_path)
    agreed = {"llama inference eager": "agree", "llama inference aot_eager": "agree"}
    assert (done.returncode, cells(done)) == (0, agreed), done.stderr
    records = tmp_path / "out" / "records.jsonl"
    lines = records.read_text(encoding="utf-8").splitlines()
    endings = {name: each for line in map(json.loads, lines) for name, each in line["endings"].items()}
    assert endings["aot_eager"]["frames"] > 0
    assert endings["eager"]["latency"][0] > 0
    records.write_text("\n".join([*lines, '{"unit": "cut o']), encoding="utf-8")
    assert compare(tmp_path).returncode == 0
    assert records.read_text(encoding="utf-8").splitlines() == lines

    model = tmp_path / "checkout" / "torchbenchmark" / "models" / "llama" / "__init__.py"
    model.write_text(model.read_text(encoding="utf-8") + ONLY_BARE, encoding="utf-8")
    records.unlink()
    done = compare(tmp_path)
    assert done.returncode == 1, done.stderr
    assert set(cells(done).values()) == {"disagree"}
    assert (
        "upstream raised RuntimeError (RuntimeError: fails without torchgauge); torchgauge ran" in done.stdout
    )


@pytest.mark.torch
def test_a_training_that_upstream_declares_none_of_is_explained(tmp_path: Path) -> None:
    """The declaration is read, and upstream's ``train()`` returns its refusal: both are right."""
    fake_torchbench.write(tmp_path / "checkout")
    model = tmp_path / "checkout" / "torchbenchmark" / "models" / "llama" / "__init__.py"
    text = model.read_text(encoding="utf-8")
    model.write_text(text.replace("DEFAULT_TRAIN_BSIZE = 2", "DEFAULT_TRAIN_BSIZE = None"), encoding="utf-8")
    done = compare(tmp_path, "--modes", "training", "--config", "eager")
    assert (done.returncode, cells(done)) == (0, {"llama training eager": "explained"}), done.stdout


def ending(word: str, median: float | None = None) -> Any:
    return against.Ending(word, latency=None if median is None else (median, median, median))


def test_two_sides_that_both_failed_alike_are_not_agreement() -> None:
    """Another exception is a disagreement, which a reason explains; a reason without one is named."""
    key = ("m", "training", "inductor")
    assert against._verdict(ending("skipped"), ending("skipped")) == "neither ran"
    assert against._verdict(ending("raised KeyError"), ending("raised OSError")) == "disagree"
    judged = against._explained(against.Judged(key, "disagree", "a; b"), {"m * inductor": "why"})
    assert (judged.verdict, judged.text) == ("explained", "a; b | why")
    agreed = against._explained(against.Judged(key, "agree", "a; b"), {"m * inductor": "why"})
    assert agreed.verdict == "agree"
    reasons = {"m * inductor": "why", "other * *": "not judged here"}
    assert against.unneeded([judged], reasons) == []
    assert against.unneeded([agreed], reasons) == ["m * inductor"]


def test_a_launch_that_fell_over_is_not_a_time() -> None:
    """Overlapping intervals agree, others do not, and neither do five times beside a crash."""
    key = ("m", "inference", "eager")

    def judged(bare: list[float], ours: list[float], *lost: tuple[Any, Any]) -> Any:
        pairs = [(ending("ran", one), ending("ran", other)) for one, other in zip(bare, ours, strict=True)]
        return against._beside(key, [*pairs, *lost])

    assert judged([1, 2, 3, 4, 5], [2, 3, 4, 5, 6]).verdict == "agree"
    apart = judged([1.0, 1.1, 1.2, 1.1, 1.0], [1.5, 1.6, 1.5, 1.4, 1.5])
    assert apart.verdict == "disagree"
    assert apart.text.endswith("| 1.455")
    lost = judged([1.0] * 5, [1.0] * 5, (ending("killed"), ending("ran", 1.0)))
    assert (lost.verdict, lost.text) == ("disagree", "1 launches have no time, the first: killed")

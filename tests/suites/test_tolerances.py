"""Tolerances: by class, dtype and mode, with exceptions that say why."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchgauge.errors import DataFileError, UnknownNameError, UsageError
from torchgauge.records import Workload
from torchgauge.suites.catalog import DATA
from torchgauge.suites.suite import ModelEntry
from torchgauge.suites.tolerances import load_tolerances, tolerance_for


def entry(name: str = "m", accuracy_class: str = "default") -> ModelEntry:
    return ModelEntry(name=name, tiers=("smoke",), batch={"inference": 1}, accuracy_class=accuracy_class)


@pytest.mark.parametrize(
    ("dtype", "mode", "accuracy_class", "value", "multiplier"),
    [
        ("float32", "inference", "default", 1e-4, 2),
        ("float32", "training", "default", 1e-3, 2),
        ("float32", "generate", "default", 1e-4, 2),
        ("float16", "inference", "default", 1e-3, 3),
        ("bfloat16", "inference", "network", 1e-3, 3),
        ("float32", "training", "network", 1e-2, 2),
    ],
)
def test_the_tolerance_follows_class_dtype_and_mode(
    dtype: str, mode: str, accuracy_class: str, value: float, multiplier: float
) -> None:
    """Absolute equals relative, and the source names the file and the key."""
    workload = Workload(suite="s", model="m", mode=mode, dtype=dtype)
    tolerance = tolerance_for(workload, entry(accuracy_class=accuracy_class))
    assert (tolerance.absolute, tolerance.relative, tolerance.rmse_multiplier) == (value, value, multiplier)
    assert tolerance.source == f"tolerances.yaml: {accuracy_class}, {dtype}, {mode}"


def test_an_exception_replaces_the_value_and_says_why() -> None:
    """The source of an exception carries its date, reason and link."""
    name = "GPT2ForSequenceClassification"
    workload = Workload(suite="huggingface", model=name)
    tolerance = tolerance_for(workload, entry(name, "network"))
    assert (tolerance.absolute, tolerance.rmse_multiplier) == (4e-3, 2)
    assert "exception of 2026" in tolerance.source
    assert "https://" in tolerance.source


def test_unknown_classes_and_dtypes_are_errors() -> None:
    """A class or a dtype that the file does not have is a usage error."""
    with pytest.raises(
        UnknownNameError, match="unknown accuracy class of s/m 'netwrok'; did you mean network"
    ):
        tolerance_for(Workload(suite="s", model="m"), entry(accuracy_class="netwrok"))
    for dtype in ("int8", "reason"):
        with pytest.raises(UsageError, match=f"no tolerance for the dtype '{dtype}'"):
            tolerance_for(Workload(suite="s", model="m", dtype=dtype), entry())


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("reason: one logit", "reasons: one logit", "unknown field 'reasons'; did you mean"),
        ("tolerance: 4e-3", "tolerance: 0", "> 0"),
        ('date: "2026-11-21"\n    float64', 'date: "21.11.2026"\n    float64', r"classes\.default\.date"),
        ("inference: 1e-4", "inference: '1e-4'", r"classes\.default\.float32\.inference`: expected `float`"),
    ],
)
def test_the_file_is_strict(tmp_path: Path, old: str, new: str, problem: str) -> None:
    """A judgement without its evidence, or with a wrong value, is an error."""
    text = (DATA / "tolerances.yaml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "tolerances.yaml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataFileError, match=problem):
        load_tolerances(path)

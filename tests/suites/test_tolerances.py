"""Tolerances: by class, dtype and mode, with exceptions that say why."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from torchgauge.cli.validate import command
from torchgauge.errors import DataFileError, UnknownNameError, UsageError
from torchgauge.harness.validation import notes
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
        ("bfloat16", "inference", "network", 1e-3, 2),
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


@pytest.mark.parametrize("name", ["elementwise", "matmul"])
def test_operations_have_classes_of_their_own(name: str) -> None:
    """A suite of single operations names their class; float32 is held tighter than a whole network."""
    for mode in ("inference", "training"):
        workload = Workload(suite="s", model="m", mode=mode)
        own = tolerance_for(workload, entry(accuracy_class=name))
        network = tolerance_for(workload, entry(accuracy_class="network"))
        assert 0 < own.absolute < network.absolute
        low = tolerance_for(Workload(suite="s", model="m", mode=mode, dtype="bfloat16"), entry("m", name))
        assert low.absolute > own.absolute


@pytest.mark.parametrize("field", ["reason", "date"])
def test_an_exception_needs_its_evidence(tmp_path: Path, field: str) -> None:
    """No exception without reason, link and date."""
    path = tolerance_file(tmp_path, {field: None})
    with pytest.raises(DataFileError, match=f"the field '{field}' is missing"):
        load_tolerances(path)


def test_an_exception_may_be_one_backend_alone(tmp_path: Path) -> None:
    """What is looser for a backend that changes the numbers is not looser for eager, nor for any other."""
    table = load_tolerances(tolerance_file(tmp_path, {"backend": "quantised*"}))
    workload, own = Workload(suite="s", model="m"), 1e-4
    found = [table.tolerance_for(workload, entry(), name) for name in ("eager", "inductor", "quantised_int8")]
    assert [each.absolute for each in found] == [own, own, 5e-3]
    assert "exception of 2026-11-21" in found[2].source


def tolerance_file(folder: Path, exception: dict[str, str | None]) -> Path:
    """The bundled classes with one exception, for model ``m`` of suite ``s`` unless said otherwise."""
    text = (DATA / "tolerances.yaml").read_text(encoding="utf-8").split("exceptions:")[0]
    fields: dict[str, str | None] = {
        "suite": "s",
        "model": "m",
        "reason": "a reason that is long enough",
        "link": "https://example.org/1",
        "date": '"2026-11-21"',
        "tolerance": "5e-3",
        **exception,
    }
    lines = [f"{name}: {value}" for name, value in fields.items() if value is not None]
    path = folder / "tolerances.yaml"
    path.write_text(f"{text}exceptions:\n  - " + "\n    ".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("exception", "words"),
    [
        ({}, None),
        ({"expires": '"2026-11-20"'}, "expired on 2026-11-20"),
        ({"model": "other"}, "is not used"),
        ({"suite": "gone"}, "names a suite that is not installed"),
        ({"tolerance": "1e-4", "mode": "inference", "dtype": "float32"}, "changes nothing"),
    ],
)
def test_what_is_out_of_date_is_named(
    tmp_path: Path, exception: dict[str, str | None], words: str | None
) -> None:
    """An exception that has expired, that nothing meets or that changes nothing is pointed out."""
    table = load_tolerances(tolerance_file(tmp_path, exception))
    models = {"s": [ModelEntry(name="m", tiers=("smoke",), batch={"inference": 1, "training": 1})]}
    found = table.notes(models, date(2026, 11, 21))
    if words is None:
        assert found == []
    else:
        (note,) = found
        assert words in note


def test_nothing_bundled_is_out_of_date() -> None:
    """The exceptions that ship are all met by a model, and each changes something."""
    assert notes([]) == []


def test_validate_names_what_is_out_of_date(tmp_path: Path) -> None:
    """The command says it on stderr and still accepts the file."""
    path = tolerance_file(tmp_path, {"suite": "toy", "model": "gone"})
    done = CliRunner().invoke(command, [str(path)])
    assert done.exit_code == 0
    assert done.stdout == f"ok  {path}\n"
    assert "note  tolerances.yaml: the exception for toy/gone is not used" in done.stderr

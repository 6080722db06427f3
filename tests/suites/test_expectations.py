"""Expectations: the first entry that selects a case, for one device."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchgauge.errors import DataFileError
from torchgauge.records import Case, Configuration, DeviceTarget, Expectation, Status, Workload
from torchgauge.suites import expectations
from torchgauge.suites.expectations import FOLDER, expectation_for, load_expectations

GOOD = """\
device: abacus
expectations:
  - suite: timm
    model: resnet*
    mode: training
    configuration: inductor
    status: fail_accuracy
    reason: the device rounds to even only
    link: https://example.org/1
    date: "2026-11-21"
  - case: "timm/*@abacus*"
    status: skipped
    reason: images do not fit the device
    link: https://example.org/2
    date: "2026-11-21"
"""


def case(
    model: str = "resnet18", mode: str = "training", device: str = "abacus", suite: str = "timm"
) -> Case:
    return Case(Workload(suite, model, mode), Configuration("inductor", "inductor"), DeviceTarget(device, 1))


def table(folder: Path, text: str = GOOD) -> expectations.ExpectationTable:
    path = folder / "abacus.yaml"
    path.write_text(text, encoding="utf-8")
    return load_expectations(path)


def test_the_first_entry_that_selects_a_case_counts(tmp_path: Path) -> None:
    """Every selector of an entry must fit; later entries catch what earlier ones leave."""
    found = table(tmp_path)
    assert found.expectation_for(case()) == Expectation(
        Status.FAIL_ACCURACY, "the device rounds to even only", "https://example.org/1", "2026-11-21"
    )
    later = found.expectation_for(case(mode="inference"))
    assert later is not None
    assert later.status is Status.SKIPPED
    assert found.expectation_for(case(suite="toy")) is None
    assert found.expectation_for(case(device="other")) is None


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (
            '  - case: "timm/*@abacus*"\n    status',
            "  - status",
            r"yaml:11 at `expectations\[1\]`: selects every",
        ),
        (
            "status: skipped",
            "status: skip",
            r"yaml:12 at `expectations\[1\]\.status`: invalid enum value 'skip'",
        ),
        ("status: skipped", "status: infra", r"\.status`: status 'infra' cannot be expected"),
        (
            "configuration:",
            "config:",
            r"yaml:6 at .*\.config`: unknown field 'config'; did you mean configuration",
        ),
        ("    reason: images do not fit the device\n", "", "the field 'reason' is missing"),
        ("https://example.org/2", "example.org", r"yaml:14 at `expectations\[1\]\.link`"),
    ],
)
def test_the_file_is_strict(tmp_path: Path, old: str, new: str, problem: str) -> None:
    """An entry without evidence, selector or sense is an error with its line."""
    assert old in GOOD
    with pytest.raises(DataFileError, match=problem):
        table(tmp_path, GOOD.replace(old, new))


def test_a_device_without_a_file_expects_nothing() -> None:
    """An unknown device has no expectations, whatever its name looks like."""
    for name in ("abacus", "../expectations/cpu", "*"):
        assert expectation_for(case(device=name)) is None


def test_files_outside_the_package_come_before_the_one_that_ships(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person's own files first, then the one that the device declares, then ours."""
    ours = Case(Workload("conformance", "stream.query"), Configuration("eager", "eager"), DeviceTarget("cpu"))
    shipped = expectation_for(ours)
    assert shipped is not None
    text = GOOD.replace("device: abacus", "device: cpu").replace("timm/*@abacus*", "conformance/stream.*")
    declared, own = tmp_path / "declared.yaml", tmp_path / "own.yaml"
    declared.write_text(text.replace("images do not fit", "the vendor says no to"), encoding="utf-8")
    own.write_text(text.replace("images do not fit", "I say no to"), encoding="utf-8")
    assert expectation_for(ours, "") == shipped
    found = expectation_for(ours, str(declared))
    assert found is not None
    assert found.reason.startswith("the vendor says")
    monkeypatch.setenv(expectations.VARIABLE, str(own))
    found = expectation_for(ours, str(declared))
    assert found is not None
    assert found.reason.startswith("I say")


def test_a_declared_file_must_be_about_the_device(tmp_path: Path) -> None:
    """Else every entry of it would silently count for nothing."""
    path = tmp_path / "other.yaml"
    path.write_text(GOOD, encoding="utf-8")
    with pytest.raises(DataFileError, match="'abacus', but device 'other' declares it as its own"):
        expectation_for(case(device="other"), str(path))
    with pytest.raises(DataFileError, match="cannot be read"):
        expectation_for(case(), str(tmp_path / "none.yaml"))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_files_are_named_after_their_device(path: Path) -> None:
    """Each file that ships is valid and holds the device of its name."""
    assert load_expectations(path).device == path.stem

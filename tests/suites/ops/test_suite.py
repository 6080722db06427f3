"""The suite of operators as the parent sees it: a list from a child process, kept by torch's version."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torchgauge.errors import InfrastructureError
from torchgauge.suites.ops.catalogue import Catalogue, Operator, catalogue_of
from torchgauge.suites.ops.suite import OpsSuite
from torchgauge.suites.ops.upstream import VARIANTS

needs_database = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "expecttest")),
    reason="torch or expecttest is not installed",
)
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A catalogue of three operators in place of a child process."""
    three = Catalogue(
        "9.9",
        "",
        (
            Operator("add", {"": ("float32", "int64"), "xyz": ("float32",)}, {"": ("float32",)}, True, True),
            Operator("empty", {"": ("float32",)}, {}, True, False),
            Operator("rare", {"": ("float32",)}, {}, False, False),
        ),
    )
    monkeypatch.setattr("torchgauge.suites.ops.suite.catalogue_of", lambda _python: three)


def test_entries_are_checks_with_dtypes_by_variant_and_device(listed: None) -> None:
    """A variant has its own dtypes and a device type its own list; tiers come from the data file."""
    add, empty, rare = OpsSuite(samples=3).models()
    assert (add.framework, add.shape, add.tiers) == ("check", (("samples", 3),), ("smoke", "full"))
    assert tuple(add.batch) == VARIANTS
    assert add.dtypes_of("forward", "abc") == ("float32", "int64")
    assert add.dtypes_of("forward", "xyz") == ("float32",)
    assert add.dtypes_of("backward", "abc") == ("float32",)
    assert rare.tiers == ("full",)
    assert tuple(rare.batch) == ("forward", "noncontiguous", "empty", "expanded", "large")
    declined = empty.declined_in("forward")
    assert declined is not None
    assert "https://" in declined.reason
    assert add.declined_in("forward") is None


@needs_database
@pytest.mark.torch
def test_a_child_lists_the_operators_once(tmp_path: Path) -> None:
    """The second answer comes from the cache, without torch in this process; the smoke tier is all there."""
    code = (
        "import sys; from pathlib import Path\n"
        "from torchgauge.suites.ops.catalogue import catalogue_of\n"
        f"found = catalogue_of(cache=Path({str(tmp_path)!r}))\n"
        "assert 'torch' not in sys.modules\n"
        "print(len(found.operators))"
    )
    counts = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=280, check=True
        ).stdout
        for _ in range(2)
    ]
    assert counts[0] == counts[1]
    assert int(counts[0]) > 500
    (kept,) = tmp_path.glob("operator-database-*.json")
    before = kept.stat().st_mtime_ns
    names = {op.name for op in catalogue_of(cache=tmp_path).operators}
    assert kept.stat().st_mtime_ns == before
    assert set(OpsSuite()._fields.smoke) <= names


@needs_torch
@pytest.mark.torch
def test_without_the_test_package_the_smoke_tier_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hide_package: Callable[[str], str]
) -> None:
    """The missing package is named, nothing is cached, and the person hears what to type."""
    monkeypatch.setenv("PYTHONPATH", hide_package("expecttest"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    suite = OpsSuite()
    assert suite.catalogue.missing == "expecttest"
    assert len(suite.models()) == 50
    assert "pip install expecttest" in suite.notes[0]
    assert not (tmp_path / "cache").exists()


def test_an_interpreter_that_does_not_answer_is_infrastructure(tmp_path: Path) -> None:
    """What is wrong with it is said."""
    with pytest.raises(InfrastructureError, match="does not report the location of torch"):
        catalogue_of(str(tmp_path / "no-python"), cache=tmp_path)

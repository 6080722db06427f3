"""A damaged run of the past: who judges other runs reads without it and says so; a named one is an error."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))

import nightly_store

from torchgauge.results.store import Store


@pytest.fixture
def nights(tmp_path: Path) -> Path:
    """Six nights, of which the second is damaged."""
    nightly_store.history(tmp_path / "store", [1e-3, 1e-3, 1.01e-3, 1e-3, 1e-3, 1e-3])
    table = Store.open(tmp_path / "store").table_path("summaries", "night-001")
    os.truncate(table, table.stat().st_size // 2)
    return tmp_path / "store"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("results", "trend", "--no-keep"), 0),
        (("compare", "night-004", "night-005"), 0),
        (("gate", "night-004", "night-005"), 3),  # two runs are too few for a verdict
    ],
)
def test_a_damaged_run_of_the_past_is_left_out_and_named(
    process, nights: Path, command: tuple[str, ...], code: int
) -> None:
    """With the command that mends it."""
    done = process(*command, "--store", str(nights))
    assert done.returncode == code, done.stderr
    assert done.stdout
    assert "run night-001 is left out: tables/summaries/night-001.parquet cannot be read" in done.stderr
    assert "torchgauge results publish night-001" in done.stderr


def test_a_damaged_run_that_is_named_is_an_error(process, nights: Path) -> None:
    """Nothing else stands in for it."""
    done = process("compare", "night-001", "night-005", "--store", str(nights))
    assert done.returncode == 3
    assert "night-001.parquet cannot be read" in done.stderr

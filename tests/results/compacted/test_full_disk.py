"""A disk that is full while a month is compacted: nothing half, nothing lost, and repeating it works."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from small_disk import PAGE, run_on_small_disk

CHILD = Path(__file__).with_name("full_disk_child.py")


@pytest.mark.parametrize("pages", [0, 3, 12])
def test_a_full_disk_leaves_the_tables_of_the_runs(tmp_path: Path, pages: int) -> None:
    """Whatever room was left."""
    seen = json.loads(run_on_small_disk(CHILD, tmp_path / "disk", str(pages * PAGE)))
    assert "No space left on device" in seen["error"]
    assert "free disk space" in seen["advice"]
    assert seen["same"]
    assert seen["left over"] == []
    assert seen["after"] == ["compacted"]
    assert seen["same after"]
    assert seen["findings"] == []

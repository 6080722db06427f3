"""A disk that is full when a run publishes: nothing half, nothing lost, and the advice works."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_disk import PAGE, run_on_small_disk

CHILD = Path(__file__).with_name("full_disk_child.py")


@pytest.mark.parametrize("pages", [0, 1, 3, 6])
def test_a_run_that_a_full_disk_did_not_publish_is_published_from_its_journal(
    tmp_path: Path, pages: int
) -> None:
    """Whatever room was left: the list says that tables are missing, and the error's advice makes them."""
    seen = json.loads(run_on_small_disk(CHILD, tmp_path / "disk", str(pages * PAGE)))
    assert "cannot be written: " in seen["error"]
    assert "No space left on device" in seen["error"]
    assert seen["advice"].startswith("torchgauge results publish run-1 --store ")
    assert "unpublished" in seen["list"]["out"]
    assert seen["advice"] in seen["list"]["out"]
    assert "no row matches the conditions" in seen["query"]["out"]
    assert seen["publish"]["code"] == 0, seen["publish"]["out"]
    assert "run-1  complete     2/2  1 crash, 1 pass\n" in seen["list after"]["out"]
    assert "toy/linear" in seen["query after"]["out"]
    assert seen["left over"] == []

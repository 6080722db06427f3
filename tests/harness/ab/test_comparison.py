"""What is paired with what, and what is refused before anything is written."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest

from torchgauge.errors import UsageError
from torchgauge.harness.ab.comparison import new_comparison
from torchgauge.harness.ab.progress import AbProgress
from torchgauge.harness.planning.selection import Selection
from torchgauge.records import RunSettings
from torchgauge.records.comparison import SideSpec

MINE, YOURS = SideSpec("mine", "", (("FLAG", "1"),)), SideSpec("yours", "")
SETTINGS = RunSettings(threads=1)
CPU = Selection(("toy",), ("cpu",), ("mlp", "convnet", "rnn"), configurations=("eager", "inductor"))


def planned(arena: Any, **more: Any) -> Any:
    return new_comparison(arena.request(**more), store=str(arena.store), progress=AbProgress(io.StringIO()))


def test_a_comparison_without_accuracy_is_refused(arena: Any) -> None:
    """Its rows would be unchecked, and every verdict not comparable: said before anything is measured."""
    with pytest.raises(UsageError, match="unchecked results are not compared"):
        planned(arena, settings=replace(SETTINGS, accuracy=False))
    assert not arena.store.exists()


def test_two_pairs_are_also_measured_head_against_head(arena: Any) -> None:
    """Chosen by the seed, beside the pairs themselves, and from what head can run."""
    found = {
        seed: planned(arena, base=MINE, selection=CPU, controls=2, seed=seed).plan.pairs for seed in range(6)
    }
    for pairs in found.values():
        controls = [pair for pair in pairs if pair.control]
        assert (len(pairs), len(controls)) == (8, 2)
        assert len({pair.key for pair in pairs}) == 8
        assert {pair.head for pair in controls} <= {pair.head for pair in pairs if not pair.control}
    assert len({tuple(pair.key for pair in pairs) for pairs in found.values()}) > 1
    assert planned(arena, base=MINE, selection=CPU, controls=2, seed=3).plan.pairs == found[3]

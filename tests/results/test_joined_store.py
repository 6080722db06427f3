"""Several stores are read as one, and what lies in two of them once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import stored_runs
from stored_runs import case, result

from torchgauge.dashboard.site import build_site
from torchgauge.errors import UsageError
from torchgauge.results.joined_store import one_store
from torchgauge.results.store import Store


def test_a_site_of_two_stores_has_the_runs_of_both(tmp_path: Path) -> None:
    """A run that both have counts once and is noted; the stores are as they were."""
    for name, models in {"here": ("mlp",), "there": ("conv", "mlp")}.items():
        store = Store.open(tmp_path / name, create=True)
        for model in models:
            stored_runs.run(store, f"run-{model}", [result(case(model))])
    before = sorted(tmp_path.rglob("*"))
    with one_store([str(tmp_path / "here"), str(tmp_path / "there")], str(tmp_path / "site")) as (
        path,
        notes,
    ):
        report = build_site(path, tmp_path / "site")
    assert (report.runs, report.cases) == (2, 2)
    (note,) = notes
    assert note.startswith("run run-mlp is in ")
    assert [each for each in sorted(tmp_path.rglob("*")) if "site" not in each.parts] == before


def test_one_store_is_itself_and_a_site_never_covers_one(tmp_path: Path) -> None:
    """No link is made for one; a folder that holds a store is refused for the site."""
    for name in ("here", "there"):
        Store.open(tmp_path / name, create=True)
    with one_store([str(tmp_path / "here")], "site") as (path, notes):
        assert (path, notes) == (tmp_path / "here", ())
    both = [str(tmp_path / "here"), str(tmp_path / "there")]
    with pytest.raises(UsageError, match="holds the store"), one_store(both, str(tmp_path)):
        pass

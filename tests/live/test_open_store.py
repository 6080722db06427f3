"""What a store holds, as frames: the commands' own queries."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

import torchgauge as tg
from torchgauge.errors import UnknownNameError, UsageError

sys.path.insert(0, str(Path(__file__).parents[1] / "results"))  # the builder of stores is there

import nightly_store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> tg.OpenStore:
    """A store of 30 nights whose last ten are slower by a fifth."""
    path = tmp_path_factory.mktemp("live") / "store"
    noise = (0.0, 0.004, -0.003, 0.002, -0.004)
    nightly_store.history(path, [(1.0 if n < 20 else 1.2) + noise[n % 5] for n in range(30)])
    return tg.open(path)


def test_results_and_summaries_are_queried_like_on_the_command_line(store: tg.OpenStore) -> None:
    """Conditions, runs by name, and a metric."""
    assert len(store.results()) == 30
    assert len(store.results("status=error")) == 0
    latest = store.summaries(run="latest", metric="latency")
    assert latest["median"].tolist() == [pytest.approx(1.196)]
    assert len(store.samples(run="latest~1")) == 3
    assert store.latest()["run_id"].tolist() == ["night-029"]
    with pytest.raises(UsageError, match="is not a condition"):
        store.results("status")


def test_two_runs_are_compared(store: tg.OpenStore) -> None:
    """Each verdict is a row, with its ratio."""
    found = store.compare("night-010", "night-025").set_index("metric")
    assert found.loc["latency", "ratio"] == pytest.approx(1.2, abs=0.01)
    assert found.loc["status", "verdict"] == "unchanged"


def test_a_trend_has_a_row_for_each_night_and_marks_the_change(store: tg.OpenStore) -> None:
    """The night from which it is slower has the size of the change and its state."""
    found = store.trend(model="noop")
    assert found["run_id"].tolist() == [f"night-{number:03d}" for number in range(30)]
    changed = found[found["change"].notna()]
    assert changed["run_id"].tolist() == ["night-020"]
    assert changed["change"].tolist() == [pytest.approx(0.2, abs=0.02)]
    assert changed["state"].tolist() == ["suspected"]
    assert str(found["at"].dtype).startswith("datetime64")
    assert len(store.trend(model="other")) == 0
    assert store.trend(model="other").columns.tolist() == found.columns.tolist()


def test_claims_have_a_row_for_each_answer(store: tg.OpenStore) -> None:
    """A store without their models has measured none of them."""
    found = store.claims()
    assert set(found["verdict"]) == {"not measured"}
    with pytest.raises(UnknownNameError):
        store.claims("no such claim at all")


def test_compat_has_a_row_for_each_part_and_device(tmp_path: Path) -> None:
    """As the CSV of ``torchgauge results compat`` has it."""
    import compat_store

    found = tg.open(compat_store.two_stores(tmp_path)[0]).compat()
    assert set(found["device"]) == {"host"}
    assert {"section", "feature", "part", "status"} <= set(found.columns)
    assert "pass" in set(found["status"])


def test_a_missing_store_is_named(tmp_path: Path) -> None:
    """The message has the path."""
    with pytest.raises(UsageError, match="nowhere"):
        tg.open(tmp_path / "nowhere")


def test_measured_rows_are_kept_in_a_store(tmp_path: Path) -> None:
    """A measurement with a store is a run of its own."""
    import torch

    found = tg.measure(torch.sin, torch.ones(4), configs=["eager"], seconds=0.05, store=tmp_path / "store")
    stored = tg.open(tmp_path / "store")
    assert stored.results()["case_id"].tolist() == ["live/sin:inference:float32:b1:eager@cpu"]
    assert stored.summaries(metric="latency")["median"].tolist() == [found.seconds()]
    assert isinstance(stored.results(), pd.DataFrame)

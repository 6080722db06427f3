"""A full model that is not what its name says is shown, and no count of passes has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_text import words
from store_builder import DAY, EAGER, NOW, RunBuilder, result

from torchgauge.dashboard import build_site
from torchgauge.dashboard.contrast import Side, contrast
from torchgauge.dashboard.names import device_id
from torchgauge.dashboard.new_failures import recent_failures, standing_failures
from torchgauge.dashboard.pages.device_history import device_history
from torchgauge.dashboard.pages.geomean import why_out
from torchgauge.dashboard.site_data import read_site_data
from torchgauge.dashboard.tally import tally
from torchgauge.records import Case, Cause, DeviceTarget, Measurement, Modifier, Status, Workload
from torchgauge.results.store import Store

CPU = DeviceTarget("cpu")
POSER: dict[str, Any] = {
    "modifiers": (Modifier.OTHER_MODEL,),
    "facts": (("other_model", "the model that was built has 36 parameters, but its suite declares 1,000"),),
}
"""What a row has whose model is smaller than it should be."""


def full(name: str) -> Case:
    """A full model in eager on the processor."""
    return Case(Workload("timm", name, size="full"), EAGER, CPU)


def night(store: Path, days: int, **rows: tuple[Status, dict[str, Any]]) -> None:
    """A run of so many days ago with a row for each model."""
    run = RunBuilder(f"run-{days}", NOW - days * DAY - 60)
    for name, (status, changes) in rows.items():
        latency = Measurement("latency", "s", (1e-3, 1.01e-3, 0.99e-3), (0, 1, 2), "perf_counter")
        measured = (latency,) if status is Status.PASS else ()
        result(run, full(name), status, measurements=measured, **changes)
    run.write(store)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An honest model, one by another path, a poser, and one that posed yesterday and lacks memory today."""
    path = tmp_path_factory.mktemp("posing")
    honest, degraded = (Status.PASS, {}), (Status.PASS, {"modifiers": (Modifier.DEGRADED,)})
    oom = Status.OOM, {"cause": Cause.HOST_LIMIT}
    night(path, 1, honest=honest, fallen=degraded, poser=(Status.PASS, POSER), late=(Status.PASS, POSER))
    night(path, 0, honest=honest, fallen=degraded, poser=(Status.PASS, POSER), late=oom)
    return path


@pytest.fixture(scope="module")
def site(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of that store."""
    out = tmp_path_factory.mktemp("site") / "site"
    report = build_site(store, out, now=NOW)
    assert (report.passed, report.planned) == (1, 4)
    assert report.subjects == (("models", 1, 4),)
    return out


@pytest.mark.parametrize("page", ["index", "compatibility", "device", "runs"])
def test_every_page_counts_one_pass_of_four(site: Path, page: str) -> None:
    """And none says that three passed."""
    path = site / (f"devices/{device_id('cpu')}.html" if page == "device" else f"{page}.html")
    text = words(path)
    assert "1/4" in text
    assert "3/4" not in text


def test_the_badge_and_the_trend_count_the_same(site: Path) -> None:
    """What leaves the site claims no more than its pages."""
    badge = json.loads((site / "badge" / f"{device_id('cpu')}.json").read_bytes())
    assert badge["message"] == "pass 1/4, 2026-01-01"
    (path,) = (site / "trends" / device_id("cpu")).glob("*.core.json")
    counts = {tuple(line["passed"]) for line in json.loads(path.read_bytes())["lines"]}
    assert counts == {(1, 1)}


def test_it_enters_no_mean(store: Path) -> None:
    """Its number is there, with the reason why it is not used; a failure is told as a failure."""
    latest = read_site_data(Store.open(store), NOW).latest
    said = {each.workload.model: why_out(each, "latency") for each in latest.entries.values()}
    assert said["honest"] == ""
    assert said["poser"] == "another model than its name"
    assert said["fallen"] == "degraded"
    assert said["late"] == "OOM"
    counted = tally(latest.entries.values())
    assert (counted.passed, counted.counts[Status.PASS]) == (1, 3)
    assert counted.marks["other_model"] == 1


def test_history_counts_it_nowhere_and_its_end_is_no_new_failure(store: Path) -> None:
    """The named model never passed, so nothing broke when it was built at last."""
    data = read_site_data(Store.open(store), NOW)
    assert device_history(data.recent, np.arange(len(data.recent.cases))).passed == (1, 1)
    assert standing_failures(data.recent, data.latest) == ()
    assert recent_failures(data.recent, 10) == ()


def test_a_pass_of_its_own_before_is_a_new_failure(tmp_path: Path) -> None:
    """Also one by another path: that model did run."""
    for days, status in ((1, Status.PASS), (0, Status.ERROR)):
        marks = {"modifiers": (Modifier.DEGRADED,)} if days else {}
        night(tmp_path / "store", days, a=(status, {}), b=(status, marks))
    data = read_site_data(Store.open(tmp_path / "store"), NOW)
    assert {found.case.workload.model for found in data.new_failures} == {"a", "b"}
    assert len(recent_failures(data.recent, 10)) == 2


def test_it_is_compared_with_nothing(store: Path) -> None:
    """Two nights: the reason is told beside the row, and a degraded pass has another."""
    history = read_site_data(Store.open(store), NOW).recent
    rows = np.arange(len(history.cases))
    found = contrast(
        history,
        Side(rows, 0),
        Side(rows, 1),
        metric="latency",
        lower_is_better=True,
        thresholds=np.full(len(rows), 0.03),
        alike=np.ones(len(rows), np.bool_),
    )
    assert found.n == 1
    assert found.reasons == {
        "degraded on both": 1, "other_model on both": 1, "other_model on A, OOM on B": 1,
    }  # fmt: skip

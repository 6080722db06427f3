"""The time axis: which row stands for a case in a snapshot, and what the window says of it."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace

import pytest
from store_builder import (
    CPU,
    DAY,
    EAGER,
    NOW,
    RunBuilder,
    environment,
    result,
    timings,
    workloads,
)

from torchgauge.dashboard import DashboardError, build_site, plan_check, site_data
from torchgauge.dashboard.history import NOTHING_PLANNED, REBUILT, STATUSES
from torchgauge.dashboard.site_data import read_site_data
from torchgauge.dashboard.snapshots import DatedRun, TorchBuild, dated_run, snapshots_of
from torchgauge.records import Case, Realised, Status
from torchgauge.results.store import Store


def _run(store: Path, at: float, *statuses: Status, name: str = "", **changes: object) -> str:
    run = RunBuilder(name or f"run-{int(at)}", at)
    run.environments.append(environment("cpu"))
    for workload, status in zip(workloads(), statuses, strict=False):
        result(run, Case(workload, EAGER, CPU), status, **changes)
    run.write(store)
    return run.run_id


def test_of_several_rows_of_a_day_the_newest_that_says_something_stands(tmp_path: Path) -> None:
    """A repeated night, an infra failure after a result, and a night of which nothing is known."""
    _run(tmp_path, NOW - 3 * DAY, Status.ERROR)
    _run(tmp_path, NOW - 3 * DAY + 600, Status.PASS)
    _run(tmp_path, NOW - 3 * DAY + 1_200, Status.INFRA)
    _run(tmp_path, NOW - DAY, Status.INFRA)
    _run(tmp_path, NOW - DAY + 600, Status.NOT_RUN)
    data = read_site_data(Store.open(tmp_path), NOW)
    found = [STATUSES[code] for code in data.recent.status[0].tolist()]
    assert found == [Status.PASS, Status.NOT_RUN]
    entry = next(iter(data.latest.entries.values()))
    assert (entry.status, entry.newest["status"], entry.lost) == (Status.PASS, "not_run", True)
    assert entry.known is not None
    assert entry.known["run_id"] == f"run-{int(NOW - 3 * DAY + 600)}"


def test_statuses_of_every_snapshot_sum_to_what_was_planned(tmp_path: Path) -> None:
    """Also where the plans of two days differ: what nobody planned has no status."""
    _run(tmp_path, NOW - 2 * DAY, *[Status.PASS] * 3)
    _run(tmp_path, NOW - DAY, *[Status.ERROR] * 5)
    window = read_site_data(Store.open(tmp_path), NOW).recent
    assert window.planned.tolist() == [3, 5]
    assert window.count(Status.ERROR).tolist() == [0, 5]
    assert window.status[:, 0].tolist().count(NOTHING_PLANNED) == 2
    with pytest.raises(DashboardError, match="5 statuses were counted for 6 cases planned"):
        plan_check.check_history(window, {s.id: n for s, n in zip(window.snapshots, (3, 6), strict=True)})


def test_a_day_with_two_builds_of_torch_has_two_snapshots() -> None:
    """In order of their first run; a build without a commit is named by its version."""
    commit = TorchBuild("2.13.0", "9AB1b31d2f7c5566")
    runs = [
        DatedRun("a", NOW, commit),
        DatedRun("b", NOW + 60, TorchBuild("2.12.1")),
        DatedRun("c", NOW + 120, commit),
        DatedRun("d", NOW + 180, TorchBuild()),
        DatedRun("e", NOW + 240, TorchBuild("1", "../../etc")),
    ]
    first, second, third, fourth = snapshots_of(runs)
    assert (first.id, first.runs) == ("2026-01-01-9ab1b31d2f", ("a", "c"))
    assert second.id.startswith("2026-01-01-2-12-1-")
    assert third.id == "2026-01-01-unknown"
    assert "/" not in fourth.id
    assert ".." not in fourth.id


def test_a_run_without_a_build_joins_the_run_before_it_on_the_same_day() -> None:
    """It makes no point of its own on the axis; the first run of a day has nothing to join."""
    known = DatedRun("a", NOW, TorchBuild("2.13.0"))
    assert dated_run("b", NOW + 60, TorchBuild(), [known]).snapshot == known.snapshot
    assert dated_run("c", NOW + 86_400, TorchBuild(), [known]).snapshot.endswith("-unknown")
    assert dated_run("d", NOW + 60, TorchBuild("2.12.1"), [known]).snapshot != known.snapshot


def test_ages_count_from_this_moment_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A site that is built while every machine is dead says how old its results are."""
    _run(tmp_path, NOW - 30 * DAY, Status.PASS)
    monkeypatch.setattr(site_data, "SYSTEM_CLOCK", SimpleNamespace(now=lambda: NOW))
    for data in (read_site_data(Store.open(tmp_path)), read_site_data(Store.open(tmp_path), NOW)):
        (entry,) = data.latest.entries.values()
        assert entry.age_s == pytest.approx(30 * DAY - 60)
        assert "stale" in entry.marks
    (entry,) = read_site_data(Store.open(tmp_path), NOW - 31 * DAY).latest.entries.values()
    assert (entry.age_s, entry.known_age_s) == (0.0, 0.0)


def test_another_model_by_the_name_is_marked_and_breaks_the_line(tmp_path: Path) -> None:
    """Also where it came with an earlier run of the day; a night without a model changes nothing."""
    nights = {4: ("a",), 3: ("a",), 2: ("a", "b", "b"), 1: ("",), 0: ("b",)}
    for days, hashes in nights.items():
        for number, built in enumerate(hashes):
            _run(
                tmp_path / "store",
                NOW - days * DAY - 3_600 + number * 60,
                Status.PASS if built else Status.INFRA,
                measurements=timings(random.Random(1), 0.01, None, "cpu"),
                realised=Realised(built, 1, 0, "") if built else None,
            )
    data = read_site_data(Store.open(tmp_path / "store"), NOW)
    (places,) = data.recent.mark(REBUILT).tolist()
    assert places == [False, False, True, False, False]
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    (page,) = (tmp_path / "site" / "models").rglob("*.html")
    drawn = page.read_text(encoding="utf-8")
    assert 'class="rebuilt"' in drawn
    assert "the model changed 1 time, at each dashed line" in drawn
    (series,) = (tmp_path / "site").glob("series/*/*/*.json")
    assert '"rebuilt":[2]' in series.read_text()

"""Geometric means over time: over the same cases on both sides, with gaps where there is no mean."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from site_files import generator, small_shape
from store_builder import CPU, DAY, EAGER, NOW, RunBuilder, environment, result, timings, workloads

from torchgauge.dashboard import build_site
from torchgauge.dashboard.trend_lines import _QUANTILES, mean_line
from torchgauge.records import Case, Status


def test_a_point_is_the_mean_of_ratios_over_the_cases_of_both_sides() -> None:
    """Against the definition, case by case, with the interval of scipy's Student's t."""
    from scipy import stats

    rng = np.random.default_rng(3)
    logs = rng.normal(0, 3, (30, 1)) + rng.normal(0, 0.02, (30, 9))
    logs[rng.random(logs.shape) < 0.1] = np.nan
    found = mean_line(logs)
    assert found is not None
    assert found.reference == 0
    for place in range(9):
        ratios = [row[place] - row[0] for row in logs if np.isfinite(row[place]) and np.isfinite(row[0])]
        assert found.n[place] == len(ratios)
        assert found.median[place] == pytest.approx(np.exp(np.mean(ratios)))
        if place:
            low, high = stats.t.interval(0.95, len(ratios) - 1, np.mean(ratios), stats.sem(ratios))
            assert (found.low[place], found.high[place]) == pytest.approx(
                (np.exp(low), np.exp(high)), rel=1e-5
            )


def test_the_quantiles_are_those_of_student() -> None:
    from scipy import stats

    assert [_QUANTILES[n] for n in range(2, 400)] == pytest.approx(
        [stats.t.ppf(0.975, n - 1) for n in range(2, 400)], rel=2e-3
    )


def test_a_slow_model_that_is_missing_moves_nothing() -> None:
    """A mean over whatever passed would fall to a fraction of itself."""
    logs = np.log(np.array([[1e-3] * 4, [2e-3] * 4, [9.0, 9.0, np.nan, 9.0]]))
    found = mean_line(logs)
    assert found is not None
    assert found.median.tolist() == pytest.approx([1, 1, 1, 1])
    assert found.n.tolist() == [3, 3, 2, 3]


def test_a_run_of_a_few_models_by_hand_is_a_gap_and_no_reference() -> None:
    logs = np.zeros((20, 4))
    logs[3:, [0, 2]] = np.nan
    found = mean_line(logs)
    assert found is not None
    assert found.reference == 1
    assert np.isnan(found.median).tolist() == [True, False, True, False]
    assert found.n.tolist() == [3, 20, 3, 20]


def test_without_any_number_there_is_no_line() -> None:
    assert mean_line(np.full((3, 4), np.nan)) is None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site over two epochs; the last device is silent in the last two nights."""
    folder = tmp_path_factory.mktemp("trends")
    generator().generate(folder, small_shape(nights=67, models=4, silent=2))
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


def _json(path: Path) -> Any:
    def refuse(name: str) -> None:
        raise AssertionError(name)

    return json.loads(path.read_text(), parse_constant=refuse)


def test_the_files_of_every_epoch_agree_with_the_series(made: Path) -> None:
    """Passes are counted anew from the letters of the series, and means from their numbers."""
    devices = {device["id"]: device["name"] for device in _json(made / "manifest.json")["devices"]}
    for epoch in (0, 1):
        index = _json(made / f"trends/{epoch}.json")
        assert sorted(index["devices"]) == sorted(devices)
        for device in devices:
            trend = _json(made / f"trends/{device}/{epoch}.core.json")
            cases = [
                case
                for path in (made / "series" / device).glob(f"*/{epoch}.json")
                for case in _json(path)["cases"]
            ]
            assert trend["snapshots"] == index["snapshots"]
            for line in (line for line in trend["lines"] if not line["suite"]):
                own = [case for case in cases if case["configuration"] == line["configuration"]]
                _check(line, own, len(index["snapshots"]))


def _check(line: dict[str, Any], cases: list[dict[str, Any]], length: int) -> None:
    for place in range(length):
        good = [c for c in cases if c["status"][place] == "p" and place not in c["marks"].get("degraded", [])]
        heard = [c for c in cases if c["status"][place] not in "in."]
        assert line["passed"][place] == (len(good) if heard else None)
        assert line["planned"][place] == sum(c["status"][place] != "." for c in cases)
    mean = line["metrics"]["latency"]
    reference = mean["reference"]

    def value(case: dict[str, Any], place: int) -> float | None:
        usable = case["status"][place] == "p" and place not in case["marks"].get("degraded", [])
        found: float | None = case["metrics"].get("latency", {"median": [None] * length})["median"][place]
        return found if usable else None

    for place in range(length):
        pairs = [(value(c, reference), value(c, place)) for c in cases]
        logs = [np.log(b / a) for a, b in pairs if a and b]
        assert mean["n"][place] == len(logs)
        if mean["median"][place] is not None:
            assert mean["median"][place] == pytest.approx(
                np.exp(np.mean(logs)), rel=5e-4
            )  # of series with four digits


def test_the_page_reads_without_scripts(made: Path) -> None:
    """A drawing, the newest mean with n, and a row for every snapshot."""
    html = (made / "trends.html").read_text()
    snapshots = [snapshot["id"] for snapshot in _json(made / "manifest.json")["snapshots"]]
    assert html.count('<svg class="trend"') == 4
    assert html.count('class="band"') == 4
    assert all(html.count(f">{name}<") == 1 for name in snapshots)
    assert re.search(r"n \d+ of \d+", html)
    assert "not planned" in html.split(snapshots[-1])[1].split("</tr>")[0]
    assert 'class="gap"' in html


def test_two_epochs_are_not_joined(made: Path) -> None:
    """Each has a reference of its own, so that a line across would show a step that nobody measured."""
    html = (made / "trends.html").read_text()
    for svg in re.findall(r'<svg class="trend".*?</svg>', html, re.DOTALL):
        line = re.findall(r'<path d="(M[^"V]*)"', svg)[0]
        assert line.count("M") >= 2


def test_a_store_of_failures_says_that_there_is_no_number(tmp_path: Path) -> None:
    run = RunBuilder("run", NOW - DAY)
    run.environments.append(environment("cpu"))
    for workload in workloads()[:3]:
        result(run, Case(workload, EAGER, CPU), Status.CRASH)
    run.write(tmp_path / "store")
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    html = (tmp_path / "site" / "trends.html").read_text()
    assert "no number" in html
    assert "0/3" in html
    assert "There is one snapshot of one device so far" in (tmp_path / "site" / "compare.html").read_text()


def test_an_empty_store_says_what_to_do(tmp_path: Path) -> None:
    from torchgauge.results.store import Store

    Store.open(tmp_path / "store", create=True)
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    for name in ("trends.html", "compare.html"):
        assert "no published run" in (tmp_path / "site" / name).read_text()


def test_one_case_has_a_mean_and_no_interval(tmp_path: Path) -> None:
    import random

    for day in (2, 1):
        run = RunBuilder(f"run{day}", NOW - day * DAY)
        run.environments.append(environment("cpu"))
        result(
            run, Case(workloads()[0], EAGER, CPU), measurements=timings(random.Random(day), 0.01, None, "cpu")
        )
        run.write(tmp_path / "store")
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    assert "one case" in (tmp_path / "site" / "trends.html").read_text()

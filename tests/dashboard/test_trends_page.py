"""Geometric means over time: over the same cases on both sides, with gaps where there is no mean."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from site_files import generator, small_shape
from store_builder import CPU, DAY, EAGER, NOW, RunBuilder, environment, result, timings, workloads

from torchgauge.dashboard import build_site
from torchgauge.dashboard.trend_lines import mean_line
from torchgauge.records import Case, Status


def test_a_point_is_the_mean_of_ratios_over_the_cases_of_both_sides() -> None:
    """Against the definition, case by case, with the interval of scipy's Student's t."""
    from scipy import stats

    rng = np.random.default_rng(3)
    logs = rng.normal(0, 3, (30, 1)) + rng.normal(0, 0.02, (30, 9))
    logs[rng.random(logs.shape) < 0.1] = np.nan
    found = mean_line(logs, np.zeros(len(logs), np.bool_))
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


def test_a_slow_model_that_is_missing_moves_nothing() -> None:
    """A mean over whatever passed would fall to a fraction of itself."""
    logs = np.log(np.array([[1e-3] * 4, [2e-3] * 4, [9.0, 9.0, np.nan, 9.0]]))
    found = mean_line(logs, np.zeros(len(logs), np.bool_))
    assert found is not None
    assert found.median.tolist() == pytest.approx([1, 1, 1, 1])
    assert found.n.tolist() == [3, 3, 2, 3]


def test_a_run_of_a_few_models_by_hand_is_a_gap_and_no_reference() -> None:
    logs = np.zeros((20, 4))
    logs[3:, [0, 2]] = np.nan
    found = mean_line(logs, np.zeros(len(logs), np.bool_))
    assert found is not None
    assert found.reference == 1
    assert np.isnan(found.median).tolist() == [True, False, True, False]
    assert found.n.tolist() == [3, 20, 3, 20]


def test_without_any_number_there_is_no_line() -> None:
    assert mean_line(np.full((3, 4), np.nan), np.zeros(3, np.bool_)) is None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site over two epochs; the last device is silent in the last two nights."""
    folder = tmp_path_factory.mktemp("trends")
    generator().generate(folder, small_shape(nights=67, models=4, silent=2))
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


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
    assert "One snapshot of one device so far" in (tmp_path / "site" / "compare.html").read_text()


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
    assert "no interval" in (tmp_path / "site" / "trends.html").read_text()

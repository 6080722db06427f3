"""Numbers that no machine measures: refused at the door, and never the end of what reads a store."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).parents[1]))

from campaign_sets import Files, Night, rerowed
from stored_runs import BEGIN, DAY, case, environment, result, run
from submitted_sets import kept, measured, refused

from torchgauge.cli.main import cli
from torchgauge.results.log_ratio import change_of, ratio_of
from torchgauge.results.store import Store
from torchgauge.results.trends.change_points import change_points
from torchgauge.workflows.ingest.refusal import Reason

LEAST, MOST = 5e-324, 6e5
MODELS = ("linear", "conv")


@pytest.mark.parametrize("seconds", [LEAST, 1e-300, 1e-24, 9e-13])
def test_no_step_takes_less_than_a_picosecond(
    seconds: float, night: Night, good: Files, tmp_path: Path
) -> None:
    """Also where it is one sample of many."""
    files = rerowed(good, lambda row: measured(row, latency=[seconds] * 10))
    assert refused(night, files, tmp_path)[0] is Reason.NUMBER
    one = rerowed(good, lambda row: measured(row, latency=[1e-3] * 9 + [seconds]))
    assert refused(night, one, tmp_path / "one")[0] is Reason.NUMBER


def test_what_is_short_and_can_be_is_taken(night: Night, good: Files, tmp_path: Path) -> None:
    """A nanosecond is no lie, and two clocks may disagree by as good as nothing."""
    files = rerowed(good, lambda row: measured(row, latency=[1e-9] * 10))
    assert kept(night, files, tmp_path)["status"] == "pass"
    wall, on_device = 1e-3, 1e-3 + 8e-13
    series = {"latency": wall, "latency_device": on_device, "launch_overhead": wall - on_device}
    files = rerowed(good, lambda row: measured(row, **{name: [each] * 10 for name, each in series.items()}))
    assert kept(night, files, tmp_path / "apart")["status"] == "pass"


@pytest.mark.parametrize("ends", [(LEAST, MOST), (MOST, LEAST)])
def test_a_series_of_such_numbers_has_a_change_and_no_end(ends: tuple[float, float]) -> None:
    """Its size saturates: another change can be told from it."""
    found = change_points([ends[0]] * 12 + [ends[1]] * 12)
    assert [point.index for point in found.points] == [12]
    assert -1 < found.points[0].size < math.inf


@pytest.mark.parametrize("log", [-1e9, -745.0, 0.0, 745.0, 1e9])
def test_ratios_and_changes_are_always_numbers(log: float) -> None:
    """Whatever the logarithm, so that a report can hold them."""
    assert 0 < ratio_of(log) < math.inf
    assert -1 < change_of(log) < math.inf


@pytest.mark.parametrize("ends", [(LEAST, MOST), (MOST, LEAST)])
def test_two_runs_of_such_numbers_can_be_compared(ends: tuple[float, float], tmp_path: Path) -> None:
    """With a history of them, and without: a store of before may have them."""
    store = Store.open(tmp_path / "store", create=True)
    for number in range(8):
        seconds = ends[number % 2]
        samples = [seconds * (1 + 0.001 * (i % 7)) for i in range(10)]
        rows = [result(case(name), samples, started_at=BEGIN + number * DAY + 1) for name in MODELS]
        at = BEGIN + number * DAY
        run(store, f"20260528T20260{number}Z-0000000{number}", rows, environment(), at=at)
    runs = store.published()
    for pair in (runs[:2], runs[-2:]):
        done = CliRunner().invoke(cli, ["compare", *pair, "--store", str(store.path)])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert "toy/linear" in done.output

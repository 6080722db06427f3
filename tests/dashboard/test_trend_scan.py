"""A store on which nobody ran ``torchgauge results trend`` is read by the build, which writes nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from page_text import words
from site_files import files_of
from store_builder import CPU, DAY, EAGER, NOW, RunBuilder, environment, result

from torchgauge.dashboard import build_site, trend_scan
from torchgauge.records import Case, Measurement, Workload
from torchgauge.results.store import Store
from torchgauge.results.trends.trend import trend
from torchgauge.results.trends.trend_findings import TrendFilter, keep


def _store(path: Path, nights: int = 40) -> Path:
    """So many nights of two models, of which one takes a third more time from the last ten on."""
    rng = random.Random(3)
    for night in range(nights):
        run = RunBuilder(f"night-{night:03d}", NOW - (nights - night) * DAY)
        run.environments.append(environment("cpu"))
        for name, factor in (("steady", 1.0), ("slow", 1.33 if nights - night <= 10 else 1.0)):
            samples = tuple(1e-3 * factor * rng.lognormvariate(0, 0.005) for _ in range(15))
            latency = Measurement("latency", "s", samples, tuple(range(15)), "perf_counter")
            result(run, Case(Workload("toy", name), EAGER, CPU), measurements=[latency])
        run.write(path)
    return path


def test_a_change_is_found_without_anybody_looking_for_it(tmp_path: Path) -> None:
    """On the page of regressions, in its data and in the feed; the store has the files that it had."""
    store = _store(tmp_path / "store")
    before = files_of(store)
    build_site(store, tmp_path / "site", now=NOW)
    assert files_of(store) == before
    (change,) = json.loads((tmp_path / "site" / "data" / "regressions.json").read_bytes())["changes"]
    assert (change["model"], change["worse"], change["state"]) == ("slow", True, "suspected")
    assert change["size"] == pytest.approx(0.33, abs=0.03)
    text = words(tmp_path / "site" / "regressions.html")
    assert "Computed by this build" in text
    assert "Slower or worse (1)" in text
    assert "latency of toy/slow" in (tmp_path / "site" / "feed.xml").read_text()


def test_it_is_what_trend_would_have_found(tmp_path: Path) -> None:
    """Kept or not, the same changes; what was kept counts and is not looked for again."""
    store = _store(tmp_path / "store")
    build_site(store, tmp_path / "scanned", now=NOW)
    wanted = TrendFilter()
    keep(Store.open(store), trend(Store.open(store), wanted), wanted, NOW)
    build_site(store, tmp_path / "kept", now=NOW)
    sides = [
        json.loads((tmp_path / name / "data" / "regressions.json").read_bytes())
        for name in ("scanned", "kept")
    ]
    assert sides[0] == sides[1]
    assert "Computed by this build" not in words(tmp_path / "kept" / "regressions.html")


def test_a_short_history_says_that_it_is_too_short(tmp_path: Path) -> None:
    """Nothing could be found in it."""
    build_site(_store(tmp_path / "store", trend_scan.ENOUGH - 1), tmp_path / "site", now=NOW)
    text = words(tmp_path / "site" / "regressions.html")
    assert "Regression detection requires 20 nights with a number; no case has so many yet." in text
    front = words(tmp_path / "site" / "index.html")
    assert "Regressions Regression detection requires 20 nights with a number" in front


def test_a_large_store_says_that_it_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build has seconds, and the detector would take minutes."""
    monkeypatch.setattr(trend_scan, "MOST_NUMBERS", 50)
    build_site(_store(tmp_path / "store", 30), tmp_path / "site", now=NOW)
    text = words(tmp_path / "site" / "regressions.html")
    assert "Not computed for a store this large" in text
    assert "torchgauge results trend --store DIR" in text

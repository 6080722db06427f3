"""Overview, compatibility and performance: what the pages say and weigh, and the numbers behind them."""

from __future__ import annotations

import gzip
import math
import random
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from store_builder import CPU, DAY, EAGER, INDUCTOR, NOW, NPU, RunBuilder, result, timings, workloads

from torchgauge.dashboard import build_site
from torchgauge.dashboard.device_notices import DeviceNotices
from torchgauge.dashboard.freshness import Freshness, Reporter
from torchgauge.dashboard.latest_results import Column, Entry, LatestResults
from torchgauge.dashboard.pages.compatibility import compatibility_page
from torchgauge.dashboard.pages.noise import Movement, thresholds
from torchgauge.dashboard.renderer import Renderer
from torchgauge.records import Case, Measurement, Realised, Status, Workload

SITE = {"version": "0", "generated": "now", "empty": False, "pages": (("index.html", "Overview"),)}
SITE |= {"notices": DeviceNotices(), "freshness": Freshness(0.0, {}, Reporter("", None, None))}
FIRST_LOAD = 60_000
"""Bytes, compressed, of a page with all that it loads before anybody does anything."""


def _text(path: Path) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", path.read_text()))


def _large_results() -> LatestResults:
    """200 models on four devices in six configurations, a quarter of the cases not passing."""
    rng = random.Random(5)
    configurations = ("eager", "aot", "inductor", "max-autotune", "reduce-overhead", "threads-1")
    columns = [
        Column(device, name, name not in ("eager", "threads-1"))
        for device in ("cpu", "cuda", "npu", "xpu")
        for name in configurations
    ]
    entries = {}
    for index in range(200):
        name = f"{('resnet', 'vit', 'bert', 'opt')[index % 4]}_{index}"
        workload = Workload(
            "timm" if index % 2 else "huggingface", name, "training", "float32", 8, "small", (), 1234
        )
        for column in columns:
            status = Status.PASS if rng.random() < 0.75 else rng.choice(list(Status))
            marks = ("unexpected",) if status is not Status.PASS and rng.random() < 0.8 else ()
            value, half = rng.uniform(1e-3, 1e-1), 10 ** rng.uniform(-3, -1.5)
            number = {
                "metric": "latency",
                "unit": "s",
                "n": 15,
                "absent": None,
                "median": value,
                "low": value * (1 - half),
                "high": value * (1 + half),
                "confidence": 0.95,
            }
            row = {
                "run_id": "r",
                "facts": "{}",
                "modifiers": [],
                "realised_hash": None,
                "case_key": "k",
                "torch_version": None,
            }
            entries[workload, column] = Entry(
                workload, column, status, marks, row, 60.0, row, 60.0,
                {"latency": number} if status is Status.PASS else {}, row,
            )  # fmt: skip
    return LatestResults(entries, len(entries), 0)


@pytest.fixture(scope="module")
def large() -> LatestResults:
    """Latest results of 4,800 cells."""
    return _large_results()


def _weight(page: str, static: Path) -> int:
    """Compressed bytes of a page, its style and all modules that it may load before somebody asks."""
    parts = ("age", "columns", "controls", "grid", "line", "matrix", "rows", "start", "state")
    names = ("style.css", "matrix.css", *(f"{part}.js" for part in parts))
    files = [page.encode(), *((static / name).read_bytes() for name in names)]
    return sum(len(gzip.compress(data, 6)) for data in files)


def test_a_compatibility_page_of_4800_cells_is_light(large: LatestResults, site: Path) -> None:
    """Every cell is there, with text and a link, within the weight of a first load and few requests."""
    page = Renderer(SITE).page("compatibility", "compatibility.html", page=compatibility_page(large))
    assert len(re.findall(r"<td class=[paectousin]><a href=models/[^>]+#c[^>]+>\w", page)) == 4_800
    assert _weight(page, site / "static") < FIRST_LOAD
    assert len(re.findall(r' src="|<link ', page)) <= 6
    assert "style=" not in page


def test_a_threshold_is_the_third_quartile_and_three_ranges() -> None:
    """Per series, with gaps, and not at all where there is too little history."""
    rng = np.random.default_rng(3)
    changes = np.abs(rng.normal(0, 0.02, (5, 40)))
    changes[1, 5:20] = np.nan
    changes[2, 3:] = np.nan
    found = thresholds(changes)
    for row in (0, 1, 3, 4):
        first, third = np.nanquantile(changes[row], [0.25, 0.75])
        assert found[row] == pytest.approx(third + 3 * (third - first), rel=1e-12)
    assert math.isnan(found[2])


def test_the_significance_factor_is_the_change_over_the_threshold() -> None:
    """A series that never moved is exceeded by any change."""
    assert Movement(1.1, 1.0, 0.02).factor == pytest.approx(math.log(1.1) / 0.02)
    assert Movement(1.1, 1.0, None).factor is None
    assert Movement(1.1, 1.0, 0.0).factor == math.inf
    assert Movement(1.0, 1.0, 0.0).factor == 0.0


def _nights(path: Path, nights: int, statuses: dict[str, list[Status]], *, slow: float = 1.0) -> None:
    """One run per night and device; a device whose list is over stays silent. The last night is slower."""
    rng = random.Random(4)
    for night in range(nights):
        run = RunBuilder(f"n{night:02d}", NOW - (nights - night) * DAY)
        for device in (CPU, NPU):
            known = statuses[device.name]
            if night >= len(known):
                continue
            base = 0.01 * (slow if night == nights - 1 else 1.0)
            case = Case(workloads()[0], EAGER, device)
            measured = timings(rng, base, None, "x") if known[night] is Status.PASS else []
            result(run, case, known[night], measurements=measured)
        run.write(path)


def test_a_change_beyond_the_noise_of_its_series_is_marked(tmp_path: Path) -> None:
    """The view against the result before says by how many times the threshold is exceeded."""
    passes = [Status.PASS] * 9
    _nights(tmp_path / "store", 9, {"cpu": passes, "npusim": passes[:3]}, slow=1.5)
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    page = (tmp_path / "site" / "performance-previous.html").read_text()
    loud = re.findall(r'<td class="p x w\d">\+(\d+\.\d)%<i>±[\d.]+% ([\d.e+]+)x noise</i>', page)
    assert len(loud) == 1
    assert 45 < float(loud[0][0]) < 55
    assert float(loud[0][1]) > 3
    front = _text(tmp_path / "site" / "index.html")
    assert re.search(r"Geomean latency \+(4|5)\d\.\d%.* since the previous run", front)


def test_a_ratio_needs_a_baseline_that_was_built_alike(tmp_path: Path) -> None:
    """Where there is none the cell says why; the baseline itself stays absolute."""
    run, rng = RunBuilder("r", NOW - 60), random.Random(1)
    plans = ((0, "same", "same", 0.5), (1, "one", "other", 0.5), (2, "same", "same", None))
    for index, left, right, base in plans:
        for configuration, built, value in ((EAGER, left, base), (INDUCTOR, right, 0.25)):
            case = Case(workloads()[index], configuration, CPU)
            measured = (
                timings(rng, value, None, "x") if value else [Measurement("latency", "s", absent="no clock")]
            )
            result(run, case, measurements=measured, realised=Realised(built, 1, 0, ""))
    run.write(tmp_path / "store")
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    page = (tmp_path / "site" / "performance.html").read_text()
    rows = [
        re.split(r'<td class="p(?: \w\d)?">', cells)[1:]
        for cells in re.findall(r"</th>(<td.*)", page)
        if "td class" in cells
    ][:3]
    plain = [[re.sub(r"<[^>]*>", " ", cell).split() for cell in row] for row in rows]
    ratios = {tuple(row[1][1:]) for row in plain if not row[1][0].endswith("x")}
    assert sum(row[1][0].endswith("x") and 1.8 < float(row[1][0][:-1]) < 2.2 for row in plain) == 1
    assert ratios == {("built", "differently"), ("no", "baseline")}
    assert any(row[0] == ["\u2013", "no", "clock"] for row in plain)


def test_one_device_with_eager_only_has_no_ratio(tmp_path: Path) -> None:
    """The first page is then the one of absolute numbers."""
    run = RunBuilder("r", NOW - 60)
    case = Case(workloads()[0], replace(EAGER), CPU)
    result(run, case, measurements=timings(random.Random(1), 0.0123, None, "x"))
    run.write(tmp_path / "store")
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    names = sorted(path.name for path in (tmp_path / "site").glob("performance*.html"))
    assert names == ["performance-memory.html", "performance-previous.html", "performance.html"]
    assert "Latency, in ms" in _text(tmp_path / "site" / "performance.html")
    assert "no previous run" in _text(tmp_path / "site" / "performance-previous.html")

"""Means under the columns of a matrix: each column with its baseline, in page and browser alike."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_text import words
from patience import until
from store_builder import (
    CPU,
    DAY,
    EAGER,
    INDUCTOR,
    NOW,
    NPU,
    RunBuilder,
    environment,
    result,
    timings,
    workloads,
)
from test_matrix_pages import _large_results

from torchgauge.dashboard import build_site
from torchgauge.dashboard.latest_results import Column
from torchgauge.dashboard.pages import geomean, views
from torchgauge.dashboard.pages.column_means import ColumnMean, column_means
from torchgauge.dashboard.pages.heat import heat
from torchgauge.dashboard.pages.views import Against, View
from torchgauge.dashboard.trend_lines import student
from torchgauge.records import Better, Case, Modifier, Status, Workload

T_975 = {1: 12.7062, 2: 4.3027, 3: 3.1824, 5: 2.5706, 10: 2.2281, 30: 2.0423, 1000: 1.9623}
"""The 97.5 % quantile of Student's t by degrees of freedom, from a printed table."""


def _mean(latest: Any, view: View, column: Column) -> ColumnMean:
    columns = tuple(c for c in latest.columns if view.eager or c.compiled)
    found = column_means(latest, view, columns, views.Readers(latest, {}))
    return found.columns[columns.index(column)]


def test_every_one_of_24_columns_has_a_mean_with_its_own_n() -> None:
    """Though no workload has a number in all of them: each column is compared with its baseline by itself."""
    latest = _large_results()
    passed = {key for key, entry in latest.entries.items() if entry.status is Status.PASS}
    assert not any(all((w, c) in passed for c in latest.columns) for w in latest.workloads)
    absolute = next(view for view in views.views(latest) if view.against is Against.NOTHING)
    found = column_means(latest, absolute.averaged, latest.columns, views.Readers(latest, {}))
    assert found.label == "speed-up over cpu · eager"
    base = next(c for c in latest.columns if c.name == "cpu · eager")
    assert [mean.text for mean in found.columns].count("baseline") == 1
    for column, mean in zip(latest.columns, found.columns, strict=True):
        both = [w for w in latest.workloads if {(w, column), (w, base)} <= passed]
        if column == base:
            continue
        logs = [
            math.log(
                latest.entries[w, base].numbers["latency"]["median"]
                / latest.entries[w, column].numbers["latency"]["median"]
            )
            for w in both
        ]
        assert len(both) > 100
        assert mean.beside.endswith(f", n {len(both)}")
        assert float(mean.text.rstrip("x")) == pytest.approx(math.exp(statistics.fmean(logs)), rel=6e-3)
        half = 1.98 * statistics.stdev(logs) / math.sqrt(len(logs))
        assert float(re.findall(r"±(\d+)%", mean.beside)[0]) == pytest.approx(100 * math.expm1(half), abs=0.7)
        told = sum(int(part.split()[0]) for part in mean.left_out.split(", "))
        assert told + len(both) == len(latest.workloads)


def test_the_interval_of_a_mean_is_that_of_student() -> None:
    """Against a printed table; two workloads have no interval."""
    for freedom, wanted in T_975.items():
        assert float(student(np.array([freedom]))[0]) == pytest.approx(wanted, rel=1.3e-3)
    found = geomean.mean_of([0.5, 1.0, 2.0])
    assert found is not None
    assert (found.estimate, found.n) == (pytest.approx(1.0), 3)
    assert math.log(found.high or 0) == pytest.approx(T_975[2] * math.log(2) / math.sqrt(3), rel=1e-3)
    assert geomean.mean_of([]) is None
    alone = geomean.mean_of([2.0, 8.0])
    assert alone is not None
    assert (alone.low, geomean.interval_text(alone)) == (None, "no interval")


def test_a_mean_leaves_out_what_is_in_doubt_on_either_side(tmp_path: Path) -> None:
    """An unsteady number, an unsteady baseline and a failure are named, with how many of each."""
    from torchgauge.dashboard.site_data import read_site_data
    from torchgauge.results.store import Store

    run, rng = RunBuilder("r", NOW - 60), random.Random(1)
    for index, workload in enumerate(workloads()[:6]):
        for configuration in (EAGER, INDUCTOR):
            case = Case(workload, configuration, CPU)
            loud = (index, configuration) in ((0, EAGER), (1, INDUCTOR))
            status = Status.OOM if (index, configuration) == (2, INDUCTOR) else Status.PASS
            measured = timings(rng, 0.1 if configuration is EAGER else 0.05, None, "cpu")
            result(
                run, case, status, measurements=measured if status is Status.PASS else (),
                modifiers=(Modifier.UNSTEADY,) if loud else (),
            )  # fmt: skip
    run.write(tmp_path / "store")
    latest = read_site_data(Store.open(tmp_path / "store"), NOW).latest
    view = next(view for view in views.views(latest) if view.against is Against.EAGER)
    mean = _mean(latest, view, next(c for c in latest.columns if c.compiled))
    assert mean.text.startswith("2.0") or mean.text.startswith("1.99")
    assert mean.beside.endswith(", n 3")
    assert mean.left_out == "1 OOM, 1 baseline unsteady, 1 unsteady"


@pytest.fixture(scope="module")
def with_toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of two nights, each with its version of torch, in which toys alone change."""
    folder = tmp_path_factory.mktemp("toys")
    for night, torch in enumerate(("2.12.0", "2.13.0")):
        run, rng = RunBuilder(f"night-{night}", NOW - (2 - night) * DAY), random.Random(night)
        for device in (CPU, NPU):
            of = replace(environment(device.name), identity=(("torch", torch),))
            run.environments.append(of)
            for place, configuration in itertools.product(range(6), (EAGER, INDUCTOR)):
                suite, faster = ("toy", 9) if place > 3 else ("timm", 1)
                case = Case(Workload(suite, f"m{place}"), configuration, device)
                base = 0.1 / faster ** (night + (device is NPU))
                gain = 2.0 * faster if configuration is INDUCTOR else None
                measured = timings(rng, base, gain, device.name)
                result(run, case, environment_id=of.id, measurements=measured)
        run.write(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


@pytest.mark.parametrize(
    ("page", "mean"),
    [
        ("index.html", r"(2\.0\d|1\.99)x ±[^ ]+ n = 4, 2 toy left out"),
        (
            "pictures/speedups-inductor-????????.svg",
            r"cpu (2\.0\d|1\.99)x \[.*?: 4 faster, 2 without a ratio;.* 2 toy",
        ),
        ("pictures/devices-npusim-*.svg", r"speed-up of (1\.0\d|0\.99\d)x .*, 2 without a ratio\..* toy"),
        ("pictures/versions-cpu-????????.svg", r"inductor (1\.0\d|0\.99\d)x .*, 2 without a ratio\..* 2 toy"),
        ("compare.html", r"(1\.0\d\d|0\.99\d)x \S+ \S+ \(n 8, 4 excluded, including 4 toy\)"),
        ("trends.html", r"(1\.0\d|0\.99\d)x \S+ \S+ on [-\d]+ since [-\d]+, n 4 of 6, 2 toy left out"),
    ],
)
def test_no_mean_counts_toys_and_each_states_how_many(with_toys: Path, page: str, mean: str) -> None:
    """Compiled, models are twice as fast; nothing else changes but toys, by a factor of nine."""
    path = min(with_toys.glob(page), key=lambda found: len(found.name))
    assert re.search(mean, words(path)), words(path)


@pytest.mark.parametrize(
    ("ratio", "half", "better", "wanted"),
    [
        (0.95, 2.0, Better.LOWER, "b1"), (0.85, 2.0, Better.LOWER, "b2"), (0.5, 2.0, Better.LOWER, "b3"),
        (2.0, 2.0, Better.HIGHER, "b3"), (0.5, 2.0, Better.HIGHER, "w3"),
        (2.0, 80.0, Better.LOWER, ""), (2.0, 2.0, Better.NEITHER, ""), (0.0, 2.0, Better.LOWER, ""),
    ],
)  # fmt: skip
def test_a_colour_stands_only_where_the_interval_excludes_1(
    ratio: float, half: float | None, better: Better, wanted: str
) -> None:
    assert heat(ratio, half, better) == wanted


# -- In the browser ----------------------------------------------------------------------------------------

_MEANS = """() => [
  ...[...document.querySelectorAll("tr[data-means] td")].map((cell) => cell.textContent),
  ...[...document.querySelectorAll("[data-left-out] li")].map((item) => item.textContent),
]"""
_CELLS = """() => [...document.querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll("td")]
  .map((cell) => cell.className + " " + cell.textContent))"""


def _anchor(site: Path, column: str) -> str:
    page = (site / "performance-latency.html").read_text()
    device, configuration = column.split(" · ")
    found = re.search(
        rf'data-device="{device}" data-anchor="(\w+)"><span>{device}</span> <b>{configuration}</b>', page
    )
    assert found is not None
    return found[1]


def _views(site: Path) -> list[str]:
    return sorted(p.name for p in site.glob("performance*.html") if "data-means" in p.read_text())


def test_means_of_all_rows_have_the_digits_of_the_page(site: Path, address: str, browser: Any) -> None:
    """Of every view: a query that is taken back has them worked out again, to the last character."""
    names = _views(site)
    assert len(names) == 5
    for name in names:
        page = browser.new_page()
        page.goto(address + name)
        built = page.evaluate(_MEANS)
        page.get_by_label("Query").fill("resnet18 mode:training")
        page.get_by_text("1 of 24 rows").wait_for()
        until(page, "/no interval|no number/.test(document.querySelector('tr[data-means]').innerText)")
        assert page.evaluate(_MEANS) != built
        page.get_by_label("Query").fill("")
        page.get_by_text("24 rows", exact=True).wait_for()
        until(page, "/±/.test(document.querySelector('tr[data-means]').innerText)")
        assert page.evaluate(_MEANS) == built, name
        page.close()


def test_a_baseline_in_the_address_gives_the_cells_and_means_of_the_page_with_that_baseline(
    site: Path, address: str, browser: Any
) -> None:
    """Cell by cell and class by class: of its device on the page of ratios, and the means of that in ms."""
    base = _anchor(site, "cpu · eager")
    page = browser.new_page()
    page.goto(address + "performance.html")
    ratios = page.evaluate(_CELLS)
    page.goto(address + "performance-latency.html")
    means = page.evaluate(_MEANS)
    page.goto(address + f"performance-latency.html?base={base}")
    until(page, "document.querySelector('tbody td').textContent.startsWith('1x')")
    until(page, "document.querySelector('h1').textContent.includes('speed-up over cpu · eager')")
    chosen = page.evaluate(_CELLS)
    assert [row[1] for row in chosen] == [row[1] for row in ratios]
    assert sum(bool(re.search(r"\dx", row[1])) for row in chosen) >= 15
    assert page.evaluate(_MEANS) == means
    page.close()


def test_means_follow_the_query_the_baseline_and_hidden_devices(
    site: Path, address: str, browser: Any
) -> None:
    """The mean is that of the rows that are left, worked out by hand from the file of the numbers."""
    shard = json.loads((site / "latest" / "latency.json").read_text())
    base = _anchor(site, "npusim · eager")
    out = {place for places in shard["out"].values() for place in places}
    page = browser.new_page()
    page.goto(address + f"performance-latency.html?q=suite:timm&base={base}")
    until(page, "document.querySelector('tr[data-means]').innerText.includes('baseline')")
    page.get_by_text("14 of 24 rows").wait_for()
    width, to = len(shard["columns"]), shard["columns"].index(base)
    built = re.findall(r"<tr><th[^#]*(#\w+)", (site / "performance-latency.html").read_text())
    left = page.locator("tbody th a").evaluate_all("(links) => links.map((link) => link.hash)")
    orders = [built.index(row) for row in left]
    assert len(orders) == 14
    texts = page.evaluate(_MEANS)[:width]
    assert texts[to] == "baseline"
    for place in {*range(width)} - {to}:
        values = [
            shard["median"][o * width + to] / shard["median"][o * width + place]
            for o in orders
            if not {o * width + place, o * width + to} & out
        ]
        mean = geomean.mean_of(values)
        assert mean is not None
        assert 1 < mean.n <= 14
        assert texts[place].endswith(f"{geomean.interval_text(mean)}, n {mean.n}")
        assert texts[place].startswith(f"{mean.estimate:.3g}"[:4])
    page.get_by_label("npusim", exact=True).uncheck()
    until(page, "document.querySelectorAll('tr[data-means] td:not([hidden])').length === 2")
    assert page.evaluate(_MEANS)[:width] == [*texts[:to], "baseline", *texts[to + 1 :]]
    page.close()


def test_labels_follow_the_baseline(site: Path, address: str, browser: Any) -> None:
    """Heading, title, caption, explanation and the row of means name it, and back takes it away."""
    page = browser.new_page()
    page.goto(address + "performance.html")
    title, lead = page.title(), page.locator("p.lead").text_content()
    assert "speed-up over eager" in title
    page.get_by_label("Baseline").select_option(label="npusim · inductor")
    until(page, "document.title.includes('npusim')")
    name = "speed-up over npusim · inductor"
    assert name in page.title()
    for place in ("h1", "caption", "tr[data-means] th"):
        assert name in page.locator(place).text_content(), place
    told = page.locator("p.lead").text_content()
    assert "The cells show the speed-up over npusim · inductor" in told
    assert "speed-up over eager" not in told
    assert page.locator('.views [aria-current="page"]').count() == 0
    page.go_back()
    until(page, "!document.title.includes('npusim')")
    assert (page.title(), page.locator("p.lead").text_content()) == (title, lead)
    assert page.locator('.views [aria-current="page"]').count() == 1
    page.close()

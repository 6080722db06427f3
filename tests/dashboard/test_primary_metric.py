"""A scenario of a package that measures for another metric: it is looked at by that one everywhere."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from page_text import words
from store_builder import (
    ACCURACY,
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
)

from torchgauge.dashboard import build_site
from torchgauge.dashboard.primary_metric import primary_metrics
from torchgauge.dashboard.site_data import read_site_data
from torchgauge.records import METRICS, Better, Case, Measurement, Metric, Workload
from torchgauge.results.stats import summarise
from torchgauge.results.store import Store

RATE = Metric("tokens_per_s", "1/s", Better.HIGHER, "tokens that one step generates per second")
KNOWN = {RATE.name: RATE, "flops": METRICS["flops"]}
NIGHTS = 7


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A week of models in ``inference`` and in ``generate``, whose package is not installed here.

    In the last night generation is a quarter faster on the processor, and as much slower on the other.
    """
    path, rng = tmp_path_factory.mktemp("rates") / "store", random.Random(5)
    for night in range(NIGHTS):
        run = RunBuilder(f"2025122{night}T020000Z-aaaaaaaa", NOW - (NIGHTS - night) * DAY)
        for device in (CPU, NPU):
            run.environments.append(environment(device.name))
            for place, model in enumerate(("small", "large", "huge")):
                for configuration in (EAGER, INDUCTOR):
                    workload = Workload("hf", model, "generate", batch=1)
                    last = night == NIGHTS - 1
                    factor = (1.25 if device is CPU else 0.75) if last else 1.0
                    base = 100.0 * (1 + place) * factor * (2.0 if configuration is INDUCTOR else 1.0)
                    rates = tuple(base * rng.lognormvariate(0, 0.005) for _ in range(15))
                    found = [
                        Measurement(RATE.name, RATE.unit, rates, tuple(range(15)), "perf_counter"),
                        Measurement("flops", "FLOP", (3.6e9,), provenance="counted by operator"),
                    ]
                    result(
                        run, Case(workload, configuration, device), accuracy=ACCURACY,
                        summaries=tuple(summarise(m, KNOWN[m.metric]) for m in found),
                    )  # fmt: skip
                    stepped = Workload("timm", model, "inference", batch=8)
                    measured = timings(rng, 0.01, None if configuration is EAGER else 1.3, device.name)
                    result(
                        run, Case(stepped, configuration, device), measurements=measured, accuracy=ACCURACY
                    )
        run.write(path)
    return path


@pytest.fixture(scope="module")
def site(store: Path) -> Path:
    out = store.parent / "site"
    build_site(store, out, now=NOW)
    return out


def test_a_mode_is_looked_at_by_the_metric_that_its_rows_have(store: Path) -> None:
    """Where the scenario is not installed; latency where a row has it."""
    latest = read_site_data(Store.open(store), NOW).latest
    assert primary_metrics(latest) == {"generate": "tokens_per_s", "inference": "latency"}


def test_the_front_page_has_a_mean_change_of_each(site: Path) -> None:
    text = words(site / "index.html")
    assert re.search(r"geomean tokens per s \+\d|geomean tokens per s .[0-9.]+%", text)
    assert "eomean latency" in text


def test_performance_has_views_of_it_with_the_right_direction(site: Path) -> None:
    """Twice the rate of eager is better: blue, in the unit of the store; so is a change for the better."""
    page = (site / "performance-tokens_per_s.html").read_text()
    ratios = re.findall(r'<td class="p b3">([\d.]+)x', page)
    assert len(ratios) == 6
    assert all(1.9 < float(ratio) < 2.1 for ratio in ratios)
    assert not re.findall(r'<td class="p w\d">', page)
    assert "higher is better" in words(page)
    assert "in 1/s" in words(site / "performance-tokens_per_s-absolute.html")
    previous = (site / "performance-tokens_per_s-previous.html").read_text()
    assert len(re.findall(r'<td class="p x b\d">\+2\d\.', previous)) == 6
    assert len(re.findall(r'<td class="p x w\d">\N{MINUS SIGN}2\d\.', previous)) == 6
    shard = json.loads((site / "latest" / "tokens_per_s.json").read_text())
    assert (shard["unit"], shard["better"]) == ("1/s", "higher")
    assert sum(value is not None for value in shard["median"]) == 12


def test_compare_says_better_where_the_rate_is_higher(site: Path) -> None:
    """By each metric, with the address that works it out again."""
    page = (site / "compare.html").read_text()
    sections = page.split('<section class="card comparison"')[1:]
    titles = [words(re.findall(r"<h2.*?</h2>", section)[0]).strip() for section in sections]
    assert "cpu: latest vs previous snapshot, by tokens per s" in [t.partition(">")[2] or t for t in titles]
    found = {title.split(">")[-1]: section for title, section in zip(titles, sections, strict=True)}
    for device, word in (("cpu", "better"), ("npusim", "worse")):
        section = found[f"{device}: latest vs previous snapshot, by tokens per s"]
        assert "metric=tokens_per_s" in section
        assert len(re.findall(rf'class="word v-{word}"', section)) == 6
        assert "1/s" in section


def test_trends_draw_it_and_have_its_file(site: Path) -> None:
    text = words(site / "trends.html")
    assert "Tokens per s, device by device" in text
    assert "above 1 is better" in text
    assert "Latency, device by device" in text
    (path,) = site.glob("trends/cpu-*/0.extra.json")
    lines = json.loads(path.read_text())["lines"]
    rate = next(line for line in lines if line["configuration"] == "eager" and not line["suite"])
    assert rate["metrics"]["tokens_per_s"]["median"][-1] == pytest.approx(1.25, rel=0.02)


def test_a_models_page_and_the_downloads_have_it(site: Path) -> None:
    (path,) = site.glob("models/hf-huge-*.html")
    page = path.read_text()
    assert 'data-metric="tokens_per_s"' in page
    assert '<h2 id="numbers">Tokens per s</h2>' in page
    assert len(re.findall(r'<svg class="spark"', page)) == 4
    assert "step_times" in (site / "data" / "latest.csv").read_text().splitlines()[0]


def test_the_browser_draws_and_compares_it(site: Path, serve: Callable[[Path], str], browser: Any) -> None:
    """Its trend from the address of the panel, and the comparison with the tables that were prepared."""
    base, page = serve(site), browser.new_page()
    page.goto(base + "trends.html")
    link = page.locator(".panel a[href*='metric=tokens_per_s']").first.get_attribute("href")
    page.goto(base + link)
    page.get_by_text("tokens per s, speed-up over the reference").first.wait_for()
    page.goto(base + "compare.html")
    query = page.locator("#prepared h2 a[href*='tokens_per_s']").first.get_attribute("href")
    prepared = page.locator(f"#prepared section:has(a[href='{query}'])").first
    wanted = prepared.locator("table.plain").first.locator("td, th").all_text_contents()
    page.goto(base + query)
    page.wait_for_selector("#result table")
    assert page.locator("#result table").first.locator("td, th").all_text_contents() == wanted
    assert sum("better" in text for text in wanted) == 6
    page.close()


def test_device_against_device_is_drawn_by_it(site: Path) -> None:
    """Three fifths of the rate are a speed-up of 0.6: below 1 is slower in every row."""
    (path,) = site.glob("pictures/devices-*.html")
    rows = [words(row) for row in re.findall(r"<tr>(.*?)</tr>", path.read_text(), re.DOTALL)]
    rates = [row for row in rows if row.strip().startswith("hf/")]
    assert len(rates) == 3
    for row in rates:
        found = re.search(r"([\d.]+) 1/s .* ([\d.]+) 1/s .* ([\d.]+)x", row)
        assert found is not None, row
        there, here, ratio = map(float, found.groups())
        assert ratio == pytest.approx(here / there, rel=0.01)
        assert ratio == pytest.approx(3 / 5, rel=0.02)

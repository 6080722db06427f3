"""The clock of a site: of when, which torch and which machine it is, and when it is out of date."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from page_text import words
from store_builder import CPU, DAY, EAGER, NOW, NPU, RunBuilder, environment, result

from torchgauge.dashboard import build_site
from torchgauge.dashboard.freshness import AHEAD_S, Freshness, freshness_of
from torchgauge.dashboard.site_data import read_site_data
from torchgauge.records import Case, DeviceTarget, Status, Workload
from torchgauge.results.store import Store


def _nights(store: Path, days: list[float], device: DeviceTarget = CPU, status: Status = Status.PASS) -> None:
    """A run for each number of days before NOW at which its case starts."""
    for ago in days:
        run = RunBuilder(f"{device}-{ago}".replace("-", "m"), NOW - ago * DAY - 60)
        run.environments.append(environment(device.name))
        result(run, Case(Workload("toy", "a"), EAGER, device), status)
        run.write(store)


def _fresh(store: Path, now: float = NOW) -> Freshness:
    data = read_site_data(Store.open(store), now)
    return freshness_of(data.latest, data.recent, data.environments, now)


@pytest.mark.parametrize(
    ("days", "every", "late_after"),
    [
        ([4, 3, 2, 1], 1, 1.5),
        ([9, 8, 7, 3, 2, 1], 1, 1.5),  # the nights that were lost are no rhythm
        ([22, 15, 8, 1], 7, 10.5),
        ([1, 0.45], 0.55, 1),
        ([day for day in range(40, 0, -1) if day != 17], 1, 1.5),  # nor is one in forty
        ([5], None, 8),
    ],
)
def test_a_device_is_late_by_its_own_rhythm(
    tmp_path: Path, days: list[float], every: float | None, late_after: float
) -> None:
    """Half a gap after the next result was due, never within a day; after eight days where one is known."""
    _nights(tmp_path, days)
    found = _fresh(tmp_path).devices["cpu"]
    assert found.at == NOW - days[-1] * DAY
    assert found.every_s == (every if every is None else pytest.approx(every * DAY))
    assert found.late_at == pytest.approx(found.at + late_after * DAY)
    due = found.late_at
    assert [bool(_fresh(tmp_path, due + seconds).late) for seconds in (-1.0, 1.0)] == [False, True]


@pytest.mark.parametrize(
    ("moment", "late"), [("Sunday 21", False), ("Monday 18", False), ("Tuesday 21", True)]
)
def test_working_nights_are_late_after_a_weekend_and_not_at_it(
    tmp_path: Path, moment: str, late: bool
) -> None:
    """Six weeks of Monday to Friday at noon, of which Friday's was the last that came."""
    friday = NOW + DAY
    _nights(tmp_path, [7 * week + day - 1 for week in range(5, -1, -1) for day in (4, 3, 2, 1, 0)])
    seen = next(
        at
        for hours in range(7 * 24)
        if f"{datetime.fromtimestamp(at := friday + hours * 3_600, timezone.utc):%A %H}" == moment
    )
    found = _fresh(tmp_path, seen)
    assert f"{datetime.fromtimestamp(found.newest.at or 0, timezone.utc):%A %H}" == "Friday 12"
    assert found.devices["cpu"].every_s == pytest.approx(DAY)
    assert (bool(found.late), found.all_late) == (late, late)


def test_one_long_gap_of_few_is_no_weekend(tmp_path: Path) -> None:
    """A second of its kind is: two weekends of three weeks are known as such."""
    _nights(tmp_path / "one", [8, 7, 6, 5, 4, 1])
    assert _fresh(tmp_path / "one").devices["cpu"].late_after_s == pytest.approx(1.5 * DAY)
    _nights(tmp_path / "two", [12, 11, 8, 7, 6, 5, 4, 1])
    assert _fresh(tmp_path / "two").devices["cpu"].late_after_s == pytest.approx(3.3 * DAY)


def test_a_year_old_store_says_so_on_every_page(tmp_path: Path) -> None:
    """And counts its ages from the build, not from its newest row; one sentence, not one per device."""
    _nights(tmp_path / "store", [368, 367, 366], CPU)
    _nights(tmp_path / "store", [368, 367, 366], NPU)
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 10
    for page in pages:
        text = words(page)
        assert (
            "This page is out of date: no result since 2024-12-31 12:00 UTC; before, one came every 1 d."
            in text
        )
        assert "built 2026-01-01 12:00 UTC" in text
        assert "stopped reporting" not in text
        assert not re.search(r"<p[^>]*data-late[^>]*hidden", page.read_text())


def test_a_fresh_store_raises_nothing_and_keeps_the_banner_ready(site: Path) -> None:
    """The sentence is in the page for the day on which nobody builds it any more."""
    page = (site / "compatibility.html").read_text()
    (line,) = re.findall(r"<p[^>]*data-late.*?</p>", page)
    assert " hidden>" in line
    assert page.count("notice loud") == 1


def test_every_page_says_of_which_torch_machine_and_date_it_is(site: Path) -> None:
    """At its top, before anything that was measured."""
    for page in sorted(site.rglob("*.html")):
        text = words(page.read_text().partition("<main")[0])
        assert (
            "Newest result 2026-01-01 10:01 UTC, built 2026-01-01 12:00 UTC. torch 2.13.0+cpu on "
            "cpu, npusim (AMD EPYC 9V74 80-Core Processor)."
        ) in text


def test_a_runner_whose_clock_is_ahead_is_named_and_hides_no_silence(tmp_path: Path) -> None:
    """A result of next year is no newest one: the device is late by those that have a date that can be."""
    _nights(tmp_path / "store", [12, 11, 10, -300])
    _nights(tmp_path / "store", [2, 1, 0.1], NPU)
    fresh = _fresh(tmp_path / "store")
    assert fresh.devices["cpu"].ahead_at == NOW + 300 * DAY
    assert fresh.devices["cpu"].every_s == pytest.approx(DAY)
    assert fresh.newest.at == pytest.approx(NOW - 0.1 * DAY)
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    text = words(tmp_path / "site" / "index.html")
    assert "cpu has a result that is dated 2026-10-28 12:00 UTC, after the build of this page" in text
    assert "npusim has" not in text
    ages = json.loads((tmp_path / "site" / "data" / "latest.json").read_text())["results"]
    assert min(each["age_s"] for each in ages) == 0.0


def test_a_clock_that_is_a_little_ahead_is_none_of_a_readers_business(tmp_path: Path) -> None:
    """Two machines never agree to the second."""
    _nights(tmp_path, [2, 1, -0.5 * AHEAD_S / DAY])
    fresh = _fresh(tmp_path)
    assert (fresh.devices["cpu"].ahead_at, fresh.late) == (None, ())


def test_a_device_without_any_result_says_that(tmp_path: Path) -> None:
    """Others have one, so that nobody takes the page for empty; it did report, so that it did not stop to."""
    _nights(tmp_path / "store", [2, 1, 0.1])
    _nights(tmp_path / "store", [1], NPU, Status.INFRA)
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    text = words(tmp_path / "site" / "index.html")
    assert "npusim lost the nightly run of 2025-12-31: the only case has no result" in text
    assert ". No older result exists." in text
    assert "stopped reporting" not in text


def test_a_device_that_is_gone_stopped_reporting(tmp_path: Path) -> None:
    """Nothing came of it, not even that its runner died."""
    _nights(tmp_path / "store", [2, 1, 0.1])
    _nights(tmp_path / "store", [5, 4, 3], NPU)
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    text = words(tmp_path / "site" / "index.html")
    assert (
        "npusim stopped reporting: no result since 2025-12-29 12:00 UTC; before, one came every 1 d." in text
    )


# -- In an open page ----------------------------------------------------------------------------------------


@pytest.fixture
def opened(tmp_path: Path, serve: Callable[[Path], str], browser: Any) -> Callable[[float], Any]:
    """The overview of nightly results up to an hour before the build, for a reader with that clock."""
    _nights(tmp_path / "store", [3, 2, 1, 1 / 24])
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    address = serve(tmp_path / "site")

    def open_at(now: float) -> Any:
        page = browser.new_page()
        page.clock.install(time=datetime.fromtimestamp(now, timezone.utc))
        page.goto(f"{address}index.html")
        page.locator(".as-of time[title]").first.wait_for(state="attached")
        return page

    return open_at


def _as_of(page: Any) -> str:
    text: str = page.locator(".as-of").inner_text()
    return text.partition(". torch")[0]


def test_ages_grow_while_a_page_is_open_and_the_banner_comes_when_they_are_too_old(opened) -> None:
    """Nobody loads it again: two days later it says that it is out of date."""
    page = opened(NOW + 5 * 60)
    assert _as_of(page) == "Newest result 1 h ago, built 5 min ago"
    banner = page.locator("[data-late]")
    assert not banner.is_visible()
    page.clock.fast_forward(3 * 3_600_000)
    assert _as_of(page) == "Newest result 4 h ago, built 3 h ago"
    assert page.locator(".as-of time").first.get_attribute("title") == "2026-01-01 11:00 UTC"
    page.clock.fast_forward(31 * 3_600_000)
    assert not banner.is_visible()
    page.clock.fast_forward(3 * 3_600_000)
    assert banner.is_visible()
    assert "no result since 2026-01-01 11:00 UTC" in banner.inner_text()
    page.close()


def test_a_reader_whose_clock_is_behind_never_sees_the_future(opened) -> None:
    """Ages count from the build, which is later than what such a clock says."""
    page = opened(NOW - 40 * DAY)
    assert _as_of(page) == "Newest result 1 h ago, built under 1 min ago"
    assert not page.locator("[data-late]").is_visible()
    page.close()


def test_a_result_of_the_future_keeps_its_date(
    tmp_path: Path, serve: Callable[[Path], str], browser: Any
) -> None:
    """It has no age."""
    _nights(tmp_path / "store", [1, -3])
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    page = browser.new_page()
    page.clock.install(time=datetime.fromtimestamp(NOW + DAY, timezone.utc))
    page.goto(f"{serve(tmp_path / 'site')}runs.html")
    page.locator("main time[title]").first.wait_for(state="attached")
    told = page.locator("main tbody time").all_inner_texts()
    assert "2026-01-04 11:59 UTC" in told
    assert not [text for text in told if text.startswith("-")]
    page.close()

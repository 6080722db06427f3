"""A night of which a device has nothing, because its runner died: one line, no failure and no badge."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from page_text import words
from store_builder import CPU, NOW, NPU
from subject_store import night

from torchgauge.dashboard import build_site
from torchgauge.dashboard.lost_nights import lost_nights, told
from torchgauge.dashboard.names import device_id
from torchgauge.dashboard.site_data import read_site_data
from torchgauge.records import Status
from torchgauge.results.store import Store

PASS, ERROR, INFRA, NOT_RUN = Status.PASS, Status.ERROR, Status.INFRA, Status.NOT_RUN
MODELS = [f"m{number}" for number in range(40)]
LINE = (
    "npusim lost the nightly run of 2026-01-01: none of 40 cases has a result (the runner went away). "
    "Older results are shown."
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both devices pass but for one model; then the runner of one dies at its start."""
    folder = tmp_path_factory.mktemp("lost")
    before = {**dict.fromkeys(MODELS, PASS), "m7": ERROR}
    lost = {**dict.fromkeys(MODELS, NOT_RUN), "m0": INFRA}
    night(folder / "store", 28, before, NPU)
    night(folder / "store", 29, before, CPU)
    night(folder / "store", 30, lost, NPU, reason="the runner went away")
    report = build_site(folder / "store", folder / "site", now=NOW)
    assert (report.passed, report.planned) == (78, 80)
    return folder / "site"


def test_it_is_one_line_on_every_page(site: Path) -> None:
    """With the device, the date, how much and why."""
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 40
    assert {words(page).count(LINE) for page in pages} == {1}


def test_it_is_not_the_headline(site: Path) -> None:
    """The counts of the overview, of the matrix and of the device are those of the night before."""
    text = words(site / "index.html")
    assert re.search(r"npusim( stale)? 39/40 .*40 stale not measured ", text)
    assert " 0 broke, 0 fixed" not in text
    assert "40 cases were lost" not in text.replace(LINE, "")
    assert "78/80" in words(site / "compatibility.html")
    device = words(site / "devices" / f"{device_id('npusim')}.html")
    assert "39/40 planned cases of models pass" in device
    assert "Environment failures and cases not run" not in device
    badge = json.loads((site / "badge" / f"{device_id('npusim')}.json").read_bytes())
    assert badge["message"].startswith("pass 39/40")


def test_cells_show_what_was_known_and_that_it_is_older(site: Path) -> None:
    """The mark is stale; no cell says infra or not run."""
    page = (site / "compatibility.html").read_text()
    assert not re.findall(r"<td class=[in]>", page)
    assert page.count("stale</small>") == 40


def test_the_runs_still_say_what_happened(site: Path) -> None:
    """The last run of the device passed nothing."""
    assert re.search(r"npusim toy night-030 .*? 0/40 incomplete 0/40 1 ", words(site / "runs.html"))


def test_the_feed_has_no_failures(site: Path) -> None:
    """Nothing of the models is told."""
    feed = ET.fromstring((site / "feed.xml").read_bytes())
    assert feed.findall("{http://www.w3.org/2005/Atom}entry") == []


def test_a_night_that_was_cut_short_is_none(tmp_path: Path) -> None:
    """Where the device said anything, a case that was never reached stays that."""
    night(tmp_path, 29, {"a": PASS, "b": PASS})
    night(tmp_path, 30, {"a": PASS, "b": NOT_RUN})
    latest = read_site_data(Store.open(tmp_path), NOW).latest
    assert lost_nights(latest) == ()
    assert sorted(each.status.value for each in latest.entries.values()) == ["not_run", "pass"]


def test_what_was_never_measured_stays_lost(tmp_path: Path) -> None:
    """The first night of all: there is nothing older to show, and nothing passes."""
    night(tmp_path, 30, {"a": INFRA}, cause=None, reason="no device")
    latest = read_site_data(Store.open(tmp_path), NOW).latest
    assert [each.status for each in latest.entries.values()] == [INFRA]
    found = lost_nights(latest)
    assert [each.known for each in found] == [0]
    assert told(found) == "lost the nightly run of 2026-01-01: the only case has no result (no device)"


def test_a_night_that_is_measured_again_is_no_longer_lost(tmp_path: Path) -> None:
    """What was repeated counts; the rest is lost still."""
    night(tmp_path, 28, {"a": PASS, "b": PASS})
    night(tmp_path, 29, {"a": NOT_RUN, "b": NOT_RUN})
    night(tmp_path, 30, {"a": ERROR})
    data = read_site_data(Store.open(tmp_path), NOW)
    assert [(each.cases, each.date) for each in lost_nights(data.latest)] == [(1, "2025-12-31")]
    assert [each.case.workload.model for each in data.new_failures] == ["a"]

"""The pages and badges of quality scorecards: points, level and evidence, only where there are checks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from store_builder import DAY, NOW, realistic_store
from subject_store import subject_store

from torchgauge.dashboard import build_site
from torchgauge.dashboard.names import device_id

DECLARED = """device: npusim
by: A <b>vendor</b>
declarations:
  - item: hardware.access
    points: 4
    statement: Anyone may install it, it is a package.
    link: https://example.org/npusim
    date: 2025-12-01
    since: "2.1"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two devices with checks, one of which has a declaration in the store."""
    folder = tmp_path_factory.mktemp("scorecard")
    store = subject_store(folder / "store")
    (store / "declared").mkdir()
    (store / "declared" / "npusim.yaml").write_text(DECLARED)
    build_site(store, folder / "site", now=NOW)
    return folder / "site"


def test_every_device_has_a_page_with_its_points(site):
    """Measured, declared and unknown are told apart, with the rows and who declared what."""
    page = (site / "scorecards" / f"{device_id('npusim')}.html").read_text()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
    assert "declared 4" in text
    assert "not decided: engineering to stable" in text
    assert "https://example.org/npusim" in text
    assert "A <b>vendor</b>" not in page
    assert "torchgauge ops judge --device npusim --tier full" in text
    index = (site / "scorecards.html").read_text()
    assert device_id("cpu") in index
    assert device_id("npusim") in index
    assert 'href="scorecards.html"' in (site / "index.html").read_text()


def test_every_device_has_a_badge(site, tmp_path):
    """Grey while no level is decided, and stale like every other badge."""
    badge = json.loads((site / "badge" / f"{device_id('npusim')}-scorecard.json").read_text())
    assert badge["label"] == "npusim quality"
    assert re.fullmatch(r"4 to \d+ of 124, torch \d+\.\d+", badge["message"])
    assert badge["color"] == "5c6570"
    store = subject_store(tmp_path / "store")
    build_site(store, tmp_path / "site", now=NOW + 60 * DAY)
    badge = json.loads((tmp_path / "site" / "badge" / f"{device_id('cpu')}-scorecard.json").read_text())
    assert badge["message"].endswith("(stale)")


def test_a_store_without_checks_has_no_scorecards(tmp_path):
    """No page, no badge, and no link to one."""
    realistic_store(tmp_path / "store")
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    assert not (tmp_path / "site" / "scorecards.html").exists()
    assert "scorecards.html" not in (tmp_path / "site" / "index.html").read_text()
    assert not list((tmp_path / "site" / "badge").glob("*-scorecard.*"))

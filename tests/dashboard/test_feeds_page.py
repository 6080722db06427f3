"""The Atom feed: ids that stay and links that lead somewhere."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from store_builder import NOW
from subject_store import finding, keep_findings, night

from torchgauge.dashboard import build_site
from torchgauge.errors import UsageError
from torchgauge.records import Status

ATOM = "{http://www.w3.org/2005/Atom}"


def _feed(store: Path, out: Path, base_url: str = "", now: float = NOW) -> ET.Element:
    build_site(store, out, now=now, base_url=base_url)
    return ET.fromstring((out / "feed.xml").read_bytes())


def _entries(feed: ET.Element) -> dict[str, ET.Element]:
    return {entry.findtext(f"{ATOM}id", ""): entry for entry in feed.findall(f"{ATOM}entry")}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three nights: one model breaks in the second and is still broken in the third."""
    path = tmp_path / "store"
    night(path, 1, {"a": Status.PASS, "b": Status.PASS})
    night(path, 2, {"a": Status.ERROR, "b": Status.PASS})
    night(path, 3, {"a": Status.ERROR, "b": Status.PASS})
    return path


def test_a_failure_stays_in_the_feed_while_it_is_recent(store, tmp_path):
    """The night after it is no longer new, but a reader who polls weekly must still learn of it."""
    (entry,) = _entries(_feed(store, tmp_path / "site")).values()
    assert entry.findtext(f"{ATOM}title") == "cpu: 1 new failure on 2025-12-04"
    assert "toy/a" in entry.findtext(f"{ATOM}content")
    assert entry.findtext(f"{ATOM}updated") == "2025-12-04T12:00:00Z"


def test_ids_stay_when_the_site_is_built_again(store, tmp_path):
    """Another night, another moment, another address: the entries that were there keep their ids."""
    keep_findings(store, finding("b"))
    before = _entries(_feed(store, tmp_path / "one"))
    night(store, 4, {"a": Status.PASS, "b": Status.CRASH})
    after = _entries(_feed(store, tmp_path / "two", "https://example.org/x", NOW + 5))
    assert len(before) == 2
    assert set(before) < set(after)
    assert len(after) == 3
    assert all(each.startswith("tag:torchgauge,2026:") for each in after)


def test_links_are_relative_unless_the_address_is_known(store, tmp_path):
    """Both lead to a file of the site."""
    for base, out in (("", "one"), ("https://example.org/site", "two")):
        feed = _feed(store, tmp_path / out, base)
        links = [link.get("href", "") for link in feed.iter(f"{ATOM}link")]
        prefix = f"{base}/" if base else ""
        assert len(links) == 3
        for link in links:
            assert link.startswith(prefix)
            assert (tmp_path / out / link.removeprefix(prefix).partition("#")[0]).is_file()


@pytest.mark.parametrize(
    "address", ["example.org", "javascript:alert(1)", "https://", "https://a b/", "http://[", "https://a/?q"]
)
def test_an_address_that_is_none_is_refused(store, tmp_path, address):
    """Nothing is built."""
    with pytest.raises(UsageError, match="--base-url"):
        build_site(store, tmp_path / "site", now=NOW, base_url=address)
    assert not (tmp_path / "site").exists()


def test_only_open_changes_for_the_worse_are_told(store, tmp_path):
    """Improvements and what was explained are on the page and not in the feed."""
    from torchgauge.results.trends.trend_outcomes import TrendState

    keep_findings(
        store,
        finding("a", worse=False, key="a" * 16, suspect_run="r1"),
        finding("b", state=TrendState.NOT_REPRODUCED, key="b" * 16, suspect_run="r2"),
        finding("b", state=TrendState.CONFIRMED, key="c" * 16, machine="other", decided_at=NOW),
    )
    entries = _entries(_feed(store, tmp_path / "site"))
    titles = [each.findtext(f"{ATOM}title", "") for key, each in entries.items() if ":regression/" in key]
    assert titles == ["cpu: latency of toy/b (eager) +25.0% time, confirmed"]


def test_a_device_that_breaks_is_one_entry(tmp_path):
    """Two hundred failures of one night do not drown the feed, nor does a flood grow it without bound."""
    names = [f"m{number}" for number in range(200)]
    night(tmp_path / "store", 1, dict.fromkeys(names, Status.PASS))
    night(tmp_path / "store", 2, dict.fromkeys(names, Status.ERROR))
    feed = _feed(tmp_path / "store", tmp_path / "site")
    (entry,) = _entries(feed).values()
    assert entry.findtext(f"{ATOM}title", "").startswith("cpu: 200 new failures")
    assert "and 150 more" in entry.findtext(f"{ATOM}content", "")


def test_an_empty_store_has_an_empty_feed(tmp_path):
    """Still a feed."""
    from torchgauge.results.store import Store

    Store.open(tmp_path / "store", create=True)
    feed = _feed(tmp_path / "store", tmp_path / "site")
    assert feed.findtext(f"{ATOM}updated")
    assert not _entries(feed)

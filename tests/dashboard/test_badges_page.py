"""Badges: what shields reads, and an image of our own, per device and per device and suite."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

from store_builder import DAY, EAGER, NOW, RunBuilder, result
from subject_store import HOSTILE, night

from torchgauge.dashboard import build_site
from torchgauge.dashboard.badges import LONGEST
from torchgauge.dashboard.names import device_id
from torchgauge.records import Case, DeviceTarget, Modifier, Status, Workload


def _badges(store: Path, out: Path, now: float = NOW) -> dict[str, dict[str, object]]:
    build_site(store, out, now=now)
    return {path.stem: json.loads(path.read_bytes()) for path in sorted((out / "badge").glob("*.json"))}


def test_a_badge_says_how_many_of_the_planned_cases_pass(tmp_path):
    """The headline of the device, in the form of an endpoint."""
    night(tmp_path / "store", 30, {"a": Status.PASS, "b": Status.ERROR, "c": Status.NOT_RUN})
    badge = _badges(tmp_path / "store", tmp_path / "site")[device_id("cpu")]
    assert badge == {"schemaVersion": 1, "label": "cpu", "message": "pass 1/3, 2026-01-01", "color": "b5371a"}


def test_degraded_passes_are_none(tmp_path):
    """A badge claims no more than the overview."""
    run = RunBuilder("run-1", NOW - 60)
    for name, marks in (("a", ()), ("b", (Modifier.DEGRADED,))):
        result(run, Case(Workload("toy", name), EAGER, DeviceTarget("cpu")), modifiers=marks)
    run.write(tmp_path / "store")
    assert (
        _badges(tmp_path / "store", tmp_path / "site")[device_id("cpu")]["message"] == "pass 1/2, 2026-01-01"
    )


def test_a_silent_device_is_grey(tmp_path):
    """Green for ever is the worst that a badge can be."""
    night(tmp_path / "store", 30, {"a": Status.PASS})
    badge = _badges(tmp_path / "store", tmp_path / "site", NOW + 60 * DAY)[device_id("cpu")]
    assert badge["message"] == "pass 1/1, 2026-01-01 (stale)"
    assert badge["color"] == "5c6570"


def test_a_badge_says_what_is_new_and_of_when_it_is(tmp_path):
    """Where nobody builds it again the date stays true; a lost night changes nothing."""
    night(tmp_path / "store", 28, {"a": Status.PASS, "b": Status.PASS})
    night(tmp_path / "store", 29, {"a": Status.PASS, "b": Status.ERROR})
    night(tmp_path / "store", 30, {"a": Status.INFRA, "b": Status.INFRA})
    badge = _badges(tmp_path / "store", tmp_path / "site")[device_id("cpu")]
    assert badge["message"] == "pass 1/2, 1 new, 2025-12-31"


def test_images_are_small_safe_and_say_the_same(tmp_path):
    """Text is escaped, cut, and free of what XML forbids; nothing is loaded and nothing runs."""
    run = RunBuilder("run-1", NOW - 60)
    for bad in HOSTILE:
        result(run, Case(Workload(bad, "model"), EAGER, DeviceTarget("npusim")))
    run.write(tmp_path / "store")
    badges = _badges(tmp_path / "store", tmp_path / "site")
    assert len(badges) == 1 + len(HOSTILE)
    for name, badge in badges.items():
        text = (tmp_path / "site/badge" / f"{name}.svg").read_text()
        image = ET.fromstring(text)
        told = f"{badge['label']}: {badge['message']}"
        assert image.get("aria-label") == image.findtext("{http://www.w3.org/2000/svg}title") == told
        assert len(str(badge["label"])) <= LONGEST
        assert len(text) < 2_000
        assert not re.search(r"<(script|image|a|foreignObject)\b", text)

"""Names as long as a store may have them, without a place to break a line: no page scrolls sideways."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from store_builder import EAGER, INDUCTOR, NOW, RunBuilder, environment, result, timings

from torchgauge.dashboard import build_site
from torchgauge.records import Case, DeviceTarget, Status, Workload

DEVICES = ("D" * 300, "é&" * 150)


@pytest.fixture(scope="module")
def long_site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two devices with failures and a lost case each, in which every name has 300 characters."""
    folder, rng = tmp_path_factory.mktemp("long"), random.Random(5)
    run = RunBuilder("20260101T020000Z-aaaaaaaa", NOW - 7_200)
    compiled = replace(INDUCTOR, name="K" * 300)
    for device in DEVICES:
        known = environment(device)
        named = {**dict(known.identity), "torch": f"2.13.0+{'z' * 300}", "cpu": "C" * 300}
        there = replace(known, identity=tuple(named.items()))
        run.environments.append(there)
        for model in ("M" * 300, "N" * 300):
            workload = Workload("S" * 300, model, "inference", batch=8)
            case = Case(workload, EAGER, DeviceTarget(device))
            found = timings(rng, 0.02, None, "cpu")
            result(run, case, measurements=found, environment_id=there.id)
            bad = replace(case, configuration=compiled)
            result(run, bad, Status.OOM, reason="R" * 300, environment_id=there.id)
        lost = Case(Workload("S" * 300, "lost"), EAGER, DeviceTarget(device))
        result(run, lost, Status.INFRA, reason="R" * 300, environment_id=there.id)
    run.write(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


@pytest.mark.parametrize("width", [1440, 390])
def test_no_page_scrolls_sideways(
    width: int, long_site: Path, serve: Callable[[Path], str], browser: Any
) -> None:
    address = serve(long_site)
    names = [path.name for path in long_site.glob("*.html") if not re.match(r"404|performance-", path.name)]
    for folder in ("devices", "models", "pictures"):
        names += [f"{folder}/{path.name}" for path in sorted((long_site / folder).glob("*.html"))[:1]]
    assert len(names) > 10
    context = browser.new_context(viewport={"width": width, "height": 844})
    page, wide = context.new_page(), {}
    for name in names:
        page.goto(address + name)
        if page.locator("[data-controls]").count():
            page.wait_for_selector("[data-controls] input")
        beyond = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        if beyond > 0:
            wide[name] = beyond
    context.close()
    assert wide == {}

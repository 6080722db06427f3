"""What somebody sees who measured once: numbers with units, and nothing claimed of a change."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from page_text import words
from store_builder import CPU, EAGER, INDUCTOR, NOW, NPU, RunBuilder, environment, result, timings, workloads

from torchgauge.dashboard import build_site
from torchgauge.records import Case, Modifier, Status


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of one run on two devices; some numbers of it are in doubt."""
    folder = tmp_path_factory.mktemp("once")
    run, rng = RunBuilder("only", NOW - 60), random.Random(1)
    for device in (CPU, NPU):
        run.environments.append(environment(device.name))
        for number, workload in enumerate(workloads()[:4]):
            for configuration in (EAGER, INDUCTOR):
                case = Case(workload, configuration, device)
                if (device, configuration) == (NPU, INDUCTOR):
                    result(run, case, Status.UNSUPPORTED, environment_id=run.environments[-1].id)
                    continue
                numbers = timings(rng, 0.05, None, device.name)
                doubts = (Modifier.UNSTEADY,) if number == 3 else ()
                result(
                    run,
                    case,
                    environment_id=run.environments[-1].id,
                    measurements=numbers,
                    modifiers=doubts,
                )
    run.write(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


@pytest.mark.parametrize("page", ["index.html", "performance.html", "performance-device.html"])
def test_a_number_beside_ratios_has_its_unit(once: Path, page: str) -> None:
    """In one row stand milliseconds and ratios: each says which it is."""
    cells = re.findall(r'<td class="[^"]*"[^>]*>([^<]*)', (once / page).read_text())
    numbers = [text for text in cells if re.search(r"\d", text)]
    assert any(text.endswith(" ms") for text in numbers)
    assert all(text.endswith((" ms", "x")) for text in numbers), numbers


def test_one_night_changed_nothing_and_is_no_trend(once: Path) -> None:
    """Neither nought broken nor a change of nought: there is nothing to compare with."""
    front, trends = words(once / "index.html"), words(once / "trends.html")
    said = (
        "The second night adds changes, new failures and trends. Performance regressions require 20 nights."
    )
    assert f"One night so far {said}" in front
    assert "New failures " not in front.partition("Every case")[2]
    assert "0 broke" not in front
    assert "One snapshot so far, of 2026-01-01: a line requires two." in trends
    assert "first point on 2026-01-01 n 3 of 3" in trends
    assert "0.0%" not in trends
    assert "<svg" not in (once / "trends.html").read_text()


@pytest.mark.parametrize("width", [1440, 390])
def test_no_cell_shows_half_a_number(once: Path, browser: Any, width: int) -> None:
    """A number is whole, its marks are beside it, if cut; an interval without room is not seen."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((once / "index.html").as_uri())
    cells = page.evaluate(
        """() => [...document.querySelectorAll(".numbers tbody td.p")].map((cell) => {
             const box = cell.getBoundingClientRect();
             const range = document.createRange();
             range.selectNodeContents(cell.firstChild);
             const number = range.getBoundingClientRect();
             const beside = [...cell.children].map((each) => {
               const { left, right, top, bottom } = each.getBoundingClientRect();
               return { name: each.localName, left, right, top, seen: top < box.bottom - 2 };
             });
             return { text: cell.textContent, left: number.left - box.left, top: number.top - box.top,
                      right: box.right - number.right, beside, box: [box.left, box.right] };
           })"""
    )
    assert len(cells) == 12
    doubtful = [cell for cell in cells if "unsteady" in cell["text"]]
    assert len(doubtful) == 3
    for cell in cells:
        assert cell["left"] >= 0, cell
        assert cell["right"] >= 0, cell
        assert cell["top"] >= -1, cell
        for each in cell["beside"]:  # may be empty: a dash needs no interval
            if each["seen"]:
                assert cell["box"][0] <= each["left"], cell
                assert each["right"] <= cell["box"][1] + 0.5, cell
    assert all(each["seen"] for cell in doubtful for each in cell["beside"] if each["name"] != "i")
    page.close()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of a night with 24 columns; ``aot_eager`` has one speed-up more than ``inductor``."""
    folder = tmp_path_factory.mktemp("many")
    run, rng = RunBuilder("night", NOW - 60), random.Random(1)
    names = ("aot_eager", "inductor", *(f"inductor-{letter}" for letter in "abcdefghi"))
    for device in (CPU, NPU):
        run.environments.append(environment(device.name))
        for number, workload in enumerate(workloads()[:6]):
            for configuration in (EAGER, *(replace(INDUCTOR, name=name) for name in names)):
                case, known = Case(workload, configuration, device), run.environments[-1].id
                if configuration.name == "inductor" and number == 5:
                    result(run, case, Status.ERROR, environment_id=known)
                    continue
                compiled = None if configuration is EAGER else 1.3
                numbers = timings(rng, 0.05, compiled, device.name)
                result(run, case, environment_id=known, measurements=numbers)
    run.write(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder / "site"


def test_the_front_page_tells_of_one_configuration_every_night(many: Path) -> None:
    """What fails tonight does not put another one into its place: all are planned as often."""
    assert "Geomean inductor speed-up over eager, paired: cpu " in words(many / "index.html")

"""What a browser lays out: cells stand under their heads, and no letter is cut."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
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

from torchgauge.dashboard import build_site
from torchgauge.records import Case, Environment, Modifier, Status

NAMES = ("inductor", "inductor-dynamic", "reduce-overhead", "max-autotune-no-cudagraphs")
PAGES = (
    "compatibility.html",
    "performance.html",
    "performance-previous.html",
    "performance-memory.html",
    "index.html",
)

_EDGES = """
() => [...document.querySelectorAll("table.lines tbody tr")].map((row) => {
  const heads = [...row.closest("table").tHead.rows[0].cells];
  return [...row.cells].map((cell, place) =>
    Math.abs(cell.getBoundingClientRect().left - heads[place].getBoundingClientRect().left));
})
"""
"""How far the left edge of each cell is from that of its head, row by row."""

_CUT = """
(compact) => [...document.querySelectorAll(compact ? "table.lines thead th:not(.corner) :is(b, button)"
    : "table.lines :is(tbody :is(th, td, small, em, .variant), thead :is(th, b, i))")]
  .filter((each) => each.getBoundingClientRect().height > 0)
  .filter((each) => {
    const box = each.getBoundingClientRect(), row = each.closest("tr").getBoundingClientRect();
    if (box.top >= row.bottom - 2) return false;  // the second line of a number, which nobody sees
    const second = (one) => one.getBoundingClientRect().top >= row.bottom - 2;
    if (each.matches("td") && [...each.children].some(second)) return false;
    if (each.closest("thead")) {
      const range = document.createRange(), head = each.closest("th").getBoundingClientRect();
      range.selectNodeContents(each);
      const text = range.getBoundingClientRect();
      return text.left < head.left - 0.5 || text.right > head.right + 0.5
        || text.top < head.top - 0.5 || text.bottom > head.bottom + 0.5;
    }
    return getComputedStyle(each).display !== "inline" && each.scrollHeight > each.clientHeight;
  })
  .map((each) => [each.localName, each.textContent, each.scrollHeight, each.clientHeight])
"""
"""Every text whose letters do not fit into its box, or that runs over the edge of its column."""


def _nightly(device: str, day: str) -> Environment:
    found = environment(device)
    torch = (("torch", f"2.14.0.dev{day}"), ("torch_commit", "9ab1b31d2f7c"))
    return replace(
        found, identity=tuple(each for each in found.identity if each[0] not in dict(torch)) + torch
    )


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, serve: Callable[[Path], str]) -> str:
    """Where a site is served whose matrix has empty cells, small grey words and notes over its columns."""
    folder, rng = tmp_path_factory.mktemp("layout"), random.Random(3)
    for device, age, day in ((CPU, 0, "20251230"), (NPU, 12, "20251218")):
        run, known = RunBuilder(f"{device.name}-night", NOW - age * DAY - 60), _nightly(device.name, day)
        run.environments.append(known)
        for number, workload in enumerate(workloads()[:12]):
            for place, configuration in enumerate((EAGER, *(replace(INDUCTOR, name=name) for name in NAMES))):
                if (number + place) % 4 == 3:
                    continue
                case, numbers = (
                    Case(workload, configuration, device),
                    timings(rng, 0.05, place or None, device.name),
                )
                doubts = ((), (Modifier.UNSTEADY,), (Modifier.DEGRADED,))[number % 3] if place else ()
                status = {2: Status.INFRA, 4: Status.NOT_RUN}.get(place, Status.PASS)
                measured = {"measurements": numbers if place != 2 else (), "modifiers": doubts}
                result(run, case, status, environment_id=known.id, **measured)
        run.write(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return serve(folder / "site")


@pytest.mark.parametrize("width", [1440, 390])
@pytest.mark.parametrize("name", PAGES)
def test_cells_stand_under_their_heads_and_letters_are_whole(
    address: str, browser: Any, name: str, width: int
) -> None:
    """In each row, the empty cells too; g and y keep their tails, and a note stays in its column."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(address + name)
    page.locator("table.lines tbody td.z").first.wait_for()
    rows = page.evaluate(_EDGES)
    assert len(rows) == 12
    assert max(edge for row in rows for edge in row) < 0.5, rows
    assert page.evaluate(_CUT, False) == []
    page.close()


@pytest.mark.parametrize("name", PAGES[:2])
def test_the_heads_of_the_compact_view_are_whole(address: str, browser: Any, name: str) -> None:
    """The name of each configuration is there to its last letter."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"{address}{name}?view=compact")
    page.locator("table.compact tbody td").first.wait_for()
    assert page.evaluate(_CUT, True) == []
    page.close()

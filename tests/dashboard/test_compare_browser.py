"""Comparisons that were prepared when the site was built, against those that the browser works out."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from patience import until
from store_builder import CPU, DAY, EAGER, NOW, NPU, RunBuilder, environment, result, timings

from torchgauge.dashboard import build_site
from torchgauge.records import Case, Measurement, Modifier, Status, Workload

_TABLES = """(host) => [...host.querySelectorAll("table")].map((table) => [...table.rows]
  .map((row) => [...row.cells].map((cell) => [cell.className, cell.textContent.trim()])))
  .filter((rows) => rows[0][0][1] === "workload")"""
_AROUND = """(host) => [...host.querySelectorAll("ul.verdicts, p.sides, p.mean, h3, summary, h3 + ul")]
  .map((each) => each.textContent.replace(/\\s+/g, "")).filter((text) => !/environment/i.test(text))"""


def test_what_is_prepared_is_what_the_browser_works_out(
    tmp_path: Path, serve: Callable[[Path], str], browser: Any
) -> None:
    """Cell by cell, in the same order, for all that was prepared, what is undecided or has no ratio too."""
    _compared_store(tmp_path / "store")
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    base = serve(tmp_path / "site")
    page = browser.new_page()
    page.goto(base + "compare.html")
    links = page.locator("#prepared h2 a").evaluate_all("(all) => all.map((one) => one.href)")
    prepared = [
        (section.evaluate(_TABLES), section.evaluate(_AROUND))
        for section in page.locator("#prepared section").all()
    ]
    assert len(links) == 3
    words = set()
    for link, (tables, around) in zip(links, prepared, strict=True):
        page.goto(link)
        page.wait_for_selector("#result .verdicts")
        result = page.locator("#result")
        result.locator("details").evaluate_all("(all) => all.forEach((one) => (one.open = true))")
        until(
            page,
            "[...document.querySelectorAll('#result details')].every((one) => one.children.length > 1)",
        )
        assert result.evaluate(_TABLES) == tables
        assert result.evaluate(_AROUND) == around
        words |= {row[2][1] for table in tables for row in table[1:] if len(row) == 9}
        words |= {row[2][1] for table in tables for row in table[1:] if len(row) == 5}
    page.close()
    assert {"better", "worse", "undecided", "unchanged", "unsteady on B", "OOM on B"} <= words


def _compared_store(path: Path) -> None:
    """Seven nights of two devices; in the last one each model ends in its own way."""
    rng = random.Random(8)
    endings = {"fast": 0.7, "slow": 1.4, "same": 1.0, "vague": 1.012, "loud": 3.0, "dead": 1.0, "gone": 1.0}
    for night in range(7):
        run = RunBuilder(f"2025122{night}T020000Z-aaaaaaaa", NOW - (7 - night) * DAY)
        last = night == 6
        for device in (CPU, NPU):
            run.environments.append(environment(device.name))
            for place, (model, factor) in enumerate(endings.items()):
                if last and device is CPU and model == "gone":
                    continue
                case = Case(Workload("timm", model, "inference", batch=8), EAGER, device)
                oom = last and device is CPU and model == "dead"
                slower = factor if last and device is CPU else 1.0
                measured = timings(rng, 0.0123 * (1 + place) * slower, None, device.name)
                if model == "same":
                    measured = [Measurement("latency", "s", (0.0123,) * 15)]
                result(
                    run, case, Status.OOM if oom else Status.PASS,
                    measurements=() if oom else measured,
                    modifiers=(Modifier.UNSTEADY,) if last and device is CPU and model == "loud" else (),
                )  # fmt: skip
        run.write(path)

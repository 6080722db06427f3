"""A column of another torch or of another night than the rest says so in its heading."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest
from page_text import words
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
from torchgauge.dashboard.site_data import read_site_data
from torchgauge.records import Case, Configuration, DeviceTarget
from torchgauge.results.store import Store


def measured(
    store: Path, ago: float, torch: str, *columns: tuple[DeviceTarget, Configuration], cases: int = 2
) -> None:
    """A run of ``columns`` so many days ago, with that torch."""
    run = RunBuilder(f"run-{ago}-{re.sub('[^0-9.]', '', torch)}", NOW - ago * DAY)
    for device, configuration in columns:
        usual = environment(device.name)
        facts = tuple(fact for fact in usual.identity if not fact[0].startswith("torch"))
        known = replace(usual, identity=(*facts, ("torch", torch)) if torch else facts)
        if known not in run.environments:
            run.environments.append(known)
        for workload in workloads()[:cases]:
            numbers = timings(random.Random(1), 0.01, None, device.name)
            result(run, Case(workload, configuration, device), environment_id=known.id, measurements=numbers)
    run.write(store)


def _said(store: Path) -> dict[str, str]:
    apart = read_site_data(Store.open(store), NOW).latest.apart
    return {column.name: text for column, text in apart.items()}


def test_the_column_of_another_torch_and_the_older_one_are_marked(tmp_path: Path) -> None:
    """What most columns have is the usual torch, however many rows they have."""
    measured(tmp_path, 0.1, "2.13.0", (CPU, EAGER), (CPU, INDUCTOR))
    measured(tmp_path, 0.1, "2.12.1", (NPU, EAGER), cases=20)
    measured(tmp_path, 9, "2.12.1", (NPU, INDUCTOR), cases=1)
    measured(tmp_path, 6, "2.13.0", (DeviceTarget("npusim", 1), EAGER))
    assert _said(tmp_path) == {
        "npusim · eager": "torch 2.12.1",
        "npusim · inductor": "torch 2.12.1, 2025-12-23",
        "npusim.1 · eager": "2025-12-26",
    }


@pytest.mark.parametrize("page", ["compatibility.html", "performance.html"])
def test_the_headings_say_it_beside_the_name(tmp_path: Path, page: str) -> None:
    """In every matrix; a hostile version is text."""
    measured(tmp_path / "store", 0.1, "2.13.0", (CPU, EAGER))
    measured(tmp_path / "store", 5, "<b>2.12</b>", (NPU, EAGER))
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    text = (tmp_path / "site" / page).read_text()
    (head,) = re.findall(r'<th scope="col"[^>]*data-device="npusim".*?</th>', text)
    assert words(head).strip() == "npusim torch <b>2.12</b>, 2025-12-27 eager"
    assert 'class="apart"' not in re.findall(r'<th scope="col"[^>]*data-device="cpu".*?</th>', text)[0]


@pytest.mark.parametrize("page", ["compatibility.html", "performance.html"])
def test_the_day_of_a_stale_column_stands_once_above_it(tmp_path: Path, page: str) -> None:
    """Its stale cells say no day but another one; a column with newer results is as it was."""
    store = tmp_path / "store"
    measured(store, 0.1, "2.13.0", (CPU, EAGER), cases=1)
    measured(store, 30, "2.13.0", (CPU, EAGER), cases=2)
    measured(store, 20, "2.13.0", (NPU, EAGER), cases=1)
    measured(store, 40, "2.13.0", (NPU, EAGER), cases=2)
    build_site(store, tmp_path / "site", now=NOW)
    text = (tmp_path / "site" / page).read_text()
    heads = re.findall(r'<th scope="col"[^>]*data-device=.*?</th>', text)
    assert [" ".join(words(head).split()) for head in heads] == ["cpu eager", "npusim 2025-12-12 eager"]
    rows = [line for line in text.splitlines() if line.startswith('<tr><th scope="row"><a href="models/')]
    said = [re.findall(r"of [\d-]+|stale", part) for row in rows for part in row.split("<td")[1:]]
    assert said == [[], ["stale"], ["of 12-02", "stale"], ["of 11-22", "stale"]]

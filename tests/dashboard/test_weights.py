"""Random and published weights of one model are two workloads: each has its row, its section and its cell."""

from __future__ import annotations

import re
from pathlib import Path

from torchgauge.dashboard.site import build_site
from torchgauge.dashboard.site_data import read_site_data
from torchgauge.records import PRETRAINED, Case, Measurement, Workload
from torchgauge.results import frames
from torchgauge.results.store import Store

from .site_files import files_of
from .store_builder import CPU, DAY, EAGER, NOW, RunBuilder, environment, result

SIDES = {"random": 0.25, PRETRAINED: 0.75}


def both(path: Path, *, runs: int) -> Store:
    """A store with both workloads, in one run or each in its own."""
    made = [RunBuilder(f"2025123{n}T020000Z-{n:08x}", NOW - (3 - n) * DAY) for n in range(runs)]
    for number, (weights, seconds) in enumerate(SIDES.items()):
        run = made[number % runs]
        case = Case(Workload("timm", "resnet18", batch=8, weights=weights), EAGER, CPU)
        result(run, case, measurements=[Measurement("latency", "s", (seconds,) * 6)])
    for run in made:
        run.environments.append(environment("cpu"))
        run.write(path)
    return Store.open(path)


def test_neither_hides_the_other_in_the_latest_results(tmp_path: Path) -> None:
    """Whether one run has both, or a night has the one and the next the other."""
    for runs in (1, 2):
        latest = read_site_data(both(tmp_path / str(runs), runs=runs), NOW).latest
        assert (latest.planned, latest.superseded) == (2, 0)
        found = {workload.weights: entry for (workload, _), entry in latest.entries.items()}
        assert {name: entry.numbers["latency"]["median"] for name, entry in found.items()} == SIDES
        assert len({workload.name for workload in latest.workloads}) == 2


def test_each_has_its_own_section_and_its_own_row_in_the_tables(tmp_path: Path) -> None:
    """Of the page of the model, and of the frames that a notebook reads."""
    store = both(tmp_path / "store", runs=2)
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    pages = files_of(tmp_path / "site")
    (page,) = [text for name, text in pages.items() if name.startswith("models/") and name.endswith(".html")]
    assert len(set(re.findall(r'<h2 id="(c\w{8})"', page.decode()))) == 2
    assert "inference · float32 · b8 · pretrained" in page.decode()
    table = frames.matrix(store, "latency")
    assert table.index.get_level_values("weights").tolist() == ["pretrained", "random"]
    assert table[("cpu", "eager")].tolist() == [0.75, 0.25]

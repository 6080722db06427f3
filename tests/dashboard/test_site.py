"""The built files: nothing hidden, nothing half written, the same bytes again."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from store_builder import (
    CPU,
    DAY,
    EAGER,
    INDUCTOR,
    NOW,
    NPU,
    RunBuilder,
    result,
    timings,
    workloads,
)

from torchgauge.dashboard import build_site, site_folder
from torchgauge.dashboard.renderer import CSP
from torchgauge.dashboard.site_data import read_site_data
from torchgauge.dashboard.tally import tally
from torchgauge.errors import InfrastructureError, UsageError
from torchgauge.records import Case, Configuration, Modifier, Realised, Status
from torchgauge.results.store import Store


def _files(site: Path) -> dict[str, bytes]:
    return {str(p.relative_to(site)): p.read_bytes() for p in sorted(site.rglob("*")) if p.is_file()}


def _text(path: Path) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", path.read_text()))


def _one(path: Path, status: Status = Status.PASS, at: float = NOW - 3_600, **changes: object) -> Case:
    run = RunBuilder(f"run-{int(at)}", at)
    case = Case(workloads()[0], EAGER, CPU)
    result(run, case, status, **changes)
    run.write(path)
    return case


class _Page(HTMLParser):
    """The links, ids and forbidden things of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.forbidden: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.links += [v for k, v in found.items() if k in ("href", "src") and v is not None]
        self.ids += [v for k, v in found.items() if k == "id" and v is not None]
        self.forbidden += [k for k in found if k == "style" or k.startswith("on")]
        if tag == "style" or (tag == "script" and not found.get("src")):
            self.forbidden.append(tag)


def test_statuses_sum_to_the_plan(store: Path, site: Path) -> None:
    """Every planned case is counted once, and the page of the matrix has a cell for each."""
    latest = read_site_data(Store.open(store), NOW).latest
    counts = tally(latest.entries.values()).counts
    assert sum(counts.values()) == latest.planned == 96
    assert all(counts[status] for status in Status)
    page = (site / "compatibility.html").read_text()
    assert len(re.findall(r"<td class=[pqaectousin]><a ", page)) == 96


def test_all_links_resolve_and_nothing_is_inline(site: Path) -> None:
    """Relative links only, to files and anchors that exist; no inline script or style; one strict policy."""
    pages = {path: _Page(path.read_text()) for path in site.rglob("*.html")}
    for path, page in pages.items():
        assert not page.forbidden, path
        assert len(page.ids) == len(set(page.ids)), path
        assert f'content="{CSP.replace(chr(39), "&#39;")}"' in path.read_text()
        for link in page.links:
            parts = urlsplit(link)
            if link == "data:,":
                continue
            if re.fullmatch(r"https://github\.com/pytorch/pytorch/commit/[0-9a-f]{8,64}", link):
                continue
            assert (parts.scheme, parts.netloc, link[:1] == "/") == ("", "", False), link
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), (path, link)
            if parts.fragment:
                assert parts.fragment in pages[target].ids, (path, link)


def test_an_empty_store_gives_pages_that_say_so(tmp_path: Path) -> None:
    """Nothing yet is no error."""
    Store.open(tmp_path / "store", create=True)
    report = build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    assert report.planned == 0
    for name in ("index", "compatibility", "performance", "runs"):
        assert "This store contains no published run yet." in _text(tmp_path / "site" / f"{name}.html")


def test_what_was_not_reached_shows_the_last_known_result_with_its_age(tmp_path: Path) -> None:
    """The newest status is counted, and the older result stands beside it: never blank, never a pass."""
    _one(tmp_path / "store", at=NOW - 3 * DAY)
    run = RunBuilder("cut-short", NOW - 3_600)
    result(run, Case(workloads()[0], EAGER, CPU), Status.NOT_RUN)
    result(run, Case(workloads()[1], EAGER, CPU))
    run.write(tmp_path / "store")
    report = build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    assert (report.passed, report.planned) == (1, 2)
    cell = (tmp_path / "site" / "compatibility.html").read_text()
    assert "<td class=n><a " in cell
    assert "last pass, 12-29" in _text(tmp_path / "site" / "compatibility.html")


def test_an_old_result_is_stale_and_a_degraded_one_is_no_pass(tmp_path: Path) -> None:
    """Marks are counted apart; a degraded pass is left out of the headline."""
    _one(tmp_path / "store", at=NOW - 20 * DAY, modifiers=(Modifier.DEGRADED,))
    report = build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    assert report.passed == 0
    text = _text(tmp_path / "site" / "compatibility.html")
    assert "cpu 2025-12-12 eager" in text
    assert "degraded stale" in text


def test_a_combination_that_nobody_planned_is_named_and_not_counted(tmp_path: Path) -> None:
    """Two devices with different plans."""
    run = RunBuilder("r1", NOW - 60)
    result(run, Case(workloads()[0], EAGER, CPU))
    result(run, Case(workloads()[1], EAGER, NPU))
    run.write(tmp_path / "store")
    report = build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    assert report.planned == 2
    assert (tmp_path / "site" / "compatibility.html").read_text().count("<td class=z>") == 2
    assert "not planned (2)" in _text(tmp_path / "site" / "compatibility.html")


def test_a_configuration_that_is_defined_anew_supersedes_the_old_case(tmp_path: Path) -> None:
    """The same name with other options: the newer case stands, the older one is counted apart."""
    for run_id, at, configuration in (
        ("r1", NOW - DAY, INDUCTOR),
        ("r2", NOW - 60, Configuration("inductor", "inductor", (("mode", "max-autotune"),))),
    ):
        run = RunBuilder(run_id, at)
        result(run, Case(workloads()[0], configuration, CPU))
        run.write(tmp_path / "store")
    report = build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    assert report.planned == 1
    assert "1 older cases are excluded" in _text(tmp_path / "site" / "compatibility.html")


def test_models_that_were_built_differently_are_not_compared(tmp_path: Path) -> None:
    """Unequal realised hashes: the row says so, and the mean leaves it out."""
    import random

    run = RunBuilder("r1", NOW - 60)
    for index, workload in enumerate(workloads()[:3]):
        for device in (CPU, NPU):
            built = f"{0 if index else device.name}"
            case = Case(workload, EAGER, device)
            numbers = timings(random.Random(1), 0.01, None, "x")
            result(run, case, measurements=numbers, realised=Realised(built, 1, 0, ""))
    run.write(tmp_path / "store")
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    text = _text(tmp_path / "site" / "performance.html")
    assert "built differently: not comparable" in text
    assert "no interval, n 2" in text
    assert "excluded: 1 built differently" in text


def _built(tmp_path: Path) -> tuple[Path, Path, dict[str, bytes]]:
    _one(tmp_path / "store")
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    return tmp_path / "store", tmp_path / "site", _files(tmp_path / "site")


@pytest.mark.parametrize("broken", ["write", "swap", "rename"])
def test_a_failing_disk_leaves_the_old_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    """Whether the pages cannot be written or the swap fails, readers see the old site whole."""
    store, site, before = _built(tmp_path)
    rename = Path.rename

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    def rename_back_only(self: Path, target: Path) -> Path:
        return full() if self.name.endswith(".new") else rename(self, target)  # type: ignore[func-returns-value]

    if broken == "write":
        monkeypatch.setattr(site_folder.SiteWriter, "write", full)
    elif broken == "swap":
        monkeypatch.setattr(site_folder, "_exchange", full)
    else:
        monkeypatch.setattr(site_folder, "_exchange", lambda *_: False)
        monkeypatch.setattr(Path, "rename", rename_back_only)
    with pytest.raises(InfrastructureError, match="No space left"):
        build_site(store, site, now=NOW + DAY)
    monkeypatch.undo()
    assert _files(site) == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["site", "store"]


def test_without_an_atomic_swap_two_renames_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On systems that cannot exchange two folders."""
    store, site, before = _built(tmp_path)
    monkeypatch.setattr(site_folder, "_exchange", lambda *_: False)
    build_site(store, site, now=NOW + DAY)
    assert _files(site) != before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["site", "store"]


def test_a_folder_that_is_no_site_is_never_replaced(tmp_path: Path) -> None:
    """A slip of the hand must not cost a folder of work, nor the store."""
    _one(tmp_path / "store")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.txt").write_text("years")
    for out in (tmp_path / "work", tmp_path / "store", tmp_path):
        with pytest.raises(UsageError):
            build_site(tmp_path / "store", out, now=NOW)
    assert (tmp_path / "work" / "thesis.txt").read_text() == "years"


def test_downloads_hold_what_is_shown(site: Path) -> None:
    """One row per case in each of the three; strict JSON; the same numbers everywhere."""
    import csv

    import pyarrow.parquet as pq

    data = json.loads((site / "data" / "latest.json").read_text(), parse_constant=pytest.fail)["results"]
    with (site / "data" / "latest.csv").open(newline="") as file:
        cells = list(csv.DictReader(file))
    table = pq.read_table(site / "data" / "latest.parquet").to_pylist()
    assert len(data) == len(cells) == len(table) == 96
    assert {row["status"] for row in cells} == {status.value for status in Status}
    for told, cell, row in zip(data, cells, table, strict=True):
        assert told["case_key"] == cell["case_key"] == row["case_key"]
        latency = [number.get("median") for number in told["numbers"] if number["metric"] == "latency"]
        assert [row["latency.median"]] == (latency or [None])
        assert cell["latency.median"] == ("" if not latency else repr(latency[0]))

"""Runs and provenance: what is not finished first, the last run of everything, and all of them by month."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from page_text import broken_links, ids, words
from store_builder import CPU, DAY, EAGER, NOW, NPU, RunBuilder, environment, result, workloads

from torchgauge.dashboard import build_site
from torchgauge.dashboard.pages.runs import NEWEST
from torchgauge.records import Case, Status
from torchgauge.results.store import Store


def _run(store: Path, run_id: str, at: float, *statuses: Status, device: object = CPU) -> None:
    run = RunBuilder(run_id, at, environments=[environment("cpu")])
    for workload, status in zip(workloads(), statuses, strict=False):
        result(run, Case(workload, EAGER, device), status)  # type: ignore[arg-type]
    run.write(store)


def _site(tmp_path: Path) -> Path:
    build_site(tmp_path / "store", tmp_path / "site", now=NOW)
    return tmp_path / "site"


def test_unfinished_and_unreadable_runs_come_first(tmp_path: Path) -> None:
    """Before the tables: what is on no other page."""
    store = tmp_path / "store"
    _run(store, "good", NOW - DAY, Status.PASS)
    open_run = RunBuilder("open", NOW - 600)
    for workload in workloads()[:3]:
        result(open_run, Case(workload, EAGER, CPU))
    open_run.write(store, results=open_run.results[:1], publish=False)
    broken = RunBuilder("broken", NOW - 300)
    result(broken, Case(workloads()[0], EAGER, CPU))
    broken.write(store, publish=False)
    (store / "runs" / "broken" / "plan.json").write_text("{not json")
    site = _site(tmp_path)
    text = words(site / "runs.html")
    unreadable, unfinished = text.index("Run broken cannot be read"), text.index("Run open is not finished")
    assert unreadable < unfinished < text.index("Last run of every device and suite") < text.index("good")
    assert "1 of 3 planned cases have a result" in text
    assert not broken_links(site, "runs.html")


def test_many_runs_have_pages_by_month(tmp_path: Path) -> None:
    """The first page has the newest ones, and an anchor for an older one that still stands."""
    store = tmp_path / "store"
    kept = RunBuilder("kept", NOW - 40 * DAY)
    result(kept, Case(workloads()[2], EAGER, NPU))
    kept.write(store)
    for number in range(NEWEST + 3):
        _run(store, f"run-{number:03}", NOW - (NEWEST + 3 - number) * DAY / 2, Status.PASS)
    site = _site(tmp_path)
    page = site / "runs.html"
    assert page.read_text().count("<section class=") == NEWEST
    assert "Older runs with current results" in words(page)
    months = {file.stem: file for file in (site / "runs").iterdir()}
    assert set(months) == {"2025-11", "2025-12", "2026-01"}
    listed = [
        run for file in months.values() for run in re.findall(r'<tr id="(run-[^"]*)"', file.read_text())
    ]
    assert len(listed) == len(set(listed)) == NEWEST + 4
    assert not broken_links(site, "runs.html", "runs/*.html", "models/*.html", "devices/*.html")
    assert len(ids(page)) == len(set(ids(page)))


def test_a_run_has_its_command_and_the_hash_of_its_table(tmp_path: Path) -> None:
    """So that it can be cited and made again; hostile words of a command are quoted for the shell."""
    store = tmp_path / "store"
    _run(store, "one", NOW - 60, Status.PASS)
    plan = store / "runs" / "one" / "plan.json"
    data = json.loads(plan.read_text()) | {"command": ["torchgauge", "run", "a b; <rm>"]}
    plan.write_text(json.dumps(data))
    text = words(_site(tmp_path) / "runs.html")
    assert "torchgauge run 'a b; <rm>'" in text
    table = Store.open(store).table_path("results", "one")
    assert hashlib.sha256(table.read_bytes()).hexdigest() in text
    assert "governor performance" in text
    assert "shared machine" in text


def test_a_run_without_its_folder_is_described_from_its_tables(tmp_path: Path) -> None:
    """Tables are enough: folders may have been removed to save space."""
    import shutil

    _run(tmp_path / "store", "one", NOW - 60, Status.PASS, Status.ERROR)
    shutil.rmtree(tmp_path / "store" / "runs" / "one")
    text = words(_site(tmp_path) / "runs.html")
    assert "1 pass, 1 err" in text
    assert "No command is recorded." in text

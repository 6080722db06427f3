"""The page of a model: its history, why it fails, in what environments differ, and how to run it again."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

from page_text import words
from store_builder import (
    CPU,
    DAY,
    EAGER,
    NOW,
    RunBuilder,
    environment,
    failure,
    result,
    workloads,
)

from torchgauge.dashboard import build_site
from torchgauge.records import Case, Measurement, Status, Workload

CASE = Case(workloads()[0], EAGER, CPU)
OTHER = Case(workloads()[2], EAGER, CPU)


def _latency(seconds: float, spread: float = 0.001) -> list[Measurement]:
    walls = tuple(seconds * (1 + spread * (i % 5 - 2)) for i in range(15))
    return [Measurement("latency", "s", walls, tuple(range(15)), "perf_counter", "budget")]


def _night(store: Path, night: int, *cases: tuple[Case, Status, dict[str, object]]) -> None:
    """One run of ``cases``; night 0 is the newest."""
    run = RunBuilder(f"night-{9000 - night}", NOW - 600 - night * DAY)
    for case, status, changes in cases:
        result(run, case, status, **changes)  # type: ignore[arg-type]
    seen = {case.device.name for case, _, _ in cases}
    given = {changes.get("environment_id") for _, _, changes in cases}
    run.environments += [e for e in (environment(name) for name in sorted(seen)) if not given - {None}]
    run.write(store)


def _page(store: Path, out: Path, name: str = "resnet18") -> Path:
    build_site(store, out, now=NOW)
    return next((out / "models").glob(f"*{name}*.html"))


def test_the_strip_has_a_letter_per_snapshot_and_says_its_gaps(tmp_path: Path) -> None:
    """Oldest first; a night in which nobody planned the case is a gap and no failure."""
    store = tmp_path / "store"
    nights: list[Status | None] = [Status.PASS, Status.PASS, Status.ERROR, None, Status.PASS]
    for night, status in zip(range(len(nights) - 1, -1, -1), nights, strict=True):
        planned = [(OTHER, Status.PASS, {})]
        if status is not None:
            planned.insert(0, (CASE, status, {}))
        _night(store, night, *planned)
    html = _page(store, tmp_path / "site").read_text()
    assert '<i class="p">pp</i><i class="e">e</i><i class="z">.</i><i class="p">p</i></span>' in html
    assert 'aria-label="2 pass, 1 err, 1 nothing planned, 1 pass"' in html
    assert "no result in 1 of 5" in html


def test_too_little_history_is_said(tmp_path: Path) -> None:
    """One number has nothing before it, two have no threshold: neither is passed off as no change."""
    store = tmp_path / "store"
    _night(store, 1, (CASE, Status.PASS, {"measurements": _latency(0.01)}))
    assert "no previous number" in words(_page(store, tmp_path / "one"))
    _night(store, 0, (CASE, Status.PASS, {"measurements": _latency(0.011)}))
    assert "too little history for a threshold" in words(_page(store, tmp_path / "two"))


def test_a_failing_case_tells_what_changed_since_it_last_passed(tmp_path: Path) -> None:
    """The environment of the last run that passed stands against that of the newest one."""
    store = tmp_path / "store"
    old = environment("cpu")
    new = replace(old, identity=tuple((k, "9.9" if k == "driver" else v) for k, v in old.identity))
    for night, env, status in ((2, old, Status.PASS), (1, old, Status.PASS), (0, new, Status.ERROR)):
        run = RunBuilder(f"night-{9000 - night}", NOW - 600 - night * DAY, environments=[env])
        result(run, CASE, status, environment_id=env.id)
        run.write(store)
    page = _page(store, tmp_path / "site")
    assert "Since it last passed, 2025-12-31" in words(page)
    assert "driver none → 9.9" in words(page)
    assert "AMD EPYC" not in words(page).partition("Since it last passed")[2].partition("Reproduce")[0]
    run = RunBuilder("night-9001", NOW - 60, environments=[old])
    result(run, CASE, Status.ERROR, environment_id=old.id)
    run.write(store)
    assert "All 8 facts of the environment are equal." in words(_page(store, tmp_path / "again"))


def test_equal_tracebacks_stand_once_and_long_logs_have_a_limit(tmp_path: Path) -> None:
    """Twelve cases with 60 KB of log each stay within the budget of a first load."""
    run = RunBuilder("r", NOW - 60)
    for batch in range(12):
        workload = replace(workloads()[0], batch=batch + 1)
        lines = "\n".join(f"{batch} line {i * 7919 % 104_729:x}" for i in range(4_000))
        result(run, Case(workload, EAGER, CPU), Status.ERROR, failure=failure(), log_excerpt=lines)
    run.write(tmp_path / "store")
    page = _page(tmp_path / "store", tmp_path / "site")
    text = words(page)
    assert text.count("Traceback (most recent call last)") == 1
    assert text.count("Traceback: equal to cpu · eager") == 11
    assert text.count("bytes are left out]") == 11
    assert len(gzip.compress(page.read_bytes())) < 60_000


def test_a_renamed_model_keeps_its_old_page_as_stale(tmp_path: Path) -> None:
    """The old name has its last result with its age, the new one its own page and no history of the other."""
    store = tmp_path / "store"
    renamed = Case(Workload("timm", "resnet18_v2", "inference", batch=8), EAGER, CPU)
    for night in range(20, 15, -1):
        _night(store, night, (CASE, Status.PASS, {}))
    _night(store, 0, (renamed, Status.PASS, {}))
    old = _page(store, tmp_path / "site", "resnet18-8")
    assert "This result is stale: measured 2025-12-1" in words(old)
    assert "no result in 1 of 6" in words(old)
    new = next((tmp_path / "site" / "models").glob("*v2*"))
    assert 'aria-label="5 nothing planned, 1 pass"' in new.read_text()


def test_an_operation_shows_its_share_of_the_peak(tmp_path: Path) -> None:
    """On its page, with its case, in a matrix of its own, and as history; a model without it says nothing."""
    store, out = tmp_path / "store", tmp_path / "site"
    copy = Case(Workload("micro", "copy", shape=(("n", 128),)), EAGER, CPU)
    share = Measurement("peak_share", "share", tuple(0.42 + 0.001 * i for i in range(15)), tuple(range(15)))
    measured = {"measurements": [*_latency(1e-5), share]}
    for night in (1, 0):
        _night(
            store, night, (copy, Status.PASS, measured), (CASE, Status.PASS, {"measurements": _latency(1)})
        )
    page = words(_page(store, out, "copy").read_text())
    assert "42.7% of the peak" in page
    assert "peak share 42.7%" in page
    assert "of the peak" not in words(_page(store, out).read_text())
    matrix = (out / "performance-peak-share.html").read_text()
    assert matrix.count("42.7<i>") == 1
    series = json.loads(next((out / "series").glob("**/*copy*/0.json")).read_text())
    assert series["cases"][0]["metrics"]["peak_share"]["median"] == [0.427, 0.427]

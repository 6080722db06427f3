"""The page of a model: its history, why it fails, in what environments differ, and how to run it again."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from page_text import acting, broken_links, ids, words
from store_builder import (
    CPU,
    DAY,
    EAGER,
    INDUCTOR,
    NOW,
    RunBuilder,
    environment,
    failure,
    result,
    workloads,
)

from torchgauge.dashboard import build_site
from torchgauge.dashboard.pages.status_strip import SHOWN
from torchgauge.records import METRICS, Case, Environment, Measurement, Status, Workload
from torchgauge.results.hostile_text import visible
from torchgauge.results.stats import summarise

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


def test_a_small_drawing_has_a_band_its_newest_number_and_how_far_it_moved(tmp_path: Path) -> None:
    """A missing night breaks the line; a jump beyond the noise of the series is in bold with its factor."""
    store = tmp_path / "store"
    for night in range(9, -1, -1):
        value = 0.010 * (1 + 0.002 * (night % 3)) if night else 0.013
        status = Status.ERROR if night == 4 else Status.PASS
        _night(store, night, (CASE, status, {"measurements": _latency(value) if night != 4 else ()}))
    html = _page(store, tmp_path / "site").read_text()
    drawing = re.search(r'<svg class="spark".*?</svg>', html, re.DOTALL)
    assert drawing
    band, line = re.findall(r'<path[^>]* d="([^"]*)"', drawing[0])
    assert (band.count("M"), band.count("Z"), line.count("M")) == (2, 2, 2)
    assert "no number in 1 of 10 snapshots" in drawing[0]
    heights = [int(y) for y in re.findall(r"\d+ (\d+) ", line)]
    assert min(heights) == heights[-1] < max(heights) <= 40
    text = words(html)
    moved = re.search(r"13\.0+ ms ±[\d.]+% \+([\d.]+)% ±[\d.]+%, ([\d.]+|over 100)× its noise", text)  # noqa: RUF001
    assert moved
    assert 29 < float(moved[1]) < 31
    assert f"<b>+{moved[1]}%" in html


def test_too_little_history_is_said(tmp_path: Path) -> None:
    """One number has nothing before it, two have no threshold: neither is passed off as no change."""
    store = tmp_path / "store"
    _night(store, 1, (CASE, Status.PASS, {"measurements": _latency(0.01)}))
    assert "nothing before it" in words(_page(store, tmp_path / "one"))
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
    assert "AMD EPYC" not in words(page).partition("Since it last passed")[2].partition("Run it again")[0]
    run = RunBuilder("night-9001", NOW - 60, environments=[old])
    result(run, CASE, Status.ERROR, environment_id=old.id)
    run.write(store)
    assert "The environment is the same in all its 8 facts." in words(_page(store, tmp_path / "again"))


def test_the_environments_of_the_page_are_compared(site: Path) -> None:
    """The facts that differ side by side, the others counted; each side leads to its device's page."""
    page = next((site / "models").glob("*resnet50*.html"))
    text = words(page).partition("Environments of these results")[2]
    assert "1 fact differs, equal: 7." in text
    assert "driver none 1.2.0" in text
    assert len(re.findall(r'href="../devices/[^"]*#environment-', page.read_text())) >= 2


def test_one_environment_leaves_nothing_to_compare(tmp_path: Path) -> None:
    """And a result without an environment is said to have none."""
    _night(tmp_path / "store", 0, (CASE, Status.PASS, {}))
    assert "All results that say so are of one environment, cpu" in words(
        _page(tmp_path / "store", tmp_path / "a")
    )
    run = RunBuilder("r", NOW - 60)
    result(run, CASE)
    run.write(tmp_path / "bare")
    assert "No environment was recorded with results of cpu." in words(
        _page(tmp_path / "bare", tmp_path / "b")
    )


def test_operators_on_the_host_are_shown_with_their_share(tmp_path: Path) -> None:
    """What was found, what could not be told, and that nobody looked is not the same as none."""
    facts = (("fallback_ops", 2), ("fallback_share", 0.125), ("fallback_names", "aten::sort, aten::cumsum"))
    _night(tmp_path / "store", 0, (CASE, Status.PASS, {"facts": facts}), (OTHER, Status.PASS, {}))
    page = _page(tmp_path / "store", tmp_path / "site")
    assert "operators 2 of the step 12.5% names aten::sort, aten::cumsum" in words(page)
    other = next(p for p in page.parent.iterdir() if p != page)
    assert "on the host" not in words(other)


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
    assert text.count("Traceback: the same as of cpu · eager") == 11
    assert text.count("bytes are left out]") == 11
    assert len(gzip.compress(page.read_bytes())) < 60_000


def test_every_cell_of_a_matrix_leads_to_its_case(site: Path) -> None:
    """The lists of cases, the matrix and the pages agree on files and anchors."""
    listed = [case for file in (site / "cases").iterdir() for case in json.loads(file.read_text())["cases"]]
    assert len(listed) == 96
    for case in listed:
        assert case["anchor"] in ids(site / case["file"]), case
    page = next((site / "models").glob("*resnet50*.html"))
    assert page.read_text().count("<article") == page.read_text().count("data-copy") == 8
    assert len(ids(page)) == len(set(ids(page)))


def test_a_place_for_the_chart_names_series_that_exist(site: Path) -> None:
    """The chart asks for these files, and they are linked for who has no scripts."""
    page = next((site / "models").glob("*resnet18*.html"))
    named = re.search(r'data-chart="model"[^>]*data-series="([^"]*)"', page.read_text())
    assert named
    files = named[1].split()
    assert len(files) == 2
    for file in files:
        assert (page.parent / file).is_file()
        assert f'href="{file}"' in page.read_text()


def test_a_long_history_shows_the_newest_snapshots(tmp_path: Path) -> None:
    """The strip has a fixed length and says which part it is."""
    store = tmp_path / "store"
    for night in range(SHOWN + 2, -1, -1):
        _night(store, night, (CASE, Status.PASS, {}))
    page = _page(store, tmp_path / "site")
    assert f"The newest {SHOWN} snapshots, " in words(page)
    assert f'<i class="p">{"p" * SHOWN}</i>' in page.read_text()


def test_a_renamed_model_keeps_its_old_page_as_stale(tmp_path: Path) -> None:
    """The old name has its last result with its age, the new one its own page and no history of the other."""
    store = tmp_path / "store"
    renamed = Case(Workload("timm", "resnet18_v2", "inference", batch=8), EAGER, CPU)
    for night in range(20, 15, -1):
        _night(store, night, (CASE, Status.PASS, {}))
    _night(store, 0, (renamed, Status.PASS, {}))
    old = _page(store, tmp_path / "site", "resnet18-8")
    assert "This result is stale: it is of 2025-12-1" in words(old)
    assert "no result in 1 of 6" in words(old)
    new = next((tmp_path / "site" / "models").glob("*v2*"))
    assert 'aria-label="5 nothing planned, 1 pass"' in new.read_text()


HOSTILE = (
    "<script>window.x=1</script>",
    "\"' onclick=window.x=1 '\"",
    "</code></pre></details></dl><img src=x>",
    "\u202eabc",
    "\x1b[31mred",
    "{{ 7 * 7191 }}",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_written_out(tmp_path: Path, text: str) -> None:
    """In names, errors, facts and environments, on the pages of models, devices and runs."""
    run = RunBuilder("r", NOW - 60)
    workload = Workload(text, text, text, text, shape=((text, 1),))
    case = Case(workload, replace(INDUCTOR, name=text), replace(CPU, name=text))
    env = Environment(text, ((text, text),), ((text, text),), (text,))
    run.environments.append(env)
    numbers = replace(_latency(1.0)[0], provenance=text, stopped=text)
    summary = replace(summarise(numbers, METRICS["latency"]), method=text)
    result(
        run, case, Status.ERROR, reason=text, failure=replace(failure(text), traceback=text),
        log_excerpt=text,
        facts=((text, text), ("fallback_ops", 1), ("fallback_names", text)), environment_id=env.id,
        measurements=(numbers,), summaries=(summary,), reproduce=text, log=text, exit=text,
    )  # fmt: skip
    run.write(tmp_path / "store")
    site = tmp_path / "site"
    build_site(tmp_path / "store", site, now=NOW)
    pages = [*(site / "models").iterdir(), *(site / "devices").iterdir(), site / "runs.html"]
    assert len(pages) == 4
    for page in pages:
        html = page.read_text()
        assert not acting(page)
        assert not {"50337", "\u202e", "\x1b"} & {
            part for part in ("50337", "\u202e", "\x1b") if part in html
        }
    assert unescape(pages[0].read_text()).count(visible(text)) > 20
    assert not broken_links(site, "models/*.html", "devices/*.html", "runs.html")


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

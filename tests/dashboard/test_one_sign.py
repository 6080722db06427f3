"""One sign of a ratio everywhere: above 1 is faster, and the reciprocal stands nowhere."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from page_text import words
from patience import until
from picture_file import SVG
from store_builder import CPU, DAY, EAGER, INDUCTOR, NOW, NPU, RunBuilder, environment, result, workloads

from torchgauge.cli.main import run_command
from torchgauge.dashboard import build_site
from torchgauge.dashboard.pictures.comparison_chart import comparison_picture
from torchgauge.harness.ab.verdict_text import verdict_lines
from torchgauge.records import Case, Measurement
from torchgauge.records.comparison import MetricVerdict, Verdict
from torchgauge.results.comparing.gate import gate
from torchgauge.results.comparing.gate_verdict import headline
from torchgauge.results.comparing.verdict_text import gate_text
from torchgauge.results.journal import RunState
from torchgauge.results.reports.markdown import render
from torchgauge.results.reports.report import ComparisonReport, SideFacts, count

TWICE = r"(?<![\d.])2\.00?0?0?x"
"""Twice as fast, with as many digits as a number has."""
HALF = r"(?<![\d.])0\.50?0?0?\s?[x×]|[−-]50[\d.]*\s?%(?! time)"  # noqa: RUF001
"""A reciprocal, or a change in percent that does not say that it is of time."""
OLD, NEW = "20251231T020000Z-aaaaaaaa", "20260101T020000Z-bbbbbbbb"
SPEED = {(OLD, CPU): 0.4, (OLD, NPU): 0.2, (NEW, CPU): 0.2, (NEW, NPU): 0.1}
"""Seconds of an eager step: a night, and a device, is twice as fast as the other one; inductor always is."""


def _measured(seconds: float, compiled: bool) -> list[Measurement]:
    blocks = tuple(range(15))
    wobble = [1 + 0.001 * (block % 3 - 1) for block in blocks]
    found = [
        Measurement("latency", "s", tuple(seconds * each for each in wobble), blocks, "perf_counter"),
        Measurement("peak_memory", "B", (2.0**28 * (1 if compiled else 2),), provenance="rss"),
    ]
    if not compiled:
        return found
    return [
        *found,
        Measurement("speedup", "ratio", tuple(2 * each for each in wobble), blocks, "paired by round"),
    ]


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of two nights, two devices and two configurations, and its site."""
    folder = tmp_path_factory.mktemp("twice")
    for days, run_id in ((1, OLD), (0, NEW)):
        run = RunBuilder(run_id, NOW - days * DAY - 36_000)
        for device in (CPU, NPU):
            run.environments.append(environment(device.name))
            for workload in workloads()[:4]:
                for configuration in (EAGER, INDUCTOR):
                    compiled = configuration is INDUCTOR
                    seconds = SPEED[run_id, device] / (2 if compiled else 1)
                    result(
                        run,
                        Case(workload, configuration, device),
                        environment_id=run.environments[-1].id,
                        measurements=_measured(seconds, compiled),
                    )
        run.write(folder / "store")
    build_site(folder / "store", folder / "site", now=NOW)
    return folder


def _said(path: Path) -> str:
    return words(path) if path.suffix == ".html" else re.sub("<[^>]*>", " ", path.read_text())


@pytest.mark.parametrize(
    "page",
    [
        "index.html", "performance.html", "performance-speedup.html", "performance-device.html",
        "performance-latency.html", "compare.html", "trends.html", "devices/*.html", "models/*.html",
        "pictures/*.html", "pictures/*.svg",
    ],
)  # fmt: skip
def test_a_page_has_the_speed_up_and_nowhere_its_reciprocal(twice: Path, page: str) -> None:
    """Twice as fast is 2.00x on every page that has a ratio at all, and on none half of something."""
    found = {path: _said(path) for path in (twice / "site").glob(page)}
    assert found
    halves = {path.name: re.findall(f".*{HALF}", text) for path, text in found.items()}
    assert not any(halves.values()), halves
    if not page.startswith("devices"):
        assert any(re.search(TWICE, text) for text in found.values()), page


def test_a_comparison_in_the_terminal_has_the_speed_up_and_its_json_the_stored_ratio(
    twice: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``compare`` of two runs, of two devices and of two configurations say the same of twice as fast."""
    store = ("--store", str(twice / "store"))
    devices = (NEW, "--device-a", "cpu", "--device-b", "npusim")
    for sides in ((OLD, NEW), devices, (NEW, "--config-a", "eager", "--config-b", "inductor")):
        assert run_command(["compare", *sides, *store]) == 0
        printed = capsys.readouterr().out
        assert re.search(TWICE, printed), printed
        assert not re.search(HALF, printed), printed
        assert "speed-up" in printed
    assert run_command(["compare", OLD, NEW, *store, "--json"]) == 0
    verdicts = json.loads(capsys.readouterr().out)["verdicts"]
    assert {round(each["ratio"], 2) for each in verdicts if each["metric"] == "latency"} == {0.5}


def test_a_pull_request_a_gate_and_a_picture_have_the_speed_up_of_the_head() -> None:
    """What took 10 ms takes 5: 2.00x in the comment, in lines of ``ab`` and ``gate`` and in the picture."""
    slower = MetricVerdict(
        *("1" * 16, "toy/mlp", "toy/mlp", "toy/mlp", "latency", "s", "clean wall", Verdict.IMPROVEMENT),
        base=0.01, head=0.005, ratio=0.5, low=0.49, high=0.51, p_adjusted=0.001, launches=6,
    )  # fmt: skip
    found = (slower, replace(slower, metric="peak_memory", unit="B", base=2.0**30, head=2.0**29))
    made = ComparisonReport(
        run_id=NEW, created_at=NOW, state=RunState.COMPLETE, headline=headline(found, incomplete=False),
        counts=count(1, found, 0), base=SideFacts("old", "/old", (), "", ()),
        head=SideFacts("new", "/new", (), "", ()), verdicts=found, not_run=(), detectable=0.02,
        false_alarms=None, command=("torchgauge", "ab"), policy="", marker="0" * 16,
    )  # fmt: skip
    texts = [
        render(made), "\n".join(verdict_lines(found)), comparison_picture(made).description,
        gate_text(gate([replace(each, verdict=Verdict.REGRESSION) for each in found]), "here"),
    ]  # fmt: skip
    for text in texts:
        assert re.search(TWICE, text), text
        assert not re.search(HALF, text), text
    assert "speed-up or compression" in texts[0]
    broken = replace(
        slower, pair_key="2" * 16, pair_id="toy/gone", metric="status", unit="status",
        verdict=Verdict.BROKEN, base=None, head=None, ratio=None, low=None, high=None,
    )  # fmt: skip
    root = ET.fromstring(comparison_picture(replace(made, verdicts=(*found, broken))).wide.text)
    place = {text.text: float(text.attrib["x"]) for text in root.iter(f"{SVG}text")}
    ends = place["← head slower"], place["head faster →"]
    assert abs(place["broken"] - ends[0]) < abs(place["broken"] - ends[1])


_LEAST = """() => [...document.querySelectorAll("tbody tr")].flatMap((row) => {
  const passed = [...row.cells].filter((cell) => cell.className.startsWith("p"));
  const found = passed.map((cell) => cell.firstChild.textContent);
  const ratios = found.filter((text) => text.endsWith("x")).map(parseFloat);
  return ratios.length ? [Math.min(...ratios)] : [];
})"""


def test_the_worst_rows_are_those_with_the_least_number_shown(address: str, browser: Any) -> None:
    """On a page of numbers the largest slowdown is first; failures have a filter of their own."""
    page = browser.new_page()
    page.goto(f"{address}performance.html")
    page.get_by_role("button", name="Worst rows first").click()
    until(page, "location.search.includes('sort=worst')")
    until(page, f"(({_LEAST})()).every((each, i, all) => !i || all[i - 1] <= each)")
    assert len(set(page.evaluate(_LEAST))) > 3
    page.get_by_role("button", name="Failures only").click()
    until(page, "location.search.includes('q=fail')")
    until(
        page,
        "[...document.querySelectorAll('tbody tr')].every((row) => row.querySelector('td:not(.p)'))",
    )
    page.close()

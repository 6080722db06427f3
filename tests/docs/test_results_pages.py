"""The pages of reference results say what stores hold: every case, how it ended, where it was measured."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(
    0, str(Path(__file__).resolve().parents[1] / "results")
)  # the runner imports test files by path

import stored_runs as stored

from torchgauge.records import METRICS, Cause, Measurement, Modifier, Status
from torchgauge.results.stats import summarise, wilson
from torchgauge.results.store import Store

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
FEW = "fewer than six rounds: no interval"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of a store with a pass in two configurations, a failure and a skip."""
    folder = tmp_path_factory.mktemp("store")
    slow, fast = stored.case("linear"), stored.case("linear", "inductor")
    rows = [
        stored.result(slow, 2e-3),
        stored.result(fast, 1e-3),
        stored.result(stored.case("posing"), 9e-9, modifiers=(Modifier.OTHER_MODEL,)),
        stored.result(stored.case("broken"), status=Status.ERROR, reason="it | <b>broke</b>"),
        stored.result(
            stored.case("absent"),
            status=Status.SKIPPED,
            cause=Cause.MISSING_PACKAGE,
            reason="pip install /opt/here/x",
        ),
    ]
    stored.run(Store.open(folder, create=True), "r1", rows, stored.environment())
    return made(folder)


def made(store: Path) -> str:
    """The page that the generator makes of ``store``."""
    command = [sys.executable, ROOT / "docs" / "generate_results.py", "--title", "A test"]
    done = subprocess.run(
        [*command, "--store", str(store), "--call", "/opt/here=HERE"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_case_is_there_with_how_it_ended(page: str) -> None:
    """Latencies with their interval, and the reason of what did not pass, as plain text."""
    lines = {line.split(" | ")[0].strip("| "): line for line in page.splitlines() if line.startswith("| ")}
    assert "2.00 ms ±" in lines["linear"]
    assert "1.00 ms ±" in lines["linear"]
    assert "`error` | not planned" in lines["broken"]
    assert r"eager: it \| &lt;b>broke&lt;/b>" in lines["broken"]
    assert "`skipped`" in lines["absent"]
    assert "pip install HERE/x" in lines["absent"]


def test_the_sentence_is_answered_by_the_rows_of_the_pages() -> None:
    """Faster, slower and open models add up, and both ends of the share are Wilson's."""
    text = (RESULTS / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (huggingface|timm|torchbench|all) \| ([\d |]+) \|$", text, re.MULTILINE))
    told = {suite: [int(each) for each in numbers.split(" | ")] for suite, numbers in rows.items()}
    assert set(told) == {"huggingface", "timm", "torchbench", "all"}
    suites = [numbers for suite, numbers in told.items() if suite != "all"]
    assert told["all"] == [sum(column) for column in zip(*suites, strict=True)]
    for suite in ("huggingface", "timm", "torchbench"):
        page = (RESULTS / f"{suite}-cpu-2026-11.md").read_text(encoding="utf-8")
        counted, *decided, few = told[suite]
        line = re.search(rf"^\| {suite} \| inference \| inductor \|(.*x \|.*)\|$", page, re.MULTILINE)
        assert line is not None
        models, _, *on_page, apart = (each.strip() for each in line[1].split("|"))
        assert [int(each) for each in on_page] == decided
        assert int(models) == sum(decided) == counted - few
        short = [each for each in page.splitlines() if re.search(rf"\| \d+\.\d\d \| .*{FEW}", each)]
        degraded = [each for each in page.splitlines() if "inductor: degraded" in each]
        assert few == len([each for each in short if each not in degraded])
        assert int(apart) == len({*short, *degraded})
    counted, faster, slower, open_, few = told["all"]
    assert faster + slower + open_ + few == counted
    for total in (counted, counted - few):
        assert f"{100 * wilson(total - slower, total)[1]:.2f} %" in text
    assert wilson(counted - slower, counted)[1] > 0.975
    assert "does not hold.**" not in text


def test_every_interval_of_a_page_has_six_rounds() -> None:
    """A row with a note that it has too few rounds shows no interval, and each such row was found."""
    found = 0
    for path in sorted(RESULTS.glob("*-2026-11.md")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if FEW in line and line.startswith("| "):
                found += 1
                assert "±" not in line, line
                assert not re.search(r"\[[\d.]+, [\d.]+\]", line), line
    assert found > 60


def test_a_speedup_without_an_interval_stands_apart(tmp_path: Path) -> None:
    """Two models with ten rounds are counted; one with five, and one that is degraded, are apart."""
    rows = []
    for model, rounds, marks in (
        ("linear", 10, ()),
        ("conv", 10, ()),
        ("slow", 5, ()),
        ("bent", 10, (Modifier.DEGRADED,)),
    ):
        ratios = Measurement("speedup", "ratio", tuple(1.5 + 0.01 * each for each in range(rounds)))
        own = stored.result(stored.case(model, "inductor"), modifiers=marks)
        rows.append(
            replace(
                own,
                measurements=(*own.measurements, ratios),
                summaries=(*own.summaries, summarise(ratios, METRICS["speedup"])),
            )
        )
    stored.run(Store.open(tmp_path, create=True), "r1", rows, stored.environment())
    text = made(tmp_path)
    assert "| toy | inference | inductor | 2 | 1.54x | 2 | 0 | 0 | 2 |" in text
    (line,) = [line for line in text.splitlines() if line.startswith("| slow ")]
    assert "1.52 | " + FEW in line

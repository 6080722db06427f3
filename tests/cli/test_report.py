"""``torchgauge report``: a comparison or a run, to a terminal or a file."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "results" / "reports"))

from comparison_builder import comparison, pair, verdict

from torchgauge.errors import UsageError
from torchgauge.records.comparison import Verdict
from torchgauge.results.store import Store

LINEAR = pair("linear")


@pytest.fixture
def compared(tmp_path) -> Path:
    """A store with an older comparison and a newer one that found a regression."""
    comparison(tmp_path / "store", [LINEAR], [verdict(LINEAR)], "20260101T000000Z-00000000")
    comparison(
        tmp_path / "store", [LINEAR], [verdict(LINEAR, Verdict.REGRESSION)], "20260102T000000Z-00000000"
    )
    return tmp_path / "store"


def test_the_latest_comparison_is_reported_as_markdown(invoke, compared) -> None:
    """Without a word more, standard output is the comment."""
    done = invoke("report", "--store", str(compared))
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("<!-- torchgauge:ab:")
    assert "**Regression**: 1 worse" in done.stdout


def test_every_form_is_written_to_a_file(invoke, compared, tmp_path) -> None:
    """JUnit is XML, JSON is JSON, and standard output stays empty."""
    for form, read in (("junit", ET.fromstring), ("json", json.loads), ("markdown", str)):
        path = tmp_path / f"report.{form}"
        done = invoke("report", "--format", form, "--out", str(path), "--store", str(compared))
        assert (done.exit_code, done.stdout) == (0, "")
        read(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nonsense",), "unknown comparison or run 'nonsense'"),
        (("--format", "markdwon"), "did you mean markdown"),
        (("--out", "."), "cannot be written"),
        (("--out", "nowhere/report.md"), "cannot be written"),
    ],
)
def test_a_mistake_is_one_message(process, compared, words, message) -> None:
    """Exit 2 and what to try, without a traceback."""
    done = process("report", *words, "--store", str(compared))
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert message in done.stderr


def test_a_store_without_comparisons_says_how_to_make_one(process, store) -> None:
    """Nothing is reported of nothing."""
    done = process("report", "--store", str(store))
    assert done.returncode == 2
    assert "holds no comparison" in done.stderr
    assert "torchgauge ab" in done.stderr


def _dots(path: Path) -> dict[str, str]:
    """What is said of every point of a picture, by the name of its case."""
    svg = "{http://www.w3.org/2000/svg}"
    groups = ET.fromstring(path.read_bytes()).iter(f"{svg}g")
    titles = [each.findtext(f"{svg}title") or "" for each in groups if each.find(f"{svg}circle") is not None]
    return {title.rpartition(": ")[0]: title.rpartition(": ")[2] for title in titles}


def test_a_chart_has_the_ratio_of_every_case(invoke, tmp_path) -> None:
    """Beside the report: the numbers of the verdicts, and at the edge what only one side could run."""
    pairs = [pair(name) for name in ("linear", "conv", "gone", "<b>&")]
    kinds = (Verdict.REGRESSION, Verdict.UNCHANGED, Verdict.BROKEN, Verdict.IMPROVEMENT)
    verdicts = [
        verdict(each, kind, "status" if kind is Verdict.BROKEN else "latency")
        for each, kind in zip(pairs, kinds, strict=True)
    ]
    comparison(tmp_path / "store", pairs, verdicts)
    chart = tmp_path / "chart.svg"
    done = invoke("report", "--chart", str(chart), "--store", str(tmp_path / "store"))
    assert done.exit_code == 0, done.output
    assert "**Regression**" in done.stdout
    said = _dots(chart)
    assert [said[each.id].split(", ")[:2] for each in pairs if each.id in said] == [
        ["0.926x [0.917", "0.935]"],
        ["0.999x [0.989", "1.01]"],
        ["1.11x [1.10", "1.12]"],
    ]
    text = chart.read_text(encoding="utf-8")
    assert ">broken</text>" in text
    assert "not on head" in text
    assert "prefers-color-scheme:dark" in text
    assert "<b>" not in text


def test_a_chart_needs_two_sides_and_a_number(invoke, store, tmp_path) -> None:
    """A run is refused; a comparison without a ratio is reported all the same, and says why none is drawn."""
    (run_id,) = Store.open(store).run_ids()
    chart = tmp_path / "chart.svg"
    done = invoke("report", run_id, "--chart", str(chart), "--store", str(store))
    assert done.stdout == ""
    assert isinstance(done.exception, UsageError)
    assert "is a single run" in done.exception.message
    comparison(tmp_path / "none", [LINEAR], [verdict(LINEAR, Verdict.NOT_COMPARABLE)])
    done = invoke("report", "--chart", str(chart), "--store", str(tmp_path / "none"))
    assert done.exit_code == 0
    assert "**Nothing could be compared**" in done.stdout
    assert done.stderr == "no chart: There is no ratio to draw: 1 not comparable.\n"
    assert not chart.exists()

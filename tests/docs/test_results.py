"""The measurements of the docs: the page is that of the data, and the files of results agree with both."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

# The runner imports test files by path, so the folders of these modules are not on sys.path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "results"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "docs"))

import generate_measurements as measured
import stored_runs as stored

from torchgauge.records import METRICS, Cause, Measurement, Modifier, Status
from torchgauge.results.stats import summarise, wilson
from torchgauge.results.store import Store

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
FILES = sorted(RESULTS.glob("*.csv"))


def read(source: Path | str) -> pd.DataFrame:
    """The rows of a file of results, or of its text."""
    return pd.read_csv(io.StringIO(source) if isinstance(source, str) else source, comment="#")


def data() -> measured.Measurements:
    """The measurements of the docs."""
    return measured.measurements(measured.DATA.read_text(encoding="utf-8"))


def test_the_page_is_made_from_the_data() -> None:
    """The page is the data's, and each entry of the data keeps the rules of entries."""
    assert "\n".join(measured.page(data())) + "\n" == measured.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("{figure: a, value: 1, limit: 2}", "a: `limit` and `met` belong together"),
        ("{figure: a}", "a: one value, or one for each column"),
        ("{figure: a, values: [1, 2]}", "a: one value, or one for each column"),
        ("{figure: a, value: 1, machine: nowhere}", "unknown machine 'nowhere'"),
        (f"{{figure: a, value: 1, note: {'a ' * 21}}}", "note of more than 20 words"),
    ],
)
def test_an_entry_that_breaks_a_rule_is_refused(entry: str, problem: str) -> None:
    """The error names the topic, the figure where it has the fault, and the rule."""
    topic = f"{{topic: T, machine: m, date: d, command: c, figures: [{entry}]}}"
    text = f"machines: {{m: a machine}}\nsections: [{{section: S, topics: [{topic}]}}]"
    with pytest.raises(ValueError, match=re.escape(f"T: {problem}")):
        measured.measurements(text)


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_a_file_of_results_names_machine_date_and_command(file: Path) -> None:
    """The lines above its table do so, and its index lists it."""
    head = [line for line in file.read_text(encoding="utf-8").splitlines() if line.startswith("# ")]
    assert [line.split(":")[0] for line in head[:3]] == ["# machine", "# date", "# command"]
    rows = read(file)
    assert len(rows) > 0
    assert rows.iloc[:, 0].notna().all()
    assert f"({file.name})" in (RESULTS / "README.md").read_text(encoding="utf-8")


def test_figures_against_eager_are_those_of_the_rows() -> None:
    """Faster, slower and undecided models, and the share of the claim with its Wilson interval."""
    figures = {
        topic.topic: {figure.figure: figure for figure in topic.figures}
        for section in data().sections
        for topic in section.topics
    }
    counts = {
        name: [int(each) for each in [figure.values[0], *figure.values[2:]]]
        for name, figure in figures["Eager against inductor"].items()
    }
    for name, (models, faster, slower, undecided, few) in counts.items():
        assert faster + slower + undecided + few == models
        if name == "all, inference":
            continue
        suite, mode = name.split(", ")
        rows = read(RESULTS / f"{suite}{'-training' if mode == 'training' else ''}-cpu-2026-11.csv")
        rows = rows[(rows["configuration"] == "inductor") & (rows["status"] == "pass")]
        rows = rows[rows["speedup"].notna()]
        assert (len(rows), rows["low"].isna().sum()) == (models, few), name
        # An end that is written as 1.00 may lie on either side of 1.
        assert (rows["low"] > 1).sum() <= faster <= (rows["low"] >= 1).sum(), name
        assert (rows["high"] < 1).sum() <= slower <= (rows["high"] <= 1).sum(), name
    inference = [count for name, count in counts.items() if name.endswith("inference")]
    assert inference[-1] == [sum(column) for column in zip(*inference[:-1], strict=True)]
    counted, faster, slower, _, few = counts["all, inference"]
    claim = [figure.value for figure in figures["Claim that inductor is faster in 97.5 % of models"].values()]
    assert claim[0] == f"{100 * faster / counted:.1f} ({faster} of {counted})"
    assert claim[1] == f"{100 * (counted - slower) / counted:.2f} ({counted - slower} of {counted})"
    ends = [100 * wilson(total - slower, total)[1] for total in (counted, counted - few)]
    assert claim[2:] == [f"{end:.2f} %" for end in ends]
    assert min(ends) > 97.5


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The file of a store with passes, a failure, a skip, and rows with few rounds and with marks."""
    folder = tmp_path_factory.mktemp("store")
    ratios = {"linear": 10, "slow": 5}
    rows = [
        stored.result(stored.case("linear"), 2e-3),
        stored.result(stored.case("bent", "inductor"), 1e-3, modifiers=(Modifier.DEGRADED,)),
        stored.result(stored.case("posing"), 9e-9, modifiers=(Modifier.OTHER_MODEL,)),
        stored.result(stored.case("broken"), status=Status.ERROR, reason="issue #1 | <b>broke</b>"),
        stored.result(
            stored.case("absent"),
            status=Status.SKIPPED,
            cause=Cause.MISSING_PACKAGE,
            reason="pip install /opt/here/x",
        ),
    ]
    for model, rounds in ratios.items():
        own = Measurement("speedup", "ratio", tuple(1.5 + 0.01 * each for each in range(rounds)))
        plain = stored.result(stored.case(model, "inductor"), 1e-3)
        summaries = (*plain.summaries, summarise(own, METRICS["speedup"]))
        rows.append(replace(plain, measurements=(*plain.measurements, own), summaries=summaries))
    stored.run(Store.open(folder, create=True), "r1", rows, stored.environment())
    command = [sys.executable, ROOT / "docs" / "generate_results.py", "--store", folder]
    done = subprocess.run([*command, "--call", "/opt/here=HERE"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_store_is_printed_as_a_file_of_results(printed: str) -> None:
    """Every case has a row: numbers where it passed, else its reason."""
    head = [line for line in printed.splitlines() if line.startswith("# ")]
    assert [line.split(":")[0] for line in head] == ["# machine", "# date", "# command"]
    assert list(read(printed).columns) == list(read(RESULTS / "timm-cpu-2026-11.csv").columns)
    rows = read(printed).set_index(["model", "configuration"])
    assert len(rows) == 7
    assert rows.loc[("linear", "eager"), "latency_s"] == 2e-3
    assert rows.loc[("linear", "inductor"), "speedup"] == pytest.approx(1.545, abs=1e-3)
    assert rows.loc[("linear", "inductor"), "low"] > 1
    assert rows.loc[("slow", "inductor"), "speedup"] == pytest.approx(1.52)
    assert pd.isna(rows.loc[("slow", "inductor"), "low"])
    assert rows.loc[("bent", "inductor"), "status"] == "pass, degraded"
    assert rows.loc[("posing", "eager"), ["latency_s", "speedup"]].isna().all()
    assert rows.loc[("broken", "eager"), "note"] == "issue No. 1 | <b>broke</b>"
    assert rows.loc[("absent", "eager"), "note"] == "pip install HERE/x"

"""A case that fails with the expected status: unexpected by another cause, expected in other words."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from torchgauge.suites.expectations import load_expectations

PLUGIN = Path(__file__).resolve().parents[1] / "faults_plugin"
sys.path.insert(0, str(PLUGIN))
from torchgauge_faults.causes import CHANGED, SAME, TONIGHT  # noqa: E402

sys.path.remove(str(PLUGIN))  # tests of other files must not find its suites
OPTIONS = (
    *("--device", "fake", "--config", "eager", "--no-calibration", "--no-memory-probe", "--no-warm-compile"),
    *("--no-fallback-check", "--no-accuracy", "--measure-seconds", "0.01", "--precision", "1", "--json"),
)


def torchgauge(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one command to its end, with the faults package installed."""
    paths = [str(PLUGIN), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-m", "torchgauge.cli.main", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **variables},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@dataclass(frozen=True)
class Nights:
    """The store after two first nights, a third of the same causes, and tonight, with what each printed."""

    store: tuple[str, str]
    file: Path
    third: subprocess.CompletedProcess[str]
    tonight: subprocess.CompletedProcess[str]

    def models_of(self, cases: list[str]) -> set[str]:
        """The models of ``cases``, each of which is a case of another one."""
        models = {re.split("[/:]", case)[1] for case in cases}
        assert len(models) == len(cases)
        return models


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Nights:
    """Expectations of every case, made of two nights, and the two nights that are held against them."""
    folder = tmp_path_factory.mktemp("causes")
    store, file = ("--store", str(folder / "store")), folder / "fake.yaml"
    run = ("run", "causes", *OPTIONS, *store)
    for _ in range(2):
        assert torchgauge(*run).returncode == 1
    own = ("--device", "fake", "--file", str(file), "--in-place", "--link", "https://example.org/1")
    made = torchgauge("suites", "expect", *store, *own)
    assert "31 new" in made.stderr, made.stderr
    run = (*run, "--expectations", str(file))
    return Nights(store, file, torchgauge(*run), torchgauge(*run, **{TONIGHT: "1"}))


def test_a_failure_in_other_words_stays_expected(nights: Nights) -> None:
    """Addresses, paths, lines, processes, times, sizes, shapes and overloads differ between two nights."""
    assert len(SAME) >= 10
    assert nights.third.returncode == 0, nights.third.stderr
    assert json.loads(nights.third.stdout)["unexpected"] == []


def test_twenty_cases_of_another_cause_are_unexpected(nights: Nights) -> None:
    """The run names these twenty alone and ends with 1, though the status of all is the expected one."""
    assert len(CHANGED) == 20
    assert nights.tonight.returncode == 1
    report = json.loads(nights.tonight.stdout)
    assert nights.models_of([each["case"] for each in report["unexpected"]]) == set(CHANGED)
    assert all("(expected: " in each["other_cause"] for each in report["unexpected"])
    lost = next(each for each in report["unexpected"] if "/loses_kernel:" in each["case"])
    assert lost["other_cause"] == (
        "aten::addmm is missing (expected: RuntimeError: mat1 and mat2 shapes cannot be multiplied (N and N))"
    )


def test_triage_reports_and_rows_have_the_same_twenty(nights: Nights) -> None:
    """`triage --unexpected`, the Markdown and JUnit reports and the table agree with the run."""
    clusters = json.loads(torchgauge("results", "triage", *nights.store, "--unexpected", "--json").stdout)[
        "clusters"
    ]
    assert sum(each["unexpected"] for each in clusters) == 20
    run = json.loads(nights.tonight.stdout)["run_id"]
    page = torchgauge("report", run, *nights.store).stdout
    assert "**20 unexpected**" in page
    assert "aten::addmm is missing (expected: " in page
    junit = torchgauge("report", run, *nights.store, "--format", "junit").stdout
    assert junit.count("<failure") == 20
    query = ("results", "query", f"run_id={run}", *nights.store, "--json")
    rows: list[dict[str, Any]] = json.loads(torchgauge(*query).stdout)
    marks = {row["model"]: (row["status"] == row["expected"], row["modifiers"]) for row in rows}
    assert marks == {
        **dict.fromkeys(CHANGED, (True, ["other_cause"])),
        **dict.fromkeys(SAME, (True, ["expected"])),
    }


def test_an_update_keeps_no_reason_and_no_link_of_the_old_cause(nights: Nights, tmp_path: Path) -> None:
    """After a second such night each of the twenty has an entry of its own, and is told apart."""
    own = tmp_path / "fake.yaml"
    own.write_text(nights.file.read_text())
    words = ("suites", "expect", *nights.store, "--device", "fake", "--file", str(own), "--in-place")
    early = torchgauge(*words)
    assert early.returncode == 0, early.stderr
    assert own.read_text() == nights.file.read_text()
    assert early.stderr.count("runs disagree: ") == 20
    again = torchgauge("run", "causes", *OPTIONS, *nights.store, "--expectations", str(own), **{TONIGHT: "1"})
    assert again.returncode == 1
    done = torchgauge(*words, "--link", "https://example.org/2")
    assert done.returncode == 0, done.stderr
    assert "20 new, 20 removed" in done.stderr
    dropped = re.findall(
        r"causes/(\w+):\S+ the cause changed from .* \(https://example\.org/1\)", done.stderr
    )
    assert sorted(dropped) == sorted(CHANGED)
    links = {entry.model: entry.link[-1] for entry in load_expectations(own).entries}
    assert links == {**dict.fromkeys(CHANGED, "2"), **dict.fromkeys(SAME, "1")}
    later = torchgauge("run", "causes", *OPTIONS, *nights.store, "--expectations", str(own), **{TONIGHT: "1"})
    assert later.returncode == 0, later.stdout

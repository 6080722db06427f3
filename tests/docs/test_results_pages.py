"""The pages of reference results say what stores hold: every case, how it ended, where it was measured."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(
    0, str(Path(__file__).resolve().parents[1] / "results")
)  # the runner imports test files by path

import stored_runs as stored

from torchgauge.records import Cause, Modifier, Status
from torchgauge.results.store import Store

ROOT = Path(__file__).resolve().parents[2]


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
    done = subprocess.run(
        [
            sys.executable,
            ROOT / "docs" / "generate_results.py",
            *("--title", "A test", "--store", str(folder), "--call", "/opt/here=HERE"),
        ],
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


def test_counts_machine_and_command_are_there(page: str) -> None:
    """What a reader needs to repeat it, or to disbelieve it."""
    assert "| toy | inference | eager | 4 | 1 | 1 | 1 | 1 |" in page
    assert "| processor | Test CPU |" in page
    assert "| torch | 2.9.0 |" in page
    assert "`torchgauge run`" in page


def test_another_model_has_a_column_of_its_own_and_no_number(page: str) -> None:
    """It passed, and neither as the model nor with a latency that could be quoted."""
    (heads,) = [
        line for line in page.splitlines() if line.startswith("| suite | mode | configuration | cases")
    ]
    assert "| `pass, other_model` |" in heads
    (line,) = [line for line in page.splitlines() if line.startswith("| posing ")]
    assert "`pass, other_model`" in line
    assert "ns" not in line
    assert "5 cases" in page

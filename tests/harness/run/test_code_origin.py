"""Where compiled code came from, counted for the last words of a run."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "results"))

from stored_runs import case, result

from torchgauge.harness.compile_cache import EMPTY, FACT, KEPT, NEW, came_from_kept
from torchgauge.harness.run.code_origin import CodeOrigin, code_origin
from torchgauge.harness.run.run_report import RunReport
from torchgauge.harness.run.summary import summary_lines
from torchgauge.records import Outcome, Phase, Result, Status


def row(fact: str = "", *, cold: float | None = None) -> Result:
    """A passing row whose code came from ``fact``, with a cold compilation of ``cold`` seconds."""
    metrics = {} if cold is None else {"compile_cold": cold}
    return replace(result(case(), metrics=metrics), facts=((FACT, fact),) if fact else ())


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        (row(), None),
        (row(EMPTY, cold=4.0), CodeOrigin.COLD),
        (row(KEPT), CodeOrigin.FOUND),
        (row(NEW), CodeOrigin.NEW),
        (row(f"{EMPTY}, after the kept one failed: EOFError"), CodeOrigin.AGAIN),
        (row(EMPTY), CodeOrigin.ALONE),
    ],
)
def test_a_row_says_where_its_code_came_from(given: Result, origin: CodeOrigin | None) -> None:
    """By its fact, and by whether a cold compilation was timed."""
    assert code_origin(given) is origin


def test_new_code_lies_in_the_kept_cache() -> None:
    """Its warm start is served from there."""
    outcome = Outcome("key", Status.PASS, Phase.DONE, facts=((FACT, NEW),))
    assert came_from_kept(outcome)


def test_the_last_words_count_compiled_cases_in_one_line(tmp_path: Path) -> None:
    """And say nothing where nothing was compiled."""
    report = RunReport("r", 5)
    for each in (row(), row(KEPT), row(EMPTY, cold=4.0), row(KEPT), row(NEW)):
        report.add(each)
    (line,) = [line for line in summary_lines(report, tmp_path) if line.startswith("compiled: ")]
    assert line == "compiled: 1 sampled cold, 2 from the kept cache, 1 new to the kept cache"
    eager = RunReport("r", 1)
    eager.add(row())
    assert not [line for line in summary_lines(eager, tmp_path) if "compiled" in line]

"""The last lines of an A/B run: verdict first, silence never success."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchgauge.cli.answer import aside
from torchgauge.harness.ab.ending_text import ending_as_json, ending_lines
from torchgauge.harness.ab.run_comparison import ComparisonEnding
from torchgauge.harness.ab.verdict_text import headline, verdict_lines
from torchgauge.records.comparison import Action, MetricVerdict, Verdict


def verdict(kind: Verdict, **more: Any) -> MetricVerdict:
    given: dict[str, Any] = {
        "pair_key": "a" * 16,
        "pair_id": "toy/mlp@fake",
        "base_case": "toy/mlp@fake",
        "head_case": "toy/mlp@fake",
        "metric": "latency",
        "unit": "s",
        "estimator": "cpu",
        "verdict": kind,
        "launches": 4,
    }
    return MetricVerdict(**{**given, **more})


SLOWER = verdict(
    Verdict.REGRESSION, base=0.010, head=0.011, ratio=1.1, low=1.08, high=1.12, pair_key="b" * 16
)


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([SLOWER, verdict(Verdict.UNCHANGED)], "Regression: 1 worse"),
        ([verdict(Verdict.BROKEN, metric="status"), SLOWER], "Regression: 1 broken, 1 worse"),
        (
            [verdict(Verdict.REGRESSION, action=Action.REPORT), verdict(Verdict.UNCHANGED, metric="status")],
            "Changed, but allowed by the policy: 1 worse",
        ),
        (
            [verdict(Verdict.UNDECIDED, action=Action.REPORT), verdict(Verdict.UNCHANGED, metric="status")],
            "Undecided, but allowed by the policy: 1 pair",
        ),
        (
            [verdict(Verdict.REGRESSION, action=Action.REPORT)],
            "Undecided: under the policy, none of the compared pairs can fail the gate",
        ),
        ([verdict(Verdict.UNDECIDED)], "Undecided: no regression was found, but 1 could not be decided"),
        ([verdict(Verdict.NOT_COMPARABLE)], "Undecided: nothing was compared"),
        ([verdict(Verdict.IMPROVEMENT)], "Improvement: 1 better, none worse"),
        ([verdict(Verdict.UNCHANGED)], "Unchanged within the tolerance"),
        ([verdict(Verdict.UNCHANGED), verdict(Verdict.REGRESSION, control=True)], "In doubt: "),
        ([verdict(Verdict.UNCHANGED), verdict(Verdict.UNDECIDED, control=True)], "Unchanged within"),
        ([verdict(Verdict.REGRESSION, control=True)], "A/A: 1 false alarm in 1 pair"),
        ([], "Undecided: nothing was compared"),
    ],
)
def test_the_headline_is_the_worst_that_was_found(verdicts: list[MetricVerdict], said: str) -> None:
    """A pair that is measured against itself never gates beside real ones, and may put them in doubt."""
    assert headline(verdicts).startswith(said)


def test_a_false_alarm_is_named_whatever_else_was_found() -> None:
    """A regression comes first in the headline; that it is in doubt is not lost."""
    lines = verdict_lines([SLOWER, verdict(Verdict.IMPROVEMENT, metric="peak_memory", control=True)])
    assert lines[0].startswith("Regression")
    assert any(line.startswith("in doubt: head against head: peak_memory improvement of ") for line in lines)


def test_the_machine_output_names_false_alarms_and_an_a_a_run_ends_with_3(tmp_path: Path) -> None:
    """The JSON has them apart, so that nobody has to look for them among all verdicts."""
    wrong = verdict(Verdict.IMPROVEMENT, metric="peak_memory", control=True)
    ending = ComparisonEnding("run", tmp_path / "comparisons" / "run", control=True, verdicts=[wrong])
    said = json.loads(ending_as_json(ending))
    assert ([each["metric"] for each in said["alarms"]], said["exit_code"]) == (["peak_memory"], 3)
    quiet = replace(ending, verdicts=[verdict(Verdict.UNCHANGED, control=True)])
    assert (json.loads(ending_as_json(quiet))["alarms"], quiet.exit_code) == ([], 0)
    beside = replace(ending, control=False, verdicts=[wrong, verdict(Verdict.UNCHANGED)])
    assert beside.exit_code == 3


def test_what_a_model_said_cannot_act_on_the_terminal(tmp_path: Path, capsys: Any) -> None:
    """A reason is a compiler's or a model's text: terminal sequences and what reverses it are taken out."""
    said = verdict(Verdict.BROKEN, reason="\x1b[2Jno kernel\u202e")
    folder = tmp_path / "comparisons" / "run"
    aside(ending_lines(ComparisonEnding("run", folder, control=False, verdicts=[said])))
    shown = capsys.readouterr().err
    assert "    no kernel[U+202E]" in shown.splitlines()
    assert "\x1b" not in shown

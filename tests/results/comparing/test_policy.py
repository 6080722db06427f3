"""The policy file: narrower wins, what is loosened says why, and mistakes are told with their line."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

import stored_runs

from torchgauge.errors import DataFileError
from torchgauge.records.comparison import Action, Pair
from torchgauge.results.comparing.policy import Policy, Rule, load_policy

TODAY = date(2026, 11, 21)
CASE = "toy/linear:inference:float32:b1:eager@fake"
WHOLE = f"""\
defaults:
  max_time: 300
suites:
  toy:
    tolerance: 0.05
    reason: toys are noisy
patterns:
  "toy/*:inference:*":
    tolerance: 0.06
    reason: inference is noisier
    metrics:
      compile_warm: {{tolerance: 0.5, floor: 2}}
  "*linear*":
    action: report
    reason: being rewritten
    expires: 2027-01-31
cases:
  "{CASE}":
    tolerance: 0.08
    reason: see the ledger
    metrics:
      status: {{action: gate}}
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def loaded(tmp_path: Path, text: str) -> Policy:
    return load_policy(written(tmp_path, text), TODAY)


def test_the_built_in_policy_gates_everything() -> None:
    """Without a file each metric has the rule of the comparison page."""
    policy, of = Policy.default(), stored_runs.case()
    pair = Pair(of, of)
    assert policy.rule(pair) == Rule(0.03, 0.05, 240.0, Action.GATE)
    assert (policy.rule(pair, "compile_cold").tolerance, policy.rule(pair, "compile_cold").floor) == (
        0.2,
        1.0,
    )
    memory = policy.rule(pair, "peak_memory")
    assert (memory.tolerance, memory.floor) == (0.05, 8 * 2**20)
    assert policy.rule(pair, "graph_breaks").tolerance == 0.0


def test_the_later_and_narrower_entry_wins_field_by_field(tmp_path) -> None:
    """A case overrides its patterns, they their suite, that the defaults; other fields stay."""
    policy = loaded(tmp_path, WHOLE)
    found = policy.rule_of("toy", CASE)
    assert (found.tolerance, found.max_time_s, found.action) == (0.08, 300.0, Action.REPORT)
    assert found.reason == "see the ledger"
    conv = policy.rule_of("toy", "toy/conv:inference:float32:b1:eager@fake")
    assert (conv.tolerance, conv.action, conv.reason) == (0.06, Action.GATE, "inference is noisier")
    training = policy.rule_of("toy", "toy/conv:training:float32:b1:eager@fake")
    assert training.tolerance == 0.05
    assert policy.rule_of("timm", "timm/resnet18:inference:float32:b1:eager@cpu").tolerance == 0.03
    assert policy.rule_of("toy", "", "suite").tolerance == 0.05


def test_metrics_have_their_own_overrides(tmp_path) -> None:
    """The tolerance of an entry is for step times; others take theirs from ``metrics``, actions from both."""
    policy = loaded(tmp_path, WHOLE)
    warm = policy.rule_of("toy", CASE, "compile_warm")
    assert (warm.tolerance, warm.floor, warm.action) == (0.5, 2.0, Action.REPORT)
    assert policy.rule_of("toy", CASE, "compile_cold").tolerance == 0.2
    assert policy.rule_of("toy", CASE, "status").action is Action.GATE
    assert policy.rule_of("toy", CASE, "latency_wall").tolerance == 0.08


def test_patterns_are_globs_and_brackets_mean_themselves(tmp_path) -> None:
    """Case ids have brackets, which are no character classes."""
    text = 'patterns:\n  "*[seq=?28]":\n    tolerance: 0.1\n    reason: long\n'
    policy = loaded(tmp_path, text)
    assert policy.rule_of("hf", "hf/bert:inference:float32:b1:eager@cpu[seq=128]").tolerance == 0.1
    assert policy.rule_of("hf", "hf/bert:inference:float32:b1:eager@cpu[seq=512]").tolerance == 0.03
    assert policy.rule_of("hf", "hf/s:inference:float32:b1:eager@cpus").tolerance == 0.03


def test_an_entry_that_applies_to_nothing_is_known(tmp_path) -> None:
    """A misspelt override is no override; whoever runs the gate can say so."""
    policy = loaded(tmp_path, WHOLE)
    assert policy.unused({CASE: "toy"}) == ()
    assert policy.unused({"timm/x:inference:float32:b1:eager@cpu": "timm"})[0] == "suites.toy"


def test_a_case_may_be_tightened_without_a_reason(tmp_path) -> None:
    """Only what is loosened has to be explained, and only against the defaults."""
    assert loaded(tmp_path, "suites:\n  toy: {tolerance: 0.01}\n").rule_of("toy", CASE).tolerance == 0.01
    text = "defaults: {tolerance: 0.1, reason: shared machine}\nsuites:\n  toy: {tolerance: 0.08}\n"
    assert loaded(tmp_path, text).rule_of("toy", CASE).tolerance == 0.08


def test_an_override_holds_on_its_last_day(tmp_path) -> None:
    """``expires`` is the last day on which the file is taken."""
    text = "suites:\n  toy: {tolerance: 0.1, reason: x, expires: 2026-11-21}\n"
    assert loaded(tmp_path, text).rule_of("toy", CASE).expires == "2026-11-21"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("defaults:\n  tolerence: 0.05\n", 2, "did you mean tolerance"),
        ("defalts:\n  tolerance: 0.05\n", 1, "unknown field 'defalts'"),
        ("defaults:\n  tolerance: wide\n", 2, "expected `float | null`"),
        ("defaults:\n  reason: x\n  tolerance: -0.1\n", 3, "> 0"),
        ("suites:\n  toy:\n    action: fail\n", 3, "invalid enum value"),
        ("suites:\n  toy: {tolerance: 0.02}\n  toy: {tolerance: 0.01}\n", 3, "duplicate key 'toy'"),
        ("suites:\n  toy:\n    tolerance: 0.2\n", 3, "needs a reason"),
        ("suites:\n  toy:\n    action: ignore\n", 3, "needs a reason"),
        ("suites:\n  toy:\n    metrics:\n      peak_memory:\n        tolerance: 0.5\n", 5, "needs a reason"),
        ("defaults:\n  tolerance: 0.2\n", 2, "needs a reason"),
        (
            "suites:\n  toy:\n    tolerance: 0.2\n    reason: x\n    expires: 2026-11-20\n",
            5,
            "expired on 2026-11-20",
        ),
        ('cases:\n  "toy/*":\n    tolerance: 0.01\n', 2, "is a pattern"),
        ("cases:\n  linear:\n    tolerance: 0.01\n", 2, "is not a case id"),
        ("suites:\n  toy:\n    metrics:\n      latncy: {tolerance: 0.01}\n", 4, "unknown metric 'latncy'"),
        ("suites:\n  toy:\n    metrics:\n      status:\n        tolerance: 0.1\n", 5, "compared exactly"),
        ("- defaults\n", 1, "a policy is a mapping"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path, text, line, words) -> None:
    """Unknown fields, wrong types, what is loosened without a reason and what has expired."""
    with pytest.raises(DataFileError) as caught:
        loaded(tmp_path, text)
    assert caught.value.line == line, str(caught.value)
    assert words in str(caught.value)

"""The gate: what fails, what could not be measured, what a policy changes, and that silence is no success."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from stored_runs import case, verdict

from torchgauge.records.comparison import Action, Pair, Verdict
from torchgauge.results.comparing.gate import gate
from torchgauge.results.comparing.policy import Policy, load_policy

PAIR = Pair(case(), case())
V = Verdict


def timed(said: Verdict = V.UNCHANGED, ratio: float = 1.0, width: float = 0.01, **fields):
    numbers = {"ratio": ratio, "low": ratio - width, "high": ratio + width, "base": 1.0, "head": ratio}
    return verdict(PAIR, said, **(numbers | fields))


@pytest.fixture
def policy(tmp_path):
    """A policy of the given text."""

    def load(text: str) -> Policy:
        path = tmp_path / "policy.yaml"
        path.write_text(text, encoding="utf-8")
        return load_policy(path, date(2026, 11, 21))

    return load


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([timed()], 0),
        ([timed(V.IMPROVEMENT, 0.8)], 0),
        ([timed(), timed(V.UNDECIDED, 1.02)], 3),
        ([timed(V.REGRESSION, 1.1)], 1),
        ([timed(), verdict(PAIR, V.BROKEN, "status")], 1),
        ([timed(), verdict(PAIR, V.FIXED, "status")], 0),
        ([timed(), verdict(PAIR, V.NOT_COMPARABLE)], 3),
        ([timed(V.REGRESSION, 1.1), verdict(PAIR, V.NOT_COMPARABLE)], 1),
        ([timed(), verdict(PAIR, V.REGRESSION, "graph_breaks")], 1),
        ([timed(V.REGRESSION, 1.1, action=Action.REPORT), timed()], 0),
        ([timed(V.REGRESSION, 1.1, action=Action.IGNORE), timed()], 0),
        ([timed(V.REGRESSION, 1.1, control=True), timed()], 3),
        ([timed(V.IMPROVEMENT, 0.9, control=True), timed()], 3),
        ([timed(V.UNDECIDED, control=True), timed()], 0),
        ([verdict(PAIR, V.IMPROVEMENT, "peak_memory", control=True), timed()], 3),
        ([timed(V.IMPROVEMENT, 0.9, control=True, action=Action.IGNORE), timed()], 0),
        ([timed(V.IMPROVEMENT, 0.9, control=True), timed(V.REGRESSION, 1.1)], 1),
        ([timed(V.REGRESSION, 1.1, quarantined=True)], 1),
    ],
)
def test_exit_codes(verdicts, code) -> None:
    """1 for what gates, 3 where it is not known, 0 where all is decided; 1 is the stronger one."""
    assert gate(verdicts).exit_code == code


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ([], "nothing was compared"),
        ([timed(control=True)], "nothing was compared"),
        ([timed(action=Action.IGNORE)], "no compared metric can fail the gate"),
        ([timed(V.UNDECIDED)], "none of the 1 step times that can fail the gate"),
    ],
)
def test_silence_is_never_success(verdicts, words) -> None:
    """A gate over nothing ends with 3 and says so."""
    found = gate(verdicts)
    assert found.exit_code == 3
    assert words in found.reasons[0]


def test_a_control_that_changed_puts_everything_in_doubt() -> None:
    """Head against head is equal by construction: who calls that changed may be wrong of the others."""
    found = gate([timed(), verdict(PAIR, V.IMPROVEMENT, "peak_memory", control=True)])
    (reason,) = found.reasons
    assert reason.startswith("in doubt: head against head: peak_memory improvement of ")
    many = [verdict(PAIR, V.REGRESSION, f"metric{n}", control=True) for n in range(5)]
    assert gate([timed(), *many]).reasons[0].endswith(" and 2 more")


def test_an_incomplete_comparison_is_not_passed() -> None:
    """What was measured may be fine, and what was not is not known."""
    found = gate([timed()], incomplete="the A/B run is interrupted")
    assert (found.exit_code, found.reasons) == (3, ("incomplete: the A/B run is interrupted",))


def test_a_later_policy_changes_actions(policy) -> None:
    """The same verdicts under a file that reports the suite only."""
    lenient = policy(
        "suites:\n  toy: {action: report, reason: new}\npatterns:\n  '*other*': {action: gate}\n"
    )
    other = Pair(case("other"), case("other"))
    verdicts = [timed(V.REGRESSION, 1.1), verdict(other, ratio=1.0, low=0.99, high=1.01)]
    found = gate(verdicts, lenient)
    assert (found.exit_code, len(found.reported)) == (0, 1)
    assert gate(verdicts).exit_code == 1


def test_a_wider_tolerance_takes_small_changes_out(policy) -> None:
    """Below half of it a regression is none; beyond, it is one still."""
    wide = policy("defaults: {tolerance: 0.1, reason: shared machine}\n")
    assert gate([timed(V.REGRESSION, 1.04)], wide).exit_code == 0
    assert gate([timed(V.REGRESSION, 1.06)], wide).exit_code == 1
    assert gate([timed(V.REGRESSION, 1.14, quarantined=True), timed()], wide).exit_code == 0
    assert gate([timed(V.REGRESSION, 1.16, quarantined=True), timed()], wide).exit_code == 1


def test_a_narrower_tolerance_makes_no_verdict_of_nothing(policy) -> None:
    """Unchanged within 3 % does not become unchanged within 0.5 %: it becomes undecided."""
    narrow = policy("defaults: {tolerance: 0.005}\n")
    found = gate([timed(), timed(width=0.001)], narrow)
    assert [each.verdict for each in found.verdicts] == [V.UNDECIDED, V.UNCHANGED]
    assert "unchanged within 3.0%, but the tolerance of the policy is 0.5%" in found.verdicts[0].reason


def test_a_status_gates_whatever_the_tolerance(policy) -> None:
    """No tolerance and no quarantine makes broken fine; only an action does."""
    wide = policy("defaults: {tolerance: 5.0, reason: x}\n")
    broken = verdict(PAIR, V.BROKEN, "status", quarantined=True)
    assert gate([timed(), broken], wide).exit_code == 1
    off = policy("defaults:\n  metrics:\n    status: {action: report, reason: x}\n")
    assert gate([timed(), broken], off).exit_code == 0


def test_memory_takes_the_tolerance_of_the_policy(policy) -> None:
    """By metric, with its floor."""
    grown = verdict(PAIR, V.REGRESSION, "peak_memory", ratio=1.1, base=1e9, head=1.1e9)
    assert gate([timed(), grown], Policy.default()).exit_code == 1
    wide = policy("defaults:\n  metrics:\n    peak_memory: {tolerance: 0.2, reason: caches}\n")
    assert gate([timed(), grown], wide).exit_code == 0


def test_what_the_judge_took_out_stays_out() -> None:
    """Controls never gate, nor a suite that stays undecided, whatever file comes later."""
    control = timed(V.UNDECIDED, 1.2, control=True, action=Action.REPORT)
    suite = timed(V.UNDECIDED, pair_key="", metric="suite", action=Action.REPORT)
    found = gate([timed(), control, suite], Policy.default())
    assert (found.exit_code, found.undecided) == (0, ())

"""Whatever a check does, it ends in one row with a reason, and costs no other check its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

CHECKS = Path(__file__).resolve().parents[2] / "checks_plugin"
ENDINGS = {
    "aborts": ("crash", "signal 6"),
    "leaves": ("crash", "exit status 3"),
    "hangs": ("timeout", "phase check took longer than 6 s"),
    "wrong": ("fail_accuracy", "not close"),
    "quits": ("error", "SystemExit"),
    "raises_base": ("error", "checkpoint"),
    "not_there": ("unsupported", "aten::frobnicate is not implemented"),
    "refused": ("unsupported", "flux capacitor"),
    "fine": ("pass", ""),
}
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def endings(make_sandbox):
    """One run of all bad checks on the host: the finished process and its rows by name of the check."""
    sandbox = make_sandbox()
    path = os.pathsep.join([sandbox.environment["PYTHONPATH"], str(CHECKS)])
    words = ("check", "--device", "cpu", "--group", "bad", "--timeout", "6", "--threads", "1", "--json")
    done = sandbox.run(*words, "--store", str(sandbox.store_path), PYTHONPATH=path)
    rows = {row.case.workload.model.partition(".")[2]: row for row in sandbox.rows()}
    return done, rows


@pytest.mark.parametrize("name", ENDINGS)
def test_every_ending_is_a_status_with_a_reason(endings, name) -> None:
    """A crash, a hang, a wrong answer, an exit and an error are told apart, and say why."""
    done, rows = endings
    assert name in rows, done.stderr
    status, reason = ENDINGS[name]
    assert rows[name].status.value == status
    assert reason in rows[name].reason


def test_the_run_ends_with_the_code_of_unexpected_statuses(endings) -> None:
    """The checks that broke are unexpected, those that are unsupported are not."""
    done, rows = endings
    assert done.returncode == 1, done.stderr
    unexpected = {each["case"].partition(":")[0] for each in json.loads(done.stdout)["unexpected"]}
    broken = {name for name, (status, _) in ENDINGS.items() if status not in ("pass", "unsupported")}
    assert unexpected == {f"conformance/bad.{name}" for name in broken}
    assert set(rows) == set(ENDINGS)


def test_the_card_puts_the_unexpected_first(endings) -> None:
    """Deviations carry their reason, the unexpected ones before the others."""
    done, _ = endings
    (card,) = json.loads(done.stdout)["cards"]
    flags = [each["unexpected"] for each in card["deviations"]]
    assert flags == sorted(flags, reverse=True)
    assert all(each["reason"] for each in card["deviations"])
    assert card["groups"] == [
        {
            "group": "bad",
            "planned": 9,
            "passed": 1,
            "others": [["fail_accuracy", 1], ["error", 2], ["timeout", 1], ["crash", 2], ["unsupported", 2]],
        }
    ]


def test_rows_of_checks_know_their_environment(endings) -> None:
    """Nothing is calibrated, and the row still says which torch and which machine it is about."""
    _, rows = endings
    assert all(row.environment_id for row in rows.values())
    assert dict(rows["fine"].facts)["api"] == "torch.ones"

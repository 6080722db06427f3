"""A fault that was injected into a group of processes is found out, or the check does not pass."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from torchgauge.harness.flight_records import Culprits
from torchgauge.harness.worker.flight_check import Found, inject, judged
from torchgauge.harness.worker.injected_hang import KINDS, Injected
from torchgauge.records import Status
from torchgauge.registry import load

MISSING = Injected("missing", 1, 4, 3, 10.0, "folder")
LATE = Injected("late", 1, 4, 3, 10.0, "folder")
RIGHT = Culprits((1,), "all_reduce #5", "rank 1 has not joined all_reduce #5")


def found(named: Culprits | None, *statuses: int | None) -> Found:
    """What came of a group of three that all told."""
    return Found(named, statuses or (None, None, None), 3, 6.0)


def test_who_was_injected_has_to_be_named_with_the_call() -> None:
    """Nobody, another one, another call, and more than the one are wrong."""
    assert judged(MISSING, found(RIGHT)).status is Status.PASS
    for wrong in (
        None,
        Culprits((2,), "all_reduce #5", "rank 2"),
        Culprits((1, 2), "all_reduce #5", "ranks 1, 2"),
        Culprits((1,), "all_reduce #4", "rank 1"),
    ):
        said = judged(MISSING, found(wrong))
        assert said.status is Status.FAIL_ACCURACY
        assert said.reason


def test_a_call_that_was_only_late_has_to_end_well() -> None:
    """Else the watchdog told too late."""
    assert judged(LATE, found(RIGHT, 0, 0, 0)).status is Status.PASS
    said = judged(LATE, found(RIGHT, 0, 0, 1))
    assert "failed when the late process joined" in said.reason


def test_every_kind_of_fault_has_a_check() -> None:
    """By name."""
    entries = [
        each for each in load("torchgauge.suites", "distributed").models() if each.framework == "check"
    ]
    assert {each.name for each in entries} - {"checkpoint-reshard"} == {
        f"flight_recorder-{kind}" for kind in KINDS
    }


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["late", "operation", "shape", ""])
def test_real_processes_name_the_culprit_before_the_time_out(tmp_path: Path, kind: str) -> None:
    """A late one, another call, and a size that ends a process; where nothing is wrong nobody tells."""
    injected = Injected(kind, 2, 3, 3, 10.0, str(tmp_path))
    told = inject(injected)
    if not kind:
        assert (told.named, told.told, told.statuses) == (None, 0, (0, 0, 0))
        return
    said = judged(injected, told)
    assert said.status is Status.PASS, said.reason


@pytest.mark.torch
@pytest.mark.parametrize("number", [2, 4])
def test_processes_that_abort_tell_before_they_are_gone(tmp_path: Path, number: int) -> None:
    """Of three, the first one's other size mostly ends two: the one that is left knows of no fault."""
    injected = Injected("shape", 0, number, 3, 10.0, str(tmp_path))
    told = inject(injected)
    said = judged(injected, told)
    assert (said.status, told.told) == (Status.PASS, 3), said.reason


@pytest.mark.torch
def test_the_check_is_a_case_that_passes(sandbox: Any) -> None:
    """Its row says who was named; no process of its group is left."""
    done = sandbox.measure("distributed", "--device", "cpu", "--models", "flight_recorder-dead")
    assert done.returncode == 0, done.stderr
    (row,) = sandbox.rows()
    assert row.status is Status.PASS, row.reason
    assert "rank 1 reported nothing of all_reduce #5" in str(dict(row.facts)["named"])
    assert sandbox.survivors() == []

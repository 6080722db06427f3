"""A distributed checkpoint is loaded by another number of processes, or the check does not pass."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from torchgauge.records import Status, Workload
from torchgauge.suites.check import CheckOutcome

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def checked(monkeypatch: pytest.MonkeyPatch, ranks: int) -> CheckOutcome:
    """What the check says of a small model, with so many processes."""
    from torchgauge.harness.worker.distributed_checks import check

    monkeypatch.setenv("TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
    shape = tuple({"ranks": ranks, "blocks": 1, "width": 32, "heads": 2}.items())
    session: Any = SimpleNamespace(name="cpu", index=0, torch_device=torch.device("cpu"))
    return check(Workload("distributed", "checkpoint-reshard", mode="check", shape=shape), session)


def test_what_two_processes_saved_is_loaded_by_three_and_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value is equal; times and bytes are those of each round."""
    said = checked(monkeypatch, 3)
    assert said.status is Status.PASS, said.reason
    found = {each.metric: each.samples for each in said.measurements}
    assert set(found) == {"checkpoint_save", "checkpoint_load", "checkpoint_size"}
    assert all(len(samples) == 3 and min(samples) > 0 for samples in found.values())


def test_a_group_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """One process is too few to save with two."""
    said = checked(monkeypatch, 1)
    assert said.status is Status.ERROR
    assert "processes exited with [1]" in said.reason

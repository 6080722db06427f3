"""The devices of a run: which of them are at work side by side, and how such a run ends early and goes on."""

from __future__ import annotations

import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.devices.device import DeviceDescriptor
from torchgauge.harness.executors.executor import Submission
from torchgauge.harness.pool.devices_at_once import DevicesAtOnce, Waiting
from torchgauge.records import (
    Case,
    Cause,
    Configuration,
    DeviceTarget,
    Group,
    Plan,
    PlannedCase,
    RunSettings,
    Status,
    Tolerance,
    Workload,
)

GATE = "TORCHGAUGE_FAULTS_GATE"
DEVICES = {
    "acc": DeviceDescriptor("acc", "Accelerator", "m:c", "acc"),
    "npu": DeviceDescriptor("npu", "Another one", "m:c", "npu"),
    "cpu": DeviceDescriptor("cpu", "Host", "m:c", "cpu"),
}
TWO = ("slow", "--config", "eager", "--device", "fake,fake.1", "--prefetch", "2")


@pytest.fixture(autouse=True)
def _own_leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHGAUGE_LEASES", str(tmp_path / "leases"))


def turns(*devices: str, processes: int = 1, spares: tuple[DeviceTarget, ...] = ()) -> DevicesAtOnce:
    """The turns of a run with a group on each of ``devices``."""
    shape = (("processes", processes),) if processes > 1 else ()
    groups = []
    for text in devices:
        name, _, index = text.partition(".")
        target = DeviceTarget(name, int(index or 0))
        case = Case(Workload("toy", "mlp", shape=shape), Configuration("eager", "eager"), target)
        groups.append(Group(text, (PlannedCase(case, Tolerance(0.0, 0.0, 1.0, "test")),)))
    plan = Plan("run-1", 0.0, (), RunSettings(prefetch=4), tuple(groups))
    submission = Submission(
        plan, tuple(groups), Path(), DEVICES, {}, sys.executable, SYSTEM_CLOCK, lambda: False, lambda *_: None
    )
    return DevicesAtOnce(submission, Path(), 4, spares=spares)


def told(stages: list[list[DeviceTarget]]) -> list[str]:
    return [" ".join(map(str, stage)) for stage in stages]


def test_the_host_never_measures_beside_another_device() -> None:
    """Accelerators share a stage, in the order of the plan; what the host is for comes before or after."""
    assert told(turns("acc", "acc.1", "npu", "cpu", "acc.2").stages()) == ["acc acc.1 npu", "cpu", "acc.2"]
    assert told(turns("cpu", "acc").stages()) == ["cpu", "acc"]


def test_what_broke_is_tried_on_another_device_of_the_kind_or_on_the_same() -> None:
    """The lowest index that is in the pool; a spare is one, a device of another kind is none."""
    both = turns("acc", "acc.1", "npu")
    (first, second) = (both.groups[DeviceTarget("acc", index)][0] for index in (0, 1))
    (other,) = both.groups[DeviceTarget("npu")]
    assert both.place_for(Waiting(first, first.device, failed=True)) == second.device
    assert both.place_for(Waiting(first, first.device, failed=False)) == first.device
    assert both.place_for(Waiting(other, other.device, failed=True)) == other.device
    both.health[second.device].leave("it smokes")
    assert both.place_for(Waiting(first, first.device, failed=True)) == first.device
    spare = turns("acc", spares=(DeviceTarget("acc", 3), DeviceTarget("unknown", 1)))
    assert spare.place_for(Waiting(first, first.device, failed=True)) == DeviceTarget("acc", 3)


def test_what_no_device_is_left_for_is_not_run_with_the_reason() -> None:
    """Each case has its row; one that was declined says why it was."""
    alone = turns("acc")
    (group,) = alone.groups[DeviceTarget("acc")]
    alone.health[group.device].leave("it smokes")
    waiting = Waiting(group, group.device, failed=True)
    assert alone.place_for(waiting) is None
    (row,) = alone.nowhere(waiting)
    assert (row.status, row.cause) == (Status.NOT_RUN, Cause.QUARANTINED)
    assert row.reason == "device 'acc' has left the pool, and no other acc device is left: it smokes"


def rows_by_device(sandbox: Any) -> Counter[str]:
    return Counter(str(row.case.device) for row in sandbox.rows())


def test_two_devices_at_once_are_interrupted_and_resumed(sandbox: Any, tmp_path: Path) -> None:
    """Rows of both are kept, no process stays, and the resumed run repeats none."""
    gate = tmp_path / "gate"
    gate.mkdir()
    for number in range(3):
        (gate / f"ticket-{number}").touch()
    sandbox.environment[GATE] = str(gate)
    command = sandbox.start("run", *TWO, *sandbox.quick, "--store", str(sandbox.store_path))
    sandbox.wait_for_rows(3)
    assert len(rows_by_device(sandbox)) == 2
    command.send_signal(signal.SIGINT)
    _, said = command.communicate(timeout=120)
    assert command.returncode == 130, said
    assert "stopping: waiting for" in said
    assert sandbox.survivors() == []
    (gate / "open").touch()
    again = sandbox.run("run", "--resume", str(sandbox.folder().path))
    assert again.returncode == 0, again.stderr
    assert rows_by_device(sandbox) == {"fake": 6, "fake.1": 6}
    assert {row.status for row in sandbox.rows()} == {Status.PASS}
    assert not (sandbox.folder().path / "work").exists()


def test_two_devices_at_once_share_the_budget(sandbox: Any) -> None:
    """The run gets on, says what it left, and can go on."""
    done = sandbox.measure(*TWO, "--budget", "1s")
    assert done.returncode == 3, done.stderr
    done_first = len(sandbox.rows())
    assert 1 <= done_first < 12
    assert "fake.1': the time left" in done.stderr or "fake': the time left" in done.stderr
    (info,) = sandbox.store.runs()
    assert (info.state.value, info.planned) == ("out_of_budget", 12)

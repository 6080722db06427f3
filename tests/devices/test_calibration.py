"""The parts of a full calibration, on the host and on devices with good, bad and no events."""

from __future__ import annotations

import sys

import pytest

from torchgauge.devices.calibration_hang import find_hang

PARTS = """
import json, sys
from torchgauge import registry
from torchgauge.devices.calibration import PARTS, PartAbsentError
session = registry.resolve(sys.argv[1])(sys.argv[2], 0)
found = {}
for name, part in PARTS.items():
    for dtype in (("float32", "bfloat16", "float64", "int3") if name == "gemm" else ("float32",)):
        try:
            measured = part(session, dtype, 3)
            found[f"{name}.{dtype}"] = {m.metric: [m.unit, list(m.samples)] for m in measured}
        except PartAbsentError as error:
            found[f"{name}.{dtype}"] = str(error)
print(json.dumps(found))
"""

EVENTS = """
import json, sys, time
from torchgauge.devices import calibration
from torchgauge.devices.cpu import CpuSession

class Timer:
    '''A timer on a clock of its own: the clock is what a test may replace.'''
    def start(self): self.began = CLOCK()
    def stop(self): self.ended = CLOCK()
    def elapsed_s(self): return self.ended - self.began

class Session(CpuSession):
    def event_timer(self): return Timer()

calls = 0
def backwards():
    global calls
    calls += 1
    return -time.perf_counter()
CLOCKS = {
    "true": time.perf_counter,
    "coarse": lambda: int(time.perf_counter() * 2000) / 2000,
    "half": lambda: time.perf_counter() / 2,
    "stopped": lambda: 1.0,
    "backwards": backwards,
}
found = {}
for name, CLOCK in CLOCKS.items():
    try:
        measured = calibration.events(Session(), "float32", 3)
        found[name] = {m.metric: sorted(m.samples)[len(m.samples) // 2] for m in measured}
        found[name] |= {"finest": min(m.samples) for m in measured if m.metric == "event_resolution_s"}
    except calibration.ClockContradictionError as error:
        found[name] = str(error)
print(json.dumps(found))
"""


BURST = """
import json, sys, time
from statistics import median
from torchgauge.devices.cpu import CpuSession
from torchgauge.harness.worker import calibration_check
from torchgauge.records import Workload

class Session(CpuSession):
    waits = 0
    def synchronize(self):
        self.waits += 1
        if self.waits in SLOW:
            time.sleep(2e-3)

found = {}
for name, SLOW in {"never": range(0), "once": range(12, 40), "always": range(0, 10**9, 3)}.items():
    workload = Workload("calibration", "launch", "check", shape=(("samples", 15),))
    rows = calibration_check.run(workload, Session()).measurements[0]
    found[name] = [rows.metric, len(rows.samples), median(rows.samples), max(rows.samples)]
print(json.dumps(found))
"""


@pytest.mark.torch
def test_a_burst_does_not_decide_how_fast_a_machine_is(worker) -> None:
    """A part with a wide interval is repeated with more samples, which show only lasting slowness."""
    found = worker(BURST, OMP_NUM_THREADS="1")
    assert found["once"][:2] == ["launch_s", 60]
    assert found["once"][2] < 1e-5
    assert found["always"][1] == 60
    assert found["always"][3] > 1.5e-5


@pytest.mark.torch
def test_parts_of_the_host_have_numbers_or_reasons(worker) -> None:
    """Rates and times are positive and in base units; what the host has not is said."""
    found = worker(PARTS, "torchgauge.devices.cpu:CpuSession", "cpu", OMP_NUM_THREADS="1")
    assert found["answer.float32"] == {}
    for dtype in ("float32", "bfloat16", "float64"):
        unit, samples = found[f"gemm.{dtype}"]["gemm_flops"]
        assert unit == "FLOP/s"
        assert len(samples) == 3
        assert all(1e7 < sample < 1e14 for sample in samples), samples
    assert "matrix multiplication in int3 failed" in found["gemm.int3"]
    assert all(1e7 < rate < 1e13 for rate in found["copy.float32"]["copy_bytes_per_s"][1])
    launch = found["launch.float32"]
    assert all(1e-8 < s < 1 for metric in launch for s in launch[metric][1])
    for returned, completed in zip(launch["launch_return_s"][1], launch["launch_complete_s"][1], strict=True):
        assert returned <= completed
    assert all(0 < step < 1e-2 for step in found["clock.float32"]["clock_resolution_s"][1])
    for part in ("to_device.pageable", "to_device.pinned", "to_host.pageable", "to_host.pinned"):
        assert found[f"{part}.float32"] == "host and device share one memory"
    assert "wall time is device time" in found["events.float32"]


@pytest.mark.torch
def test_parts_of_a_device_include_both_ways_of_a_transfer(worker, npusim_path) -> None:
    """Bytes go to the device and back; each part ends in numbers or a reason."""
    found = worker(
        PARTS,
        "torchgauge.devices.privateuse1:PrivateUse1Session",
        "npusim",
        path=npusim_path,
        OMP_NUM_THREADS="1",
    )
    for part in ("to_device.pageable", "to_host.pageable"):
        unit, rates = found[f"{part}.float32"]["transfer_bytes_per_s"]
        assert unit == "B/s"
        assert all(1e6 < rate < 1e13 for rate in rates)
    assert found.pop("answer.float32") == {}
    assert all(found.values()), found


@pytest.mark.torch
def test_events_are_compared_with_the_clock_of_the_host(worker) -> None:
    """Resolution and agreement are measured; a clock that stands or runs back is no measurement."""
    found = worker(EVENTS, OMP_NUM_THREADS="1")
    assert found["true"]["event_agreement"] == pytest.approx(1.0, abs=0.1)
    assert 0 < found["true"]["event_resolution_s"] < 1e-3
    ticks = found["coarse"]["event_resolution_s"] / 0.5e-3
    assert round(ticks) >= 1
    assert ticks == pytest.approx(round(ticks), abs=0.01), "several where the sampling was held up"
    assert found["coarse"]["finest"] == pytest.approx(0.5e-3, rel=0.01)
    assert "events contradict the host's clock: they show" in found["half"]
    assert "operators measured 0 s" in found["stopped"]
    assert "s apart" in found["backwards"]


@pytest.mark.torch
def test_a_device_that_hangs_is_named_with_the_step(npusim_path) -> None:
    """The child ends itself, and says what the device was asked and where it was then."""
    hanging = {"PYTHONPATH": npusim_path, "TORCHGAUGE_NPUSIM_FAULT": "hang_in_synchronize"}
    found = find_hang(sys.executable, "npusim", import_s=120, step_s=8, environment=hanging)
    assert found is not None
    assert found.step == "torch.npusim.synchronize()"
    assert "hang" in found.frame


@pytest.mark.torch
@pytest.mark.full
@pytest.mark.parametrize("name", ["npusim", "no_such_device"])
def test_a_device_that_answers_or_raises_does_not_hang(npusim_path, name) -> None:
    """Only silence is called a hang."""
    variables = {"PYTHONPATH": npusim_path}
    assert find_hang(sys.executable, name, import_s=120, environment=variables) is None


def test_an_interpreter_that_is_not_there_hangs_nowhere() -> None:
    """There is nobody to ask."""
    assert find_hang("/no/such/python", "npusim", import_s=1) is None

"""Live sessions keep their promises, each in a worker of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from torchgauge.devices import cpu, fake, npu
from torchgauge.devices.privateuse1 import device_for
from torchgauge.devices.probe import AUTOLOAD_VARIABLE, DeviceFacts, ProbeReport, ProbeState, TorchBuild

Worker = Callable[..., Any]

LIVE = """
import json, sys, time
from torchgauge import registry
from torchgauge.devices.calibrate import calibrate
from torchgauge.devices.conformance import check_session
from torchgauge.devices.fingerprint import environment
from torchgauge.records import Configuration, to_plain
session = registry.resolve(sys.argv[1])(sys.argv[2], 0)
violations = check_session(session)
calibrate(session, "warm")
began = time.perf_counter(), time.process_time()
calibration = calibrate(session, "start")
calibration_s = min(time.perf_counter() - began[0], time.process_time() - began[1])
first, second = environment(session), environment(session)
print(json.dumps({
    "violations": violations,
    "notes": session.notes,
    "torch": "torch" in sys.modules,
    "calibration": to_plain(calibration),
    "calibration_s": calibration_s,
    "identity": dict(first.identity),
    "conditions": dict(first.conditions),
    "same": first.id == second.id,
    "inductor": session.unsupported(Configuration("inductor", "inductor")),
    "peak": repr(session.peak_memory()),
}))
"""

CLASSIFY = """
import json, torch
from torchgauge.devices.cpu import CpuSession
from torchgauge.devices.privateuse1 import PrivateUse1Session
from torchgauge.errors import InfrastructureError
session = CpuSession()
def wrapped():
    try:
        raise RuntimeError("CUDA error: out of memory")
    except RuntimeError as inner:
        error = RuntimeError("backend compiler failed"); error.__cause__ = inner
        return error
try:
    torch.empty(1 << 60, dtype=torch.uint8)
except RuntimeError as error:
    real = error
full = [
    real,
    wrapped(),
    MemoryError(),
    torch.OutOfMemoryError("x"),
    OSError(12, "Cannot allocate memory"),
    RuntimeError("npusim out of memory. Tried to allocate 512 bytes"),
    RuntimeError("std::bad_alloc"),
    RuntimeError("Failed to allocate 2.00 GiB on device"),
    RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling"),
]
other = [
    ValueError("out of memory"),
    KeyError("memory"),
    OSError(28, "No space left"),
    RuntimeError("out of memory format"),
    RuntimeError("index out of bounds"),
    RuntimeError("out of resource: shared memory, Required: 1, Hardware limit: 0"),
    RuntimeError("workers are out of shared memory"),
    RuntimeError("failed to allocate a port"),
]
missed = [repr(error) for error in full if not session.is_oom(error)]
mistaken = [repr(error) for error in other if session.is_oom(error)]
try:
    PrivateUse1Session("npusim", 0)
except InfrastructureError as error:
    refusal = str(error)
print(json.dumps([missed, mistaken, refusal]))
"""

SESSIONS = {
    "cpu": cpu.DEVICE.session,
    "fake": fake.DEVICE.session,
    "npusim": "torchgauge.devices.privateuse1:PrivateUse1Session",
    "npu": npu.DEVICE.session,
}


@pytest.fixture(scope="module")
def live(worker: Worker, npusim_path: str) -> Callable[[str], dict[str, Any]]:
    """What each session answered, asked once."""
    known: dict[str, dict[str, Any]] = {}

    def answers(name: str) -> dict[str, Any]:
        if name not in known:
            autoload = "1" if name.startswith("npu") else "0"
            variables = {
                AUTOLOAD_VARIABLE: autoload,
                "OMP_NUM_THREADS": "1",
                "HF_TOKEN": "hf_secret",
                "TORCH_SECRET_KEY": "hf_secret",
                "TORCHINDUCTOR_CACHE_DIR": "/somewhere/else",
                "TORCHGAUGE_NPUSIM_NAME": name if name.startswith("npu") else "",
                "ACME_VISIBLE_DEVICES": "3",
            }
            known[name] = worker(LIVE, SESSIONS[name], name, path=npusim_path, **variables)
        return known[name]

    return answers


every_session = pytest.mark.parametrize(
    "name",
    [
        "fake",
        pytest.param("cpu", marks=pytest.mark.torch),
        pytest.param("npusim", marks=pytest.mark.torch),
        pytest.param("npu", marks=pytest.mark.torch),
    ],
)


@every_session
def test_session_conforms(live: Callable[[str], dict[str, Any]], name: str) -> None:
    """A session that ships with torchgauge breaks no promise."""
    assert live(name)["violations"] == []


@every_session
def test_environment_is_stable_and_holds_no_secret(live: Callable[[str], dict[str, Any]], name: str) -> None:
    """Two looks give one identity; variables pass an allow-list; places that change per run stay out."""
    found = live(name)
    assert found["same"]
    assert found["identity"]["env.OMP_NUM_THREADS"] == "1"
    assert "hf_secret" not in str(found["identity"])
    assert "env.TORCHINDUCTOR_CACHE_DIR" not in found["identity"]
    assert "host.load_1min" in found["conditions"]
    assert found["conditions"]["env.ACME_VISIBLE_DEVICES"] == "3"
    assert "env.ACME_VISIBLE_DEVICES" not in found["identity"]


@pytest.mark.torch
@pytest.mark.parametrize("name", ["cpu", "npusim"])
def test_calibration_is_quick_and_complete(live: Callable[[str], dict[str, Any]], name: str) -> None:
    """All three numbers are there, finite and above zero; what others take of the machine does not count."""
    found = live(name)
    values = found["calibration"]
    numbers = [values[key] for key in ("gemm_flops", "copy_bytes_per_s", "launch_s")]
    assert all(math.isfinite(number) and number > 0 for number in numbers)
    assert values["absent"] == ""
    assert found["calibration_s"] < 5


@pytest.mark.torch
def test_cpu_memory_is_left_to_the_resident_set(live: Callable[[str], dict[str, Any]]) -> None:
    """The CPU has no allocator counter, and says who measures instead."""
    assert "the peak RSS of a separate process is used" in live("cpu")["peak"]
    assert live("cpu")["identity"]["cpu.capability"]


@pytest.mark.torch
def test_degraded_device_says_what_it_lacks(live: Callable[[str], dict[str, Any]]) -> None:
    """Each missing hook of the simulated accelerator is a note, and the one used instead is named."""
    found = live("npusim")
    notes = "\n".join(found["notes"])
    assert "used: torch.npusim.synchronize" in notes
    assert "events: torch.Event: " in notes
    assert "provenance='torch.npusim.max_memory_allocated'" in found["peak"]
    assert "no code generator registered for device type 'npusim'" in found["inductor"]


@pytest.mark.torch
@pytest.mark.parametrize("name", ["cpu", "npusim"])
def test_precision_is_pinned_and_part_of_the_identity(
    live: Callable[[str], dict[str, Any]], name: str
) -> None:
    """Float32 products are float32, whatever the build's default is."""
    assert live(name)["identity"]["precision.float32_matmul"] == "highest"
    assert live(name)["identity"]["precision.deterministic_algorithms"] is False


@pytest.mark.torch
def test_npu_adapter_serves_a_device_of_that_name(live: Callable[[str], dict[str, Any]]) -> None:
    """The adapter names the hardware that is there, and notes what the real package would have."""
    found = live("npu")
    assert found["identity"]["device.model"] == "npu (simulated)"
    assert "precision conv: torch.npu.conv does not exist, so its precision is not pinned" in found["notes"]


@pytest.fixture(scope="module")
def classified(worker: Worker) -> tuple[list[str], list[str], str]:
    """Errors missed, errors mistaken, and what the generic adapter says without its device."""
    missed, mistaken, refusal = worker(CLASSIFY, **{AUTOLOAD_VARIABLE: "0"})
    return missed, mistaken, refusal


@pytest.mark.torch
def test_full_allocators_are_recognised_and_little_else(classified: tuple[list[str], list[str], str]) -> None:
    """Real allocator messages and wrapped ones count; look-alikes do not."""
    missed, mistaken, _ = classified
    assert missed == []
    assert mistaken == []


@pytest.mark.torch
def test_generic_adapter_refuses_a_process_without_the_device(
    classified: tuple[list[str], list[str], str],
) -> None:
    """Without the extension the session says so as an error of the environment."""
    assert "device 'npusim' is not registered" in classified[2]
    assert AUTOLOAD_VARIABLE in classified[2]


@pytest.mark.parametrize("fork_safe", [True, False, None])
def test_forking_is_allowed_only_where_the_probe_saw_it_work(fork_safe: bool | None) -> None:
    """Unknown and failed both mean fresh processes."""
    facts = DeviceFacts("xyz", 1, fork_safe, "")
    build = TorchBuild("2.13.0", "", "cpu", False, 1.0, "xyz")
    report = ProbeReport("python", True, ProbeState.OK, 1.0, torch=build, devices=(facts,))
    device = device_for("xyz", report)
    assert device.fork_safe is (fork_safe is True)
    assert device.torch_type == "xyz"
    assert device.environment((0,)) == {AUTOLOAD_VARIABLE: "1"}

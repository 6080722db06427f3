"""Devices are found by name, and a name that leads nowhere says why."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from torchgauge.devices.availability import Availability
from torchgauge.devices.discover import Presence, Why, find_device, known_devices, parse_target
from torchgauge.devices.health import CheckState, diagnose
from torchgauge.devices.probe import (
    DeviceFacts,
    Extension,
    HookFact,
    ProbeReport,
    ProbeState,
    TorchBuild,
    Trouble,
    Unit,
)
from torchgauge.devices.verified import verified
from torchgauge.errors import InfrastructureError, UnknownNameError, UsageError
from torchgauge.records import DeviceTarget

BUILD = TorchBuild("2.13.0", "abc", "cpu", False, 1.0, "privateuseone")
CPU = DeviceFacts("cpu", 1, True, "", autocast_dtypes=("bfloat16",), compile=(("inductor", ""),))
SOUND = ProbeReport("python", True, ProbeState.OK, 1.0, "3.11.0", torch=BUILD, devices=(CPU,))
BROKEN = ProbeReport(
    "python",
    True,
    ProbeState.BROKEN,
    1.0,
    "3.11.0",
    extensions=(Extension("torch_npu", "torch_npu:_autoload", "torch-npu", "2.13.0"),),
    trouble=Trouble("OSError: libhccl.so: not found", "import torch", (), "", "uninstall torch-npu"),
    without_autoload=SOUND,
)

BROKEN_STRANGER = replace(
    BROKEN, extensions=(Extension("torch_xyz", "torch_xyz:_autoload", "torch-xyz", "2.13.0"),)
)


@pytest.mark.parametrize(
    ("text", "target"),
    [("cpu", DeviceTarget("cpu")), ("npusim.0", DeviceTarget("npusim")), ("npu.3", DeviceTarget("npu", 3))],
)
def test_target_is_a_name_and_an_index(text: str, target: DeviceTarget) -> None:
    """The index follows a dot and is 0 where it is not written."""
    assert parse_target(text) == target


@pytest.mark.parametrize("text", ["", "cpu.", ".1", "npu.x", "npu:0", "a b"])
def test_target_that_cannot_be_read_is_a_usage_error(text: str) -> None:
    """The message shows how to write one."""
    with pytest.raises(UsageError, match=r"NAME\.INDEX"):
        parse_target(text)


def test_unknown_name_suggests_a_known_one() -> None:
    """A slip of the finger gets the name that was meant."""
    with pytest.raises(UnknownNameError, match="did you mean cpu"):
        find_device("cpuu", "python", report=SOUND)


def test_unknown_name_beside_a_broken_extension_shows_the_cause() -> None:
    """What could not be looked for is said together with the reason."""
    with pytest.raises(UnknownNameError, match=r"libhccl\.so: not found; uninstall torch-npu"):
        find_device("xyz", "python", report=BROKEN)


def test_device_whose_package_names_no_entry_point_says_so() -> None:
    """The package is installed and import torch does not load it: that, and what to add to its metadata."""
    packages = (("torch", "2.13.0"),)
    report = replace(SOUND, silent=(("torch-xyz", "1.2"), *packages), packages=packages)
    with pytest.raises(InfrastructureError, match=r"torch-xyz 1.2 is installed without an entry") as raised:
        find_device("xyz", "python", report=report)
    assert 'project.entry-points."torch.backends"' in raised.value.hint
    with pytest.raises(UnknownNameError):
        find_device("torch", "python", report=report)
    report = replace(SOUND, silent=(("torch-npu", "2"),))
    known = {entry.name: entry for entry in known_devices("python", report=report)}
    assert "torch-npu 2 is installed without an entry point" in known["npu"].reason


@pytest.mark.parametrize("name", ["xyz", "torch_xyz"])
def test_device_of_a_broken_extension_is_no_mistake_of_the_user(name: str) -> None:
    """The name may be right: the environment is what broke."""
    with pytest.raises(InfrastructureError, match=r"device '\w+' is broken: OSError: libhccl\.so"):
        find_device(name, "python", report=BROKEN_STRANGER)


def test_broken_extension_is_listed_with_cause_and_remedy() -> None:
    """A package of a known adapter breaks that device, a stranger's is listed by its own name."""
    found = {entry.name: entry for entry in known_devices("python", report=BROKEN)}
    assert found["npu"].presence is Presence.BROKEN
    assert found["npu"].why is Why.IMPORT_RAISED
    assert found["npu"].reason == "OSError: libhccl.so: not found"
    assert "torch_npu" not in found
    assert found["cpu"].presence is Presence.PRESENT
    assert found["fake"].presence is Presence.PRESENT
    strange = {entry.name: entry for entry in known_devices("python", report=BROKEN_STRANGER)}
    assert strange["torch_xyz"].presence is Presence.BROKEN
    assert strange["torch_xyz"].provider == "torch-xyz 2.13.0"
    assert strange["npu"].why is Why.PACKAGE_MISSING


@pytest.mark.parametrize(
    ("name", "availability", "packages", "why", "reason"),
    [
        ("npu", None, (), Why.PACKAGE_MISSING, "package torch-npu is not installed"),
        ("npu", None, (("torch_npu", "2.9.0"),), Why.NOT_BUILT, "did not load it"),
        (
            "cuda",
            Availability("cuda", False, 0),
            (),
            Why.NOT_BUILT,
            "torch 2.13.0 is not built for this device",
        ),
        ("cuda", Availability("cuda", True, 0, "Found no driver"), (), Why.NO_DEVICE, "Found no driver"),
    ],
)
def test_absent_device_says_which_thing_is_missing(
    name: str, availability: Availability | None, packages: tuple[tuple[str, str], ...], why: Why, reason: str
) -> None:
    """A package, a build of torch and a driver are told apart, each with something to type."""
    report = replace(SOUND, availabilities=(availability,) if availability else (), packages=packages)
    found = {entry.name: entry for entry in known_devices("python", report=report)}[name]
    assert (found.presence, found.why) == (Presence.ABSENT, why)
    assert reason in found.reason
    assert found.fix


def test_label_follows_the_flavour_of_the_torch_build() -> None:
    """One torch type serves two vendors: the build says which."""
    build = replace(BUILD, flavour="hip 7.0")
    unit = Unit(0, "AMD Instinct MI300X", 192 << 30)
    facts = DeviceFacts("cuda", 1, False, "", units=(unit,), driver="6.12")
    report = replace(SOUND, torch=build, devices=(CPU, facts))
    found = {entry.name: entry for entry in known_devices("python", report=report)}["cuda"]
    assert found.presence is Presence.PRESENT
    assert found.label == "AMD GPU (ROCm)"
    assert (found.units, found.driver, found.verified) == ((unit,), "6.12", verified("cuda"))


def test_interpreter_without_torch_leaves_only_devices_without_torch() -> None:
    """Each torch device says why it cannot be used; the fake one needs nothing."""
    trouble = Trouble(
        "ModuleNotFoundError: No module named 'torch'", "import torch", (), "", "pip install torch"
    )
    report = ProbeReport("python", True, ProbeState.NO_TORCH, 1.0, "3.11.0", trouble=trouble)
    found = {entry.name: entry for entry in known_devices("python", report=report)}
    assert found["cpu"].presence is Presence.BROKEN
    assert found["cpu"].fix == "pip install torch"
    assert found["fake"].presence is Presence.PRESENT


@pytest.mark.parametrize(
    ("facts", "presence"),
    [
        (DeviceFacts("xyz", 0, True, ""), Presence.ABSENT),
        (DeviceFacts("xyz", 2, True, "", hooks=(HookFact("synchronize", "", "no"),)), Presence.BROKEN),
        (
            DeviceFacts("xyz", 2, True, "", hooks=(HookFact("synchronize", "torch.xyz", ""),)),
            Presence.PRESENT,
        ),
    ],
)
def test_accelerator_without_an_adapter_is_listed(facts: DeviceFacts, presence: Presence) -> None:
    """Any accelerator of torch is a device: absent without hardware, broken without a way to wait."""
    report = ProbeReport("python", True, ProbeState.OK, 1.0, torch=BUILD, devices=(CPU, facts))
    found = {entry.name: entry for entry in known_devices("python", report=report)}
    assert found["xyz"].presence is presence
    assert bool(found["xyz"].reason) is (presence is not Presence.PRESENT)


@pytest.mark.torch
def test_simulated_accelerator_end_to_end(
    npusim_report: ProbeReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One deep probe feeds the list of devices, the search by name and the doctor."""
    report = npusim_report
    entry = {entry.name: entry for entry in known_devices(sys.executable, report=report)}["npusim"]
    assert entry.presence is Presence.PRESENT
    assert "npusim" in entry.provider
    assert set(entry.autocast_dtypes) == {"bfloat16", "float16"}
    assert "no code generator" in dict(entry.compile)["inductor"]
    assert entry.units[0].model == "npusim (simulated)"
    assert entry.profiler == "NPUSIM"
    assert find_device("npusim", sys.executable, report=report).torch_type == "npusim"

    monkeypatch.setattr("torchgauge.devices.health.probe", lambda *_args, **_options: report)
    checks = {check.name: check for check in diagnose(sys.executable, "npusim")}
    assert checks["device npusim"].state is CheckState.OK
    assert checks["torch"].state is CheckState.OK
    assert all(check.fix for check in checks.values() if check.state is CheckState.FAIL)


def test_doctor_fails_for_the_device_that_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken device that was named fails with a remedy; nothing else does."""
    monkeypatch.setattr("torchgauge.devices.health.probe", lambda *_args, **_options: BROKEN)
    checks = {check.name: check for check in diagnose("python", "npu")}
    failed = [name for name, check in checks.items() if check.state is CheckState.FAIL]
    assert failed == ["device npu"]
    assert checks["extensions"].state is CheckState.WARN
    assert checks["device npu"].fix == "uninstall torch-npu"


def test_doctor_names_a_missing_interpreter() -> None:
    """Without an interpreter the machine is still looked at."""
    checks = {check.name: check for check in diagnose("/no/such/python")}
    assert checks["python"].state is CheckState.FAIL
    assert "torch" not in checks
    assert {"memory", "disk", "load", "device fake"} <= checks.keys()

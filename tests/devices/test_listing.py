"""The list of devices stays readable in a narrow terminal and with many devices."""

from __future__ import annotations

import json

import pytest

from torchgauge.devices.discover import DeviceReport, Presence, Why
from torchgauge.devices.listing import listing
from torchgauge.devices.probe import HookFact, TorchBuild, Unit
from torchgauge.devices.verified import Verified
from torchgauge.records import to_plain

GIB = 1 << 30
BUILD = TorchBuild("2.13.0+cu130", "abc", "cuda 13.0", False, 1.0, "privateuseone")
PRESENT = DeviceReport(
    "cuda",
    "NVIDIA GPU (CUDA)",
    "cuda",
    Presence.PRESENT,
    count=4,
    units=(*(Unit(index, "NVIDIA H200", 140 * GIB) for index in range(3)), Unit(3, "NVIDIA L4", 24 * GIB)),
    driver="580.12",
    torch=BUILD,
    autocast_dtypes=("float16", "bfloat16"),
    compile_default="inductor",
    compile=(("inductor", ""), ("aot_eager", ""), ("other", "cannot be loaded: no module")),
    telemetry=tuple(f"device.reading_number_{number}" for number in range(8)),
    hooks=(HookFact("events", "", "there is no Event"), HookFact("synchronize", "torch.accelerator", "")),
    verified=Verified("2026-11-21", "a machine"),
)
ABSENT = [
    DeviceReport(
        name,
        name,
        name,
        Presence.ABSENT,
        Why.NOT_BUILT,
        "torch 2.13.0 is not built for it",
        f"pip install {name}",
    )
    for name in ("xpu", "npu", "mps", "hpu", "mtia", "musa", "gcu")
]
BROKEN = DeviceReport(
    "rbln",
    "rbln",
    None,
    Presence.BROKEN,
    Why.IMPORT_RAISED,
    "OSError: librbln.so: cannot open",
    "uninstall it",
)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """Long facts wrap under themselves."""
    lines = listing([PRESENT, *ABSENT, BROKEN], width)
    assert max(map(len, lines)) <= width


def test_absent_devices_take_one_line_each_with_what_to_type() -> None:
    """Seven absent devices are seven lines under their heading."""
    lines = listing(ABSENT, 80)
    assert lines[0] == "absent"
    assert lines[1].split() == ["xpu", "not", "in", "this", "torch", "pip", "install", "xpu"]
    assert len(lines) == 1 + len(ABSENT) + 1


def test_equal_devices_are_one_line_and_unequal_ones_are_not() -> None:
    """Model, memory and indices are shown for each run of equal devices."""
    text = "\n".join(listing([PRESENT], 100))
    assert "3 x NVIDIA H200, 140.0 GiB (index 0-2)" in text
    assert "NVIDIA L4, 24.0 GiB (index 3)" in text


def test_present_device_shows_what_works_and_what_is_missing() -> None:
    """The default backend is marked, a refused one is named, and a missing hook points to its reason."""
    text = "\n".join(listing([PRESENT], 100))
    assert "inductor (default), aot_eager; not other" in text
    assert "events (--json says why)" in text
    assert "580.12" in text
    assert "cuda 2026-11-21 (a machine)" in text


def test_broken_device_shows_its_cause() -> None:
    """The cause of a failed import stands below the name."""
    text = "\n".join(listing([BROKEN], 80))
    assert "import raised" in text
    assert "OSError: librbln.so: cannot open" in text
    assert "try: uninstall it" in text


def test_machine_output_has_everything() -> None:
    """Reasons that the terminal leaves out are in the JSON."""
    found = json.loads(json.dumps(to_plain(PRESENT)))
    assert found["hooks"][0]["problem"] == "there is no Event"
    assert found["units"][3]["model"] == "NVIDIA L4"
    assert found["verified"]["machine"] == "a machine"
    assert json.loads(json.dumps(to_plain(ABSENT[0])))["why"] == "not in this torch"
